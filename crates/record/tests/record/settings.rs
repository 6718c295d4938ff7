//! Settings, rules and reasons as studies write them.

use numalab_record::study::*;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Returns the JSON of a value, which must read back as the same value.
fn written<T: Serialize + for<'de> Deserialize<'de> + PartialEq + core::fmt::Debug>(
    value: &T,
) -> Value {
    let json = serde_json::to_value(value).unwrap();
    assert_eq!(&serde_json::from_value::<T>(json.clone()).unwrap(), value);
    json
}

#[test]
fn settings_are_of_the_kind_that_they_are_written_as() {
    let read = |json: Value| serde_json::from_value::<Setting>(json).unwrap();
    for (json, setting, shown) in [
        (json!(true), Setting::Bool(true), "true"),
        (json!(-7), Setting::Integer(-7), "-7"),
        (json!(i64::MAX), Setting::Integer(i64::MAX), "9223372036854775807"),
        (json!(2.5), Setting::Number(2.5), "2.5"),
        (json!(2.0), Setting::Number(2.0), "2"),
        (json!("2"), Setting::Text("2".to_owned()), "2"),
        (json!(["a", "b c"]), Setting::List(vec!["a".to_owned(), "b c".to_owned()]), "a,b c"),
        (json!([]), Setting::List(Vec::new()), ""),
    ] {
        assert_eq!(read(json.clone()), setting);
        assert_eq!(written(&setting), json);
        assert_eq!(setting.to_string(), shown);
    }
    assert_eq!(format!("{:>5}|{:<6}|", Setting::Bool(false), Setting::Integer(1)), "false|1     |");
}

#[test]
fn unknown_settings_are_refused_with_the_expected_ones() {
    let error = |json: &str| serde_json::from_str::<Setting>(json).unwrap_err().to_string();
    let expected = "expected a number, a string, true, false or a list of strings";
    for json in ["null", "{}"] {
        assert!(error(json).contains(expected), "{}", error(json));
    }
    let large = error("9223372036854775808");
    assert!(large.contains("9223372036854775808 is too large for a setting"), "{large}");
    assert!(error("[1]").contains("invalid type: integer `1`, expected a string"));
    assert!(error("[[\"a\"]]").contains("expected a string"));
}

#[test]
fn omitted_rules_have_defaults_and_unknown_ones_are_refused() {
    let read = |json| serde_json::from_value::<Rules>(json);
    let rules = read(json!({})).unwrap();
    assert_eq!(rules, Rules::default());
    assert_eq!((rules.blocks, rules.warm_ups, rules.aa, rules.repeats), (12, 1, true, 2));
    assert_eq!(rules.margin_percent, 2.0);
    let some = json!({"warm-ups": 0, "margin-percent": 5.0, "precision-percent": 1.0,
        "facts": ["w.pages"], "primary": "w.t", "margins": {"w.u": 7.0}});
    let rules = read(some).unwrap();
    assert_eq!((rules.warm_ups, rules.blocks, rules.precision_percent), (0, 12, Some(1.0)));
    assert!(rules.is_primary("w", "t") && !rules.is_primary("w", "pages"));
    assert!(!rules.is_primary("w.t", ""), "the name is that of workload and metric");
    assert!(rules.is_fact("w", "pages") && !rules.is_fact("v", "pages"));
    assert_eq!((rules.margin_of("w", "u"), rules.margin_of("w", "t")), (7.0, 5.0));
    assert!(!Rules::default().is_primary("w", "t"), "none is primary where none is named");
    let error = read(json!({"warm_ups": 1})).unwrap_err().to_string();
    assert!(error.contains("unknown field `warm_ups`") && error.contains("`warm-ups`"), "{error}");
    assert!(read(json!({"blocks": -1})).is_err());
    let plain = written(&Rules::default());
    for absent in ["margins", "primary", "facts", "precision-percent", "budget-s", "seed"] {
        assert_eq!(plain.get(absent), None, "{absent}");
    }
}

