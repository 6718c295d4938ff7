use numalab_formats::memory_emulator::{BandwidthModel, LatencyModel};
use serde_json::json;

use super::*;

fn settings(value: Value) -> MemoryCostSettings {
    serde_json::from_value(value).unwrap()
}

fn refused(value: Value) -> String {
    settings(value).costs("linux-guest").unwrap_err().to_string()
}

#[test]
fn without_settings_memory_has_the_default_costs() {
    let none = MemoryCostSettings::default();
    assert!(!none.are_emulated() && !none.are_like_a_machine());
    assert_eq!(none.costs("x").unwrap(), MemoryCosts::default());
    assert_eq!((none.tiers("x").unwrap(), none.latency()), (None, None));
    assert_eq!(none.like("x").unwrap(), None);
}

#[test]
fn caches_and_stages_alone_do_not_enable_emulation() {
    assert!(!settings(json!({ "emulate-cache": "32K" })).are_emulated());
    assert!(!settings(json!({ "emulate-stages": "load" })).are_emulated());
    for name in ["emulate-latency", "emulate-bandwidth", "emulate-tiers", "emulate-like"] {
        assert!(settings(json!({ name: "x" })).are_emulated(), "{name}");
    }
    assert!(settings(json!({ "emulate-like": "x" })).are_like_a_machine());
}

#[test]
fn costs_are_read_as_written() {
    let latency = |text| settings(json!({ "emulate-latency": text })).costs("x").unwrap().latency;
    assert_eq!(latency("100"), LatencyModel::Distance { local_ns: 100.0 });
    assert_eq!(latency("flat:90"), LatencyModel::Flat { ns: 90.0 });
    assert_eq!(latency("hmat"), LatencyModel::Firmware);
    let of = settings(json!({ "emulate-latency": "100", "emulate-cache": "32K,1M" }));
    assert_eq!(of.costs("x").unwrap().caches.len(), 2);
    let of = settings(json!({ "emulate-bandwidth": "10G" })).costs("x").unwrap();
    assert_ne!(of.bandwidth, BandwidthModel::default());
}

#[test]
fn tiers_have_latencies_that_a_separate_setting_overrides() {
    let of = settings(json!({ "emulate-tiers": "1G@100ns,1G@300ns" }));
    assert_eq!(of.tiers("x").unwrap().unwrap().tiers.len(), 2);
    assert_eq!(of.costs("x").unwrap().latency, LatencyModel::Firmware);
    let flat = settings(json!({
        "emulate-tiers": "1G@100ns,1G@300ns",
        "emulate-latency": "flat:90"
    }));
    assert_eq!(flat.costs("x").unwrap().latency, LatencyModel::Flat { ns: 90.0 });
}

#[test]
fn memory_costs_are_shown_as_written_with_the_latency_first() {
    let latency = |value| settings(value).latency();
    assert_eq!(latency(json!({ "emulate-latency": "100" })).as_deref(), Some("100 ns"));
    assert_eq!(latency(json!({ "emulate-tiers": "1G@1ns" })).as_deref(), Some("tiers 1G@1ns"));
    assert_eq!(latency(json!({ "emulate-like": "box" })).as_deref(), Some("like box"));
    let all = json!({ "emulate-latency": "7", "emulate-tiers": "t", "emulate-like": "l" });
    assert_eq!(latency(all).as_deref(), Some("7 ns"));
    assert_eq!(latency(json!({ "emulate-bandwidth": "10G" })), None);
}

#[test]
fn an_invalid_cost_is_quoted_with_its_setting() {
    for (name, text) in [
        ("emulate-latency", "fast"),
        ("emulate-latency", "-1"),
        ("emulate-bandwidth", "much"),
        ("emulate-cache", "32Q"),
        ("emulate-stages", "unload"),
        ("emulate-tiers", "1G"),
    ] {
        let message = refused(json!({ name: text }));
        let start = format!("backend.linux-guest.{name}: {text:?}: expected ");
        assert!(message.starts_with(&start), "{message}");
        assert!(message.len() > start.len(), "{message}");
    }
}

#[test]
fn an_imitated_machine_is_in_the_gallery_or_a_file() {
    let like = |name: &str| settings(json!({ "emulate-like": name })).like("guests");
    assert_eq!(like("xeon-8360y-2s").unwrap().unwrap().machine.nodes.len(), 2);
    let message = like("/no/such.toml").unwrap_err().to_string();
    let start = "backend.guests.emulate-like: \"/no/such.toml\": expected a file, or one of epyc-";
    assert!(message.starts_with(start), "{message}");
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("machine.toml");
    std::fs::write(&path, "no machine").unwrap();
    let message = like(&path.to_string_lossy()).unwrap_err().to_string();
    assert!(message.starts_with("backend.guests.emulate-like: "), "{message}");
}
