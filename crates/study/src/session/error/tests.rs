use numalab_host::DirectoryLockError;

use super::*;

fn failed(doing: &str) -> BackendError {
    BackendError::failed(doing, "refused")
}

fn lacking() -> BackendError {
    BackendError::Lacking { what: "no perf".to_owned(), remedy: "install it".to_owned() }
}

#[test]
fn a_failed_restore_comes_first_with_the_earlier_error() {
    let alone = SessionError::NotRestored { restore: failed("knob k"), cause: None };
    assert_eq!(alone.to_string(), "could not be restored: knob k: refused");
    let cause = Some(Box::new(SessionError::Backend(failed("a sample"))));
    let both = SessionError::NotRestored { restore: failed("knob k"), cause };
    let message = "could not be restored: knob k: refused (after: a sample: refused)";
    assert_eq!(both.to_string(), message);
}

#[test]
fn another_environment_is_reported_with_the_differences_and_the_remedy() {
    let error = SessionError::OtherEnvironment { differences: "kernel 6.8, was 6.1".to_owned() };
    assert_eq!(
        error.to_string(),
        "the environment differs from that in which the study began: kernel 6.8, was 6.1; start a \
         new run"
    );
    assert_eq!(error.class(), ErrorClass::Failed);
}

#[test]
fn the_error_class_is_that_of_the_cause_unless_a_setting_stays_changed() {
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
fn a_failed_preparation_is_an_error_of_the_backend_or_of_the_restore() {
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
