use numalab_record::study::Quantity;

use super::*;

fn failed() -> BackendError {
    BackendError::failed("a boot", "no console")
}

fn lacking() -> BackendError {
    BackendError::Lacking { what: "no qemu".to_owned(), remedy: "install it".to_owned() }
}

fn io() -> BisectError {
    let source = io::Error::from_raw_os_error(28);
    BisectError::Io { path: "/r/bisect.json".into(), source }
}

fn text(value: &str) -> String {
    value.to_owned()
}

#[test]
fn each_message_names_the_commit_or_option_and_the_expected_form() {
    let shown: [(BisectError, &str); 9] = [
        (
            BisectError::NotBehind { good: text("aaa"), bad: text("bbb") },
            "--bad bbb: expected a descendant of --good aaa",
        ),
        (
            BisectError::EndNotBuilt { commit: text("aaa"), reason: text("exit 2: no rule") },
            "commit aaa does not build: exit 2: no rule",
        ),
        (
            BisectError::BuildGivenUp { commit: text("aaa"), reason: text("signal 9") },
            "the build of commit aaa was aborted: signal 9",
        ),
        (
            BisectError::NoKernel { commit: text("aaa"), printed: text("done.\u{7}") },
            "the last line of the build of commit aaa is \"done.\\u{7}\": expected the kernel's \
             path",
        ),
        (
            BisectError::EndNotRun { commit: text("aaa"), source: failed() },
            "commit aaa: a boot: no console",
        ),
        (BisectError::NotRestored(failed()), "a boot: no console"),
        (
            BisectError::NoRatio { metric: text("t"), value: 0.0 },
            "t is 0: expected a positive value, since commits are compared by ratios",
        ),
        (
            BisectError::NoMetric { wanted: text("u"), known: text("one of t, v") },
            "metric \"u\": expected one of t, v",
        ),
        (io(), "/r/bisect.json: No space left on device (os error 28)"),
    ];
    for (error, message) in shown {
        assert_eq!(error.to_string(), message);
    }
}

#[test]
fn the_class_follows_from_the_remedy() {
    let bad_input = [
        BisectError::NotBehind { good: text("a"), bad: text("b") },
        BisectError::NoMetric { wanted: text("u"), known: text("t") },
    ];
    assert!(bad_input.iter().all(|error| error.class() == ErrorClass::BadInput));
    let of_lacking = [
        BisectError::from(lacking()),
        BisectError::EndNotRun { commit: text("a"), source: lacking() },
    ];
    assert!(of_lacking.iter().all(|error| error.class() == ErrorClass::Lacking));
    let of_failed = [
        BisectError::EndNotBuilt { commit: text("a"), reason: text("r") },
        BisectError::BuildGivenUp { commit: text("a"), reason: text("r") },
        BisectError::NoKernel { commit: text("a"), printed: text("p") },
        BisectError::EndNotRun { commit: text("a"), source: failed() },
        BisectError::NotRestored(lacking()),
        BisectError::NoRatio { metric: Quantity::lower("t", "s").metric, value: -1.0 },
        io(),
    ];
    for error in of_failed {
        assert_eq!(error.class(), ErrorClass::Failed, "{error}");
    }
}
