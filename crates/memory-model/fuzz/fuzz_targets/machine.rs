//! Any text is a machine or an error, and no accesses to any machine end the model.
#![no_main]

use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use numalab_memory_model::address::Addressing;
use numalab_memory_model::arguments::Arguments;
use numalab_memory_model::counters::Kind;
use numalab_memory_model::engine::{Access, Engine};
use numalab_memory_model::machine::Machine;

/// Larger caches cost the fuzzer time, and the model nothing else.
const MOST_BYTES: u64 = 1 << 24;

fuzz_target!(|text: &str| {
    let Ok(machine) = Machine::from_json(text) else {
        return;
    };
    let written = serde_json::to_string(&machine).expect("numbers that JSON held");
    assert_eq!(Machine::from_json(&written).expect("our own JSON"), machine);
    if machine.caches.iter().any(|cache| cache.size_bytes > MOST_BYTES) {
        return;
    }
    let addresses: Vec<u64> = machine.nodes.iter().flat_map(|node| &node.ranges).map(|range| range.0).collect();
    let vcpus = machine.cpus.len();
    for (mode, addressing) in ["count", "virtual", "sleep"].into_iter().zip([Addressing::Physical, Addressing::Blocks, Addressing::Physical]) {
        let words = ["machine=m".to_owned(), format!("mode={mode}")];
        let arguments = Arguments::parse(words.iter().map(String::as_str), |_| Ok(text.to_owned()));
        let engine = Engine::new(arguments.expect("it was read before"), addressing, 1000, || Duration::from_secs(1));
        for round in 0..4_u64 {
            for vcpu in 0..vcpus {
                engine.block(vcpu, round);
                for &address in addresses.iter().chain([&u64::MAX]) {
                    let kind = if round % 2 == 0 { Kind::Load } else { Kind::Store };
                    let address = address.saturating_add(64 * round);
                    engine.enter(vcpu).access(Access { address, virtual_address: address, kind, bytes: 8, position: 0, table: None });
                }
            }
        }
    }
});
