//! Bundled studies, changed on the command line with the keys of their backends.

use numalab_record::study::Setting;
use numalab_study::{BackendSpec, Level, Plan, Study, bundled, bundled_text, parse};
use serde_json::{Map, Value};

use crate::{BACKENDS, knob_settings};

fn changed(key: &str, value: &str) -> Result<Study, String> {
    let mut study =
        parse(bundled_text("guest-scaling").unwrap(), "guest-scaling", BACKENDS).unwrap();
    let kind = BACKENDS.kind("guests").unwrap();
    kind.set(&mut study, key, value).map_err(|error| error.to_string())?;
    Ok(study)
}

fn factors(study: &Study) -> Vec<&str> {
    study.factors.iter().map(|factor| factor.name.as_str()).collect()
}

#[test]
fn several_values_are_levels_and_one_is_a_setting_in_place_of_the_factor() {
    let several = changed("guests", "6,2,6").unwrap();
    let levels: Vec<String> = several.factors[1].levels.iter().map(Level::name).collect();
    assert_eq!(levels, ["2", "6"]);
    let one = changed("guests", "6").unwrap();
    assert_eq!((factors(&one), &one.backend.settings["guests"]), (vec!["numa"], &Value::from(6)));
}

#[test]
fn published_figures_of_remaining_treatments_are_kept() {
    let fewer = changed("guests", "8,16,32").unwrap();
    let names: Vec<&String> = fewer.published[0].values.keys().collect();
    let expected =
        ["numa=off guests=16", "numa=off guests=8", "numa=on guests=16", "numa=on guests=8"];
    assert_eq!(names, expected);
    assert_eq!(changed("workloads", "latency").unwrap().published, []);
    assert_eq!(changed("guests", "6").unwrap().published, [], "no such treatment was published");
}

#[test]
fn this_dom0_was_booted_with_or_without_nodes() {
    assert_eq!(factors(&changed("on-this-dom0", "true").unwrap()), ["guests"]);
    assert_eq!(factors(&changed("on-this-dom0", "false").unwrap()), ["numa", "guests"]);
}

/// Returns the bundled study with this change, after writing and reading it back.
fn kept(name: &str, key: &str, value: &str) -> Result<Study, String> {
    let mut study = parse(bundled_text(name).unwrap(), name, BACKENDS).unwrap();
    let kind = BACKENDS.kind(&study.backend.kind).unwrap();
    kind.set(&mut study, key, value).map_err(|error| error.to_string())?;
    parse(&study.to_toml().unwrap(), name, BACKENDS).map_err(|error| error.to_string())
}

#[test]
fn every_workload_of_every_bundled_study_can_be_run_alone() {
    for (name, text) in bundled() {
        let whole = parse(text, name, BACKENDS).unwrap();
        for workload in &whole.workloads {
            let alone = kept(name, "workloads", workload.name())
                .unwrap_or_else(|error| panic!("{name} {}: {error}", workload.name()));
            let own = format!("{}.", workload.name());
            let is_own = |metric: &String| metric.starts_with(&own);
            assert_eq!(alone.workloads.len(), 1);
            let primary = whole.rules.primary.clone().filter(is_own);
            assert_eq!(alone.rules.primary, primary, "{name}");
            let kind = BACKENDS.kind(&alone.backend.kind).unwrap();
            let plan = Plan::new(alone, 0).unwrap();
            if ["host", "linux-guest"].contains(&kind.name) {
                let is_knob = |name: &str| {
                    let host = knob_settings::find("host:", name);
                    host.or_else(|| knob_settings::find("", name)).is_some()
                };
                knob_settings::check_names(&plan.scope(), kind, is_knob)
                    .unwrap_or_else(|error| panic!("{name}: {error}"));
            }
        }
    }
    let redis = kept("hugepages", "workloads", "redis").unwrap();
    let names: Vec<&String> = match &redis.factors[1].levels[1] {
        Level::Named(named) => named.set.keys().collect(),
        Level::Value(value) => panic!("{value}"),
    };
    assert_eq!(names, ["huge_2m_pages", "thp_enabled"], "hugetlb was sysbench's");
    assert_eq!(redis.rules.primary, None, "it was of the chase");
}

