//! A host backend controlled by JSON requests, one per line: the part of a study that runs inside a
//! guest.

use std::io::{self, BufRead, Write};

use numalab_host::Interrupt;
use numalab_record::Environment;
use numalab_record::study::{Evidence, Notice, Observation, Treatment};
use numalab_study::{
    Backend, BackendError, BackendSpec, Preparation, Prepared, SampleRequest, Scope,
};
use numalab_workload::Workload;
use serde::{Deserialize, Serialize};

use super::host::{self, Host};

/// The setup that the agent receives first.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct Setup {
    pub treatments: Vec<Treatment>,
    pub workloads: Vec<Workload>,
}

/// A request to the agent after its setup.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Request {
    /// Calls [`Prepared::apply`].
    Apply { treatment: Treatment },
    /// Calls [`Prepared::sample`].
    Sample { treatment: Treatment, workload: Box<Workload>, seed: u64 },
}

/// An answer of the agent; the first answer is [`AgentAnswer::Ready`], sent without a request.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum AgentAnswer {
    Ready,
    Prepared { environment: Environment, notices: Vec<Notice> },
    Evidence(Vec<Evidence>),
    Observation(Observation),
    Failed(BackendError),
}

/// Serves a host backend, one line of JSON per request and per answer, until there are no more
/// requests. `spec` is the backend's settings in JSON.
///
/// # Errors
///
/// Returns an error if the connection fails; a failure of the backend is an answer.
pub fn serve(spec: &str, input: impl BufRead, mut output: impl Write) -> io::Result<()> {
    let settings = serde_json::from_str(spec).map_err(io::Error::other)?;
    let spec = BackendSpec { kind: host::KIND.name.to_owned(), settings };
    let host = match Host::open(&spec, &Interrupt::never()) {
        Ok(host) => host,
        Err(error) => return say(&mut output, &AgentAnswer::Failed(error)),
    };
    say(&mut output, &AgentAnswer::Ready)?;
    let mut lines = input.lines();
    let Some(first) = lines.next() else { return Ok(()) };
    let Setup { treatments, workloads } =
        serde_json::from_str(&first?).map_err(io::Error::other)?;
    let scope = Scope { treatments: &treatments, workloads: &workloads };
    let Preparation { environment, notices, mut backend } = match Box::new(host).prepare(&scope) {
        Ok(prepared) => prepared,
        Err(error) => return say(&mut output, &AgentAnswer::Failed(error.cause)),
    };
    let served = say(&mut output, &AgentAnswer::Prepared { environment, notices })
        .and_then(|()| answer_all(backend.as_mut(), lines, &mut output));
    let restored = backend.restore().map_err(io::Error::other);
    served.and(restored)
}

fn answer_all(
    backend: &mut dyn Prepared,
    lines: impl Iterator<Item = io::Result<String>>,
    output: &mut impl Write,
) -> io::Result<()> {
    for line in lines {
        let request = serde_json::from_str(&line?).map_err(io::Error::other)?;
        let answer = answer(backend, &request).unwrap_or_else(AgentAnswer::Failed);
        say(output, &answer)?;
    }
    Ok(())
}

fn answer(backend: &mut dyn Prepared, request: &Request) -> Result<AgentAnswer, BackendError> {
    Ok(match request {
        Request::Apply { treatment } => AgentAnswer::Evidence(backend.apply(treatment)?),
        Request::Sample { treatment, workload, seed } => {
            let request = SampleRequest { treatment, workload, seed: *seed };
            AgentAnswer::Observation(backend.sample(&request)?)
        }
    })
}

fn say(output: &mut impl Write, answer: &AgentAnswer) -> io::Result<()> {
    let mut line = serde_json::to_string(answer).map_err(io::Error::other)?;
    line.push('\n');
    output.write_all(line.as_bytes())?;
    output.flush()
}

#[cfg(test)]
mod tests;
