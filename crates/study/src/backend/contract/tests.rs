use numalab_workload::WorkloadSpec;

use super::*;

struct Restores(Result<(), BackendError>);

impl Prepared for Restores {
    fn apply(&mut self, _treatment: &Treatment) -> Result<Vec<Evidence>, BackendError> {
        Ok(Vec::new())
    }

    fn sample(&mut self, _request: &SampleRequest<'_>) -> Result<Observation, BackendError> {
        Ok(Observation::default())
    }

    fn restore(self: Box<Self>) -> Result<(), BackendError> {
        self.0
    }
}

fn all() -> [BackendError; 4] {
    [
        BackendError::Lacking { what: "no perf".to_owned(), remedy: "install it".to_owned() },
        BackendError::BadInput {
            place: StudyPlace::backend("guests", "guests"),
            found: "65".to_owned(),
            expected: "1 to 64".to_owned(),
        },
        BackendError::failed("a boot", "no console"),
        BackendError::Interrupted,
    ]
}

#[test]
fn every_error_has_its_message_and_class() {
    let shown = [
        ("no perf; install it", ErrorClass::Lacking),
        ("backend.guests.guests: 65: expected 1 to 64", ErrorClass::BadInput),
        ("a boot: no console", ErrorClass::Failed),
        ("interrupted", ErrorClass::Failed),
    ];
    for (error, (message, class)) in all().into_iter().zip(shown) {
        assert_eq!((error.to_string().as_str(), error.class()), (message, class));
    }
}

#[test]
fn an_error_that_a_guest_sends_is_the_same_here() {
    for error in all() {
        let sent = serde_json::to_string(&error).unwrap();
        let received: BackendError = serde_json::from_str(&sent).unwrap();
        assert_eq!(received, error, "{sent}");
    }
}

#[test]
fn a_backend_that_fails_to_prepare_is_restored_and_both_errors_are_kept() {
    let [cause, .., failed, _] = all();
    let error = PrepareError::restoring(cause.clone(), Box::new(Restores(Ok(()))));
    assert_eq!(error, PrepareError { cause: cause.clone(), restore: None });
    let error = PrepareError::restoring(cause.clone(), Box::new(Restores(Err(failed.clone()))));
    assert_eq!(error, PrepareError { cause, restore: Some(Box::new(failed)) });
}

#[test]
fn a_missing_program_is_reported_with_its_package_if_known() {
    let workload = WorkloadSpec::of_tool("dbench").resolve().unwrap();
    let program = workload.tools[0].program.clone();
    let error = BackendError::missing(&workload, &program);
    let BackendError::Lacking { what, remedy } = &error else { panic!("{error}") };
    assert_eq!(*what, format!("workload dbench: `{program}` was not found"));
    assert_eq!(*remedy, workload.tools[0].remedy());
    let own = BackendError::missing(&workload, "own").to_string();
    assert_eq!(own, "workload dbench: `own` was not found; expected a program");
}