#[test]
fn a_kvm_fault_names_the_request_and_the_answer() {
    let fault = |fault: KvmFault| fault.to_string();
    assert_eq!(fault(KvmFault::NoDevice), "/dev/kvm does not exist");
    let error = "Permission denied".to_owned();
    assert_eq!(fault(KvmFault::NotOpened { error }), "/dev/kvm: Permission denied");
    let hung = fault(KvmFault::Hung { limit_s: 9 });
    assert_eq!(hung, "/dev/kvm can be opened, but a guest hung under it for 9 s");
    let ended = KvmFault::Ended { status: "signal 6".to_owned(), said: "abort".to_owned() };
    let expected = json!({"ended": {"status": "signal 6", "said": "abort"}});
    assert_eq!(written(&ended), expected);
    assert_eq!(
        fault(ended),
        "/dev/kvm can be opened, but no guest runs under it (signal 6): \
        abort"
    );
}

#[test]
fn reasons_for_an_accelerator_are_words_and_any_other_text_is_a_sentence() {
    assert_eq!(written(&AcceleratorReason::Requested), "requested");
    assert_eq!(written(&AcceleratorReason::OtherArchitecture), "other-architecture");
    assert_eq!(written(&AcceleratorReason::MemoryEmulator), "memory-emulator");
    let fails = AcceleratorReason::KvmFails(KvmFault::NoDevice);
    assert_eq!(written(&fails), json!({"kvm-fails": "no-device"}));
    let sentence = AcceleratorReason::Sentence("as it was asked for".to_owned());
    assert_eq!(written(&sentence), "as it was asked for");
}

#[test]
fn disturbances_are_written_with_their_figures() {
    let load = |load| Disturbance::Load { on: LoadedMachine::Own, load };
    let own = |load: Value| json!({"kind": "load", "on": "own", "load": load});
    for (disturbance, expected) in [
        (
            load(Load::Stolen { stolen_ms: 7, of_ms: 11 }),
            own(json!({"kind": "stolen", "stolen_ms": 7, "of_ms": 11})),
        ),
        (load(Load::Throttled { events: 3 }), own(json!({"kind": "throttled", "events": 3}))),
        (
            load(Load::Pressure { waited_ms: 1, wall_ms: 2 }),
            own(json!({"kind": "pressure", "waited_ms": 1, "wall_ms": 2})),
        ),
        (
            Disturbance::Guest { guest: "g01".to_owned(), reason: None },
            json!({"kind": "guest", "guest": "g01", "reason": null}),
        ),
        (
            Disturbance::EmulatorReport { reason: "no phase".to_owned() },
            json!({"kind": "emulator-report", "reason": "no phase"}),
        ),
    ] {
        assert_eq!(written(&disturbance), expected);
        assert_eq!(disturbance.is_load(), expected["kind"] == "load");
    }
}

#[test]
fn a_sample_is_disturbed_by_load_only_where_nothing_else_disturbed_it() {
    let load =
        || Disturbance::Load { on: LoadedMachine::Host, load: Load::Throttled { events: 1 } };
    let guest = || Disturbance::Guest { guest: "g".to_owned(), reason: None };
    let is_of_load = |disturbances| {
        Observation { disturbances, ..Observation::default() }.is_disturbed_by_load()
    };
    assert!(!is_of_load(Vec::new()));
    assert!(is_of_load(vec![load(), load()]));
    assert!(!is_of_load(vec![load(), guest()]));
    assert!(!is_of_load(vec![guest()]));
}

#[test]
fn a_quantity_is_stored_next_to_its_value_with_its_direction() {
    let reading = Quantity::higher("SET rps", "1/s").at(2.5);
    let expected = json!({"metric": "SET rps", "unit": "1/s", "better": "higher", "value": 2.5});
    assert_eq!(written(&reading), expected);
    let lower = written(&Quantity::lower("t", "us"));
    assert_eq!(lower, json!({"metric": "t", "unit": "us", "better": "lower"}));
    assert!(serde_json::from_value::<Quantity>(json!({"metric": "t", "unit": "us"})).is_err());
}
