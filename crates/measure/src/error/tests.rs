use numalab_record::AccessPattern;
use numalab_topology::{CpuId, CpuSet};

use super::*;

fn unknown_cpu() -> ScopeError {
    ScopeError::UnknownCpu { cpu: CpuId(9), online: "0-3".parse::<CpuSet>().unwrap() }
}

#[test]
fn an_invalid_request_is_bad_input_and_a_missing_feature_is_lacking() {
    let isa = MeasureError::UnknownIsa {
        name: "abacus".to_owned(),
        available: "portable, avx2".to_owned(),
    };
    let kernel = MeasureError::KernelOnly { work: "storm".to_owned() };
    let pattern = MeasureError::NotAStream { pattern: AccessPattern::PageLocal };
    let expected = [
        (MeasureError::from(unknown_cpu()), ErrorClass::BadInput),
        (pattern, ErrorClass::BadInput),
        (isa, ErrorClass::Lacking),
        (kernel, ErrorClass::Lacking),
        (MeasureError::Abandoned, ErrorClass::Failed),
        (MeasureError::Interrupted, ErrorClass::Failed),
    ];
    for (error, class) in expected {
        assert_eq!(error.class(), class, "{error}");
    }
}

#[test]
fn messages_name_the_request_and_the_choices() {
    let shown = [
        (
            MeasureError::from(unknown_cpu()).to_string(),
            "cpu 9 does not exist here: expected one of 0-3",
        ),
        (
            MeasureError::UnknownIsa {
                name: "abacus".to_owned(),
                available: "portable, avx2".to_owned(),
            }
            .to_string(),
            "instruction set `abacus` is not available here: expected portable, avx2",
        ),
        (
            MeasureError::KernelOnly { work: "storm".to_owned() }.to_string(),
            "storm is measured by numalab's kernel: `numalab guest run --kernel numalab`",
        ),
        (
            MeasureError::NotAStream { pattern: AccessPattern::FisherYates }.to_string(),
            "a stream cannot be fisher-yates: expected sequential, random or stride:N",
        ),
        (MeasureError::Abandoned.to_string(), "another worker of the cell failed"),
        (MeasureError::Interrupted.to_string(), "interrupted"),
    ];
    for (found, expected) in shown {
        assert_eq!(found, expected);
    }
}

#[test]
fn an_abandoned_worker_has_the_failure_of_another() {
    let error = MeasureError::from(numalab_membench::Aborted);
    assert!(matches!(error, MeasureError::Abandoned));
}
