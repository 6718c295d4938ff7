use numalab_host::DirectoryLockError;

use super::*;

fn failed(doing: &str) -> BackendError {
    BackendError::Failed { doing: doing.to_owned(), reason: "refused".to_owned() }
}

fn lacking() -> BackendError {
    BackendError::Lacking { what: "no perf".to_owned(), remedy: "install it".to_owned() }
}

#[test]
fn what_was_not_put_back_is_told_first_with_what_failed_before() {
    let alone = SessionError::NotRestored { restore: failed("knob k"), cause: None };
    assert_eq!(alone.to_string(), "could not be put back: knob k: refused");
    let cause = Some(Box::new(SessionError::Backend(failed("a sample"))));
    let both = SessionError::NotRestored { restore: failed("knob k"), cause };
    let message = "could not be put back: knob k: refused (after: a sample: refused)";
    assert_eq!(both.to_string(), message);
}

#[test]
fn another_environment_says_what_differs_and_what_to_do() {
    let error = SessionError::OtherEnvironment { differences: "kernel 6.8, was 6.1".to_owned() };
    assert_eq!(
        error.to_string(),
        "the environment is not that in which the study began: kernel 6.8, was 6.1; run it anew"
    );
    assert_eq!(error.class(), ErrorClass::Failed);
}

#[test]
fn the_class_is_of_the_cause_unless_something_is_left_changed() {
    assert_eq!(SessionError::from(lacking()).class(), ErrorClass::Lacking);
    assert_eq!(SessionError::from(BackendError::Interrupted).class(), ErrorClass::Failed);
    let cause = Some(Box::new(SessionError::Backend(lacking())));
    let left = SessionError::NotRestored { restore: lacking(), cause };
    assert_eq!(left.class(), ErrorClass::Failed);
    let in_use = DirectoryLockError::InUse { path: "/r".into(), process: Some(7) };
    let error = SessionError::from(JournalError::from(in_use));
    assert_eq!(error.class(), ErrorClass::Failed);
    assert!(error.to_string().starts_with("/r: another numalab (process 7) is"), "{error}");
}

#[test]
fn a_backend_that_was_not_prepared_is_a_failure_of_it_or_of_putting_back() {
    let plain = SessionError::from(PrepareError::from(lacking()));
    assert!(matches!(plain, SessionError::Backend(error) if error == lacking()));
    let restore = Some(Box::new(failed("knob k")));
    let error = SessionError::from(PrepareError { cause: lacking(), restore });
    let SessionError::NotRestored { restore, cause: Some(cause) } = &error else {
        panic!("{error}")
    };
    assert_eq!(*restore, failed("knob k"));
    assert_eq!(cause.to_string(), "no perf; install it");
}
