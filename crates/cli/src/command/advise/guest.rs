//! The guest in which candidates are tried: the described machine with emulated memory.

use numalab_formats::memory_emulator::{
    USUAL_CACHES, USUAL_STAGES, format_bandwidth, format_caches, format_latency, format_stages,
};
use numalab_formats::size::format_bytes;
use numalab_study::BackendSpec;
use serde_json::{Map, Value};

use crate::args::{AdviseArgs, MemoryCostArgs};
use crate::failure::Failure;
use crate::source::describe_guest;

/// Latency of local memory, in ns, unless the arguments give one.
const LATENCY: &str = "100";

/// Returns the backend settings of a study for the machine that the arguments describe.
pub(super) fn spec(args: &AdviseArgs) -> Result<BackendSpec, Failure> {
    let of = &args.machine;
    let is_made = of.emulate.is_some() || of.emulate_tiers.is_some() || of.emulate_like.is_some();
    if !is_made || of.source.is_some() || of.topology.is_some() || of.cxl {
        let given = [
            ("--cxl", of.cxl),
            ("--source", of.source.is_some()),
            ("--topology", of.topology.is_some()),
        ];
        let given = given.into_iter().find(|(_, is_given)| *is_given);
        return Err(Failure::bad_input(format!(
            "--try-on guest {}: expected --emulate, --emulate-tiers without --cxl, or --emulate-like",
            given.map_or("for this machine".to_owned(), |(option, _)| format!("with {option}")),
        )));
    }
    let machine = describe_guest(of)?.machine;
    let mut settings = Map::new();
    let mut set = |name: &str, value: Option<String>| {
        settings.extend(value.map(|value| (name.to_owned(), Value::String(value))));
    };
    set("emulate", of.emulate.clone());
    set("distances", of.distances.clone());
    set("emulate-tiers", of.emulate_tiers.clone());
    set("emulate-like", of.emulate_like.clone());
    if of.emulate_tiers.is_none() {
        set("memory", Some(format_bytes(machine.memory_bytes())));
    }
    let has_tiers = machine.cpu_nodes().len() < machine.memory_nodes().len();
    // Debian's own kernel makes no memory tiers.
    set("kernel", has_tiers.then(|| "backports".to_owned()));
    if of.emulate_like.is_none() {
        costs(&args.costs, of.emulate_tiers.is_some(), &mut set);
    }
    settings.insert("cpus".to_owned(), Value::from(machine.online_cpus().len()));
    settings.insert("watch-output".to_owned(), Value::Bool(true));
    let with = args.with.iter().map(|name| Value::String(name.clone())).collect();
    settings.insert("with".to_owned(), Value::Array(with));
    Ok(BackendSpec { kind: "linux-guest".to_owned(), settings })
}

/// Sets the memory costs to those that the emulation of the program uses.
fn costs(args: &MemoryCostArgs, are_of_tiers: bool, set: &mut impl FnMut(&str, Option<String>)) {
    let latency = args.emulate_latency.as_ref().map(format_latency);
    let usual = (!are_of_tiers).then(|| LATENCY.to_owned());
    set("emulate-latency", latency.or(usual));
    set("emulate-bandwidth", args.emulate_bandwidth.as_ref().and_then(format_bandwidth));
    let caches = args.emulate_cache.as_ref().map(|caches| format_caches(&caches.0));
    set("emulate-cache", caches.or_else(|| Some(USUAL_CACHES.to_owned())));
    let stages = args.emulate_stages.as_ref().map(|stages| format_stages(&stages.0));
    set("emulate-stages", stages.or_else(|| Some(USUAL_STAGES.to_owned())));
}