#[test]
fn levels_with_names_are_chosen_by_them_and_a_single_one_is_held() {
    let names = |study: &Study, factor: usize| -> Vec<String> {
        study.factors[factor].levels.iter().map(Level::name).collect()
    };
    let two = kept("hugepages-host", "pages", "thp,4k").unwrap();
    assert_eq!(names(&two, 0), ["thp", "4k"], "the first is the baseline");
    assert_eq!(two.factors[0].levels[0].settings("pages").len(), 5, "with all that they set");
    let held = kept("hugepages", "host", "2m").unwrap();
    assert_eq!((held.factors.len(), names(&held, 0)), (1, vec!["4k".into(), "2m".into()]));
    let set = held.factors[0].levels[0].settings("guest");
    assert_eq!(set["guest-memory"], Setting::Text("2m".to_owned()));
    let one = kept("hugepages-host", "pages", "2m").unwrap_err();
    let expected = "--set pages: 2m: expected two levels or more, because no other factor varies, of \
                    4k, thp, 2m, 1g";
    assert!(one.contains(expected), "{one}");
    let one = kept("noise", "label", "a").unwrap_err();
    let expected = "--set label: a: expected two levels or more, because no other factor varies";
    assert!(one.contains(expected), "{one}");
    let off = kept("guest-scaling", "numa", "off").unwrap();
    assert_eq!(factors(&off), ["guests"]);
    let set = off.factors[0].levels[1].settings("guests");
    assert_eq!(set["numa"], Setting::Text("off".to_owned()));
    assert_eq!(set["guests"], Setting::Integer(8));
    let none = kept("hugepages", "pages", "4k").unwrap_err();
    assert!(
        none.contains("a factor of this study (host=4k,2m; guest=4k,2m), or one of "),
        "{none}"
    );
    let none = kept("hugepages-host", "pages", "4k,3m").unwrap_err();
    assert!(none.contains("--set pages: 3m: expected one of 4k, thp, 2m, 1g"), "{none}");
}

#[test]
fn settings_that_cannot_be_changed_are_refused_with_those_that_can() {
    for (key, value, words) in [
        ("guests", "65", "--set guests: 65: expected 1 to 64"),
        ("guests", "4,65", "setting guests: 65: expected 1 to 64"),
        ("hypervisor", "kvm", "--set hypervisor: kvm: expected xen or qemu"),
        ("workloads", "sdet", "expected one of dbench, mix, latency, bandwidth"),
        ("emulate_latency", "100", "did you mean `emulate-latency`?"),
        (
            "color",
            "red",
            "no such factor or setting: expected a factor of this study (numa=off,on; \
             guests=4,8,12,16), or one of hypervisor, ",
        ),
    ] {
        let message = changed(key, value).unwrap_err();
        assert!(message.contains(words), "{message}");
    }
}

fn about_s(set: &[(&str, &str)]) -> f64 {
    let text = bundled_text("guest-scaling").unwrap();
    let mut study = parse(text, "guest-scaling", BACKENDS).unwrap();
    let owned = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
    let set: Vec<_> = set.iter().map(owned).collect();
    BACKENDS.kind("guests").unwrap().set_all(&mut study, &set).unwrap();
    study.rules.about_block_s.unwrap()
}

#[test]
fn fewer_guests_and_workloads_take_less_time_and_emulated_memory_more() {
    let whole = about_s(&[]);
    let dbench = ("workloads", "dbench");
    let one = about_s(&[dbench]);
    // A boot is most of the time, whatever runs in it.
    assert!(whole / 4.0 < one && one < whole, "{one} of {whole}");
    let four = about_s(&[dbench, ("guests", "4")]);
    assert!(one / 16.0 < four && four < one / 4.0, "{four} of {one}");
    assert!(about_s(&[dbench, ("emulate-latency", "100")]) > one);
}

#[test]
fn time_is_virtual_with_emulated_memory() {
    let of = |kind: &str, key: &str, value: &str| {
        let settings = Map::from_iter([(key.to_owned(), Value::from(value))]);
        let spec = BackendSpec { kind: kind.to_owned(), settings };
        (BACKENDS.kind(kind).unwrap().is_virtual)(&spec)
    };
    assert!(!of("linux-guest", "emulate", "2"));
    assert!(of("linux-guest", "emulate-tiers", "1G@100ns,1G@300ns"));
    assert!(of("guests", "emulate-bandwidth", "10G"));
    assert!(!of("kernel", "emulate-latency", "100"));
    assert!(of("kernel", "where", "emulator"));
}
