use std::cell::RefCell;
use std::collections::BTreeMap;

use numalab_workload::WorkloadSpec;

use super::*;

/// A backend that answers with the request it received.
#[derive(Default)]
struct Echo {
    seeds: RefCell<Vec<u64>>,
}

impl Prepared for Echo {
    fn apply(&mut self, treatment: &Treatment) -> Result<Vec<Evidence>, BackendError> {
        match treatment.name.as_str() {
            "refused" => Err(failed()),
            name => Ok(vec![Evidence::fact("treatment", name)]),
        }
    }

    fn sample(&mut self, request: &SampleRequest<'_>) -> Result<Observation, BackendError> {
        self.seeds.borrow_mut().push(request.seed);
        Ok(Observation::default())
    }

    fn restore(self: Box<Self>) -> Result<(), BackendError> {
        Ok(())
    }
}

fn failed() -> BackendError {
    BackendError::failed("knob k", "refused")
}

fn treatment(name: &str) -> Treatment {
    Treatment { name: name.to_owned(), levels: vec![0], settings: BTreeMap::new() }
}

fn lines(requests: &[Request]) -> Vec<io::Result<String>> {
    requests.iter().map(|request| Ok(serde_json::to_string(request).unwrap())).collect()
}

fn answers(output: &[u8]) -> Vec<AgentAnswer> {
    let text = std::str::from_utf8(output).unwrap();
    assert!(text.is_empty() || text.ends_with('\n'));
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn each_request_has_one_answer_and_a_failure_does_not_end_the_connection() {
    let workload = Box::new(WorkloadSpec::of_tool("dbench").resolve().unwrap());
    let sample = Request::Sample { treatment: treatment("t"), workload, seed: 77 };
    let apply = |name| Request::Apply { treatment: treatment(name) };
    let requests = [apply("t"), apply("refused"), sample, apply("u")];
    let (mut backend, mut output) = (Echo::default(), Vec::new());
    answer_all(&mut backend, lines(&requests).into_iter(), &mut output).unwrap();
    let answers = answers(&output);
    let [
        AgentAnswer::Evidence(first),
        AgentAnswer::Failed(error),
        AgentAnswer::Observation(seen),
        AgentAnswer::Evidence(last),
    ] = &answers[..]
    else {
        panic!("{answers:?}")
    };
    assert_eq!(*first, [Evidence::fact("treatment", "t")]);
    assert_eq!(*error, failed());
    assert_eq!(*seen, Observation::default());
    assert_eq!(*last, [Evidence::fact("treatment", "u")]);
    assert_eq!(*backend.seeds.borrow(), [77]);
}

#[test]
fn an_invalid_request_ends_the_connection_after_earlier_answers() {
    let mut input = lines(&[Request::Apply { treatment: treatment("t") }]);
    input.push(Ok("{\"dance\":1}".to_owned()));
    let mut output = Vec::new();
    let error = answer_all(&mut Echo::default(), input.into_iter(), &mut output).unwrap_err();
    assert!(error.to_string().contains("dance"), "{error}");
    assert_eq!(answers(&output).len(), 1);
}

#[test]
fn a_connection_that_breaks_is_the_error() {
    let broken = Err(io::Error::from(io::ErrorKind::ConnectionReset));
    let mut output = Vec::new();
    let error = answer_all(&mut Echo::default(), [broken].into_iter(), &mut output).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
    assert!(output.is_empty());
}

#[test]
fn a_host_without_requests_is_ready_and_ends() {
    let mut output = Vec::new();
    serve("{}", io::empty(), &mut output).unwrap();
    assert!(matches!(answers(&output)[..], [AgentAnswer::Ready]));
}

#[test]
fn unknown_settings_are_reported_before_the_first_request() {
    let mut output = Vec::new();
    serve("{\"count\":true}", io::empty(), &mut output).unwrap();
    let answers = answers(&output);
    let [AgentAnswer::Failed(error)] = &answers[..] else { panic!("{answers:?}") };
    let message = error.to_string();
    assert!(message.starts_with("backend.host.count: no such setting: "), "{message}");
}

#[test]
fn invalid_json_is_an_error_of_the_connection() {
    assert!(serve("{", io::empty(), Vec::new()).is_err());
    let mut output = Vec::new();
    assert!(serve("{}", &b"no setup\n"[..], &mut output).is_err());
    assert!(matches!(answers(&output)[..], [AgentAnswer::Ready]));
}
