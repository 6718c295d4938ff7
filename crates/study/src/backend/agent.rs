//! A host backend that is told what to do, a line of JSON at a time: a study's hand in a
//! guest.

use std::io::{self, BufRead, Write};

use numalab_host::Interrupt;
use numalab_record::Environment;
use numalab_record::study::{Evidence, Taken, Treatment};
use numalab_workload::Workload;
use serde::{Deserialize, Serialize};

use super::host::Host;
use super::{Backend, BackendError, SampleRequest};
use crate::definition::BackendSpec;

/// What the agent is told.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Request {
    /// [`Backend::check`].
    Check { treatments: Vec<Treatment>, workloads: Vec<Workload> },
    /// [`Backend::environment`].
    Environment,
    /// [`Backend::apply`].
    Apply { treatment: Treatment },
    /// [`Backend::sample`].
    Sample { treatment: Treatment, workload: Box<Workload>, seed: u64 },
}

/// What it answers; the first answer is [`Answer::Ready`], to no request.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Answer {
    Ready,
    Notices(Vec<String>),
    Environment(Environment),
    Evidence(Vec<Evidence>),
    Taken(Taken),
    Failed(BackendError),
}

/// Serves a host backend over a line of JSON for each request and answer, until there are
/// no more requests. `spec` is the backend's own settings in JSON.
///
/// # Errors
/// Those of the connection; what goes wrong in the backend is an answer.
pub fn serve(spec: &str, input: impl BufRead, mut output: impl Write) -> io::Result<()> {
    let settings = serde_json::from_str(spec).map_err(io::Error::other)?;
    let spec = BackendSpec { kind: "host".to_owned(), settings };
    let mut backend = match Host::open(&spec, &Interrupt::never()) {
        Ok(backend) => {
            say(&mut output, &Answer::Ready)?;
            backend
        }
        Err(error) => return say(&mut output, &Answer::Failed(error)),
    };
    for line in input.lines() {
        let request: Request = serde_json::from_str(&line?).map_err(io::Error::other)?;
        let answer = answer(&mut backend, &request).unwrap_or_else(Answer::Failed);
        say(&mut output, &answer)?;
    }
    backend.restore().map_err(io::Error::other)
}

fn answer(backend: &mut dyn Backend, request: &Request) -> Result<Answer, BackendError> {
    Ok(match request {
        Request::Check { treatments, workloads } => {
            Answer::Notices(backend.check(treatments, workloads)?)
        }
        Request::Environment => Answer::Environment(backend.environment()?),
        Request::Apply { treatment } => Answer::Evidence(backend.apply(treatment)?),
        Request::Sample { treatment, workload, seed } => {
            Answer::Taken(backend.sample(&SampleRequest { treatment, workload, seed: *seed })?)
        }
    })
}

fn say(output: &mut impl Write, answer: &Answer) -> io::Result<()> {
    let mut line = serde_json::to_string(answer).map_err(io::Error::other)?;
    line.push('\n');
    output.write_all(line.as_bytes())?;
    output.flush()
}
