//! Words in files: metrics, units, pages, patterns, kernels, families.

use numalab_record::*;
use numalab_stats::Direction;
use serde_json::json;

#[test]
fn metrics_have_the_names_units_and_directions_that_files_rely_on() {
    let of = |metric: Metric| {
        (metric.name(), metric.unit().to_string(), metric.better() == Direction::LowerIsBetter)
    };
    let expected = [
        ("latency", "ns", true),
        ("bandwidth", "GB/s", false),
        ("rank-bandwidth", "GB/s", false),
        ("round-trip", "ns", true),
        ("line-spread", "ns", true),
        ("load-to-use", "x", true),
        ("core-clock", "GHz", false),
        ("atomic-add", "ns", true),
        ("page-read", "ns", true),
        ("first-load", "ns", true),
        ("first-store", "ns", true),
        ("page-copy", "ns", true),
        ("file-load", "ns", true),
        ("page-free", "ns", true),
        ("page-unmap", "ns", true),
        ("huge-store", "ns", true),
        ("system-call", "ns", true),
        ("yield", "ns", true),
        ("page-map", "ns", true),
        ("file-read", "ns", true),
        ("read", "ns", true),
        ("write", "ns", true),
        ("file-growth", "ns", true),
        ("file-page", "ns", true),
        ("pipe-page", "ns", true),
        ("wake", "ns", true),
        ("file-open", "ns", true),
        ("fork", "ns", true),
        ("fork-page", "ns", true),
        ("fork-mapping", "ns", true),
        ("execute", "ns", true),
        ("cpuid", "ns", true),
        ("elapsed", "s", true),
        ("local-share", "x", false),
        ("frame", "ns", true),
    ];
    let expected = expected.map(|(name, unit, lower)| (name, unit.to_owned(), lower));
    assert_eq!(Metric::ALL.map(of), expected);
    for metric in Metric::ALL {
        assert_eq!(Metric::from_name(metric.name()), Some(metric));
        assert_eq!(serde_json::to_value(metric).unwrap(), metric.name());
        assert_eq!(serde_json::from_value::<Metric>(json!(metric.name())).unwrap(), metric);
        assert_eq!(metric.lower_is_better(), metric.better() == Direction::LowerIsBetter);
        let quantity = metric.quantity("p99");
        assert_eq!(quantity.metric, "p99");
        assert_eq!((quantity.unit, quantity.better), (metric.unit().to_string(), metric.better()));
    }
    assert_eq!(Metric::from_name("Latency"), None);
    assert_eq!(format!("{:>6}|{}", Unit::GigabytesPerSecond, Unit::Percent), "  GB/s|%");
}

#[test]
fn pages_have_the_same_name_in_documents_and_on_the_command_line() {
    let all = [Pages::BASE_4K, Pages::Transparent, Pages::HUGE_2M, Pages::HUGE_1G];
    assert_eq!(all.map(|pages| serde_json::to_value(pages).unwrap()), ["4k", "thp", "2m", "1g"]);
    assert_eq!(all.map(Pages::name), ["4k", "thp", "2m", "1g"]);
    assert_eq!(all.map(Pages::is_small), [true, false, false, false]);
    assert!(Pages::Sized(64 << 10).is_small() && !Pages::Sized(512 << 20).is_small());
    assert_eq!("2M".parse(), Ok(Pages::HUGE_2M));
    assert!(serde_json::from_value::<Pages>(json!("2M")).is_err(), "documents have one spelling");
    assert_eq!(format!("{:>4}", Pages::Transparent), " thp");
}

#[test]
fn patterns_are_refused_at_the_borders_of_their_numbers() {
    for (text, expected) in [
        ("stride:64", Some(AccessPattern::Stride(64))),
        ("stride:192", Some(AccessPattern::Stride(192))),
        ("stride:63", None),
        ("stride:96", None),
        ("stride:-64", None),
        ("stride:", None),
        ("stride:18446744073709551616", None),
        ("one-line-per:64", Some(AccessPattern::OneLinePer(64))),
        ("one-line-per:32", None),
        ("one-line-per:96", None),
        ("sequential:64", None),
        ("", None),
    ] {
        assert_eq!(text.parse::<AccessPattern>().ok(), expected, "{text}");
    }
    let parts = |json| serde_json::from_value::<AccessPattern>(json);
    let stride = parts(json!({"order": "one-line-per", "bytes": 4096})).unwrap();
    assert_eq!(stride, AccessPattern::OneLinePer(4096));
    assert!(parts(json!({"order": "stride"})).is_err(), "a stride has a number");
    assert!(parts(json!({"order": "random", "bytes": 64})).is_err(), "random has none");
    assert!(parts(json!(64)).is_err());
}

#[test]
fn families_are_found_by_their_words() {
    for family in Family::ALL {
        assert_eq!(Family::named(family.name()), Some(family));
        let words = serde_json::to_value(family).unwrap();
        assert_eq!(words, family.name().replace(' ', "-"));
    }
    assert_eq!(Family::named("Core"), None);
}

#[test]
fn kernels_have_the_same_name_in_documents_and_ids() {
    for kernel in StreamKernel::ALL {
        assert_eq!(serde_json::to_value(kernel).unwrap(), kernel.name());
    }
}

#[test]
fn causes_without_effect_are_phrases_with_or_without_a_finding() {
    let of = |reason: &NoEffect| serde_json::to_value(reason).unwrap();
    assert_eq!(of(&NoEffect::OneNode), "one-node");
    assert_eq!(of(&NoEffect::Denied("EPERM".to_owned())), json!({"denied": "EPERM"}));
    assert_eq!(of(&NoEffect::Sentence("no swap here".to_owned())), "no swap here");
    for reason in [
        NoEffect::NothingToSet,
        NoEffect::NotInKernel,
        NoEffect::Denied("EACCES".to_owned()),
        NoEffect::WriteOnly,
        NoEffect::ReadOnly,
        NoEffect::OneNode,
        NoEffect::OneTier,
        NoEffect::NoSwap,
        NoEffect::NoSiblings,
        NoEffect::Fixed("always".to_owned()),
        NoEffect::DamonTooOld("6.1".to_owned()),
        NoEffect::DamonInUse("kdamond.0".to_owned()),
        NoEffect::TiersUnreported,
        NoEffect::Sentence("swap is off".to_owned()),
    ] {
        assert_eq!(serde_json::from_value::<NoEffect>(of(&reason)).unwrap(), reason);
    }
    assert!(serde_json::from_value::<NoEffect>(json!({"fixed": 7})).is_err());
}
