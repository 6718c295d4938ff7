//! Computes the times that the model of a machine gives for the probes of a capture, so that a
//! captured figure can be solved for.

use alloc::string::String;
use core::time::Duration;

use crate::address::Addressing;
use crate::arguments::Arguments;
use crate::counters::Kind;
use crate::engine::{Access, Engine, PS_PER_INSTRUCTION};
use crate::machine::{CacheLevel, Tlb};

const PAGE_BYTES: u64 = 4096;
const LINE_BYTES: u64 = 64;
/// The addresses of the pages: at different offsets in a large page, so that none is taken for one.
const FIRST_BYTES: u64 = 1 << 20;
const FIRST_VIRTUAL_BYTES: u64 = (1 << 40) + PAGE_BYTES;

/// Returns the mean time in ns that translation adds to a load of one line in each of a number of
/// small pages in random order, on a core with these caches.
///
/// # Panics
/// If the pages are more than 1 GiB.
pub fn translation_ns(caches: &[CacheLevel], tlb: &Tlb, pages: u64) -> f64 {
    assert!(pages <= 1 << 18, "{pages} pages, expected at most 1 GiB of them");
    let text = "cpus=0,memory=2G,latency=100,mode=count";
    let arguments = Arguments::parse(text.split(','), |_| Ok(String::new()));
    let Ok(mut arguments) = arguments else { return 0.0 };
    arguments.machine.caches = caches.to_vec();
    arguments.machine.tlb = Some(tlb.clone());
    let engine =
        Engine::new(arguments, Addressing::Physical, PS_PER_INSTRUCTION, || Duration::ZERO);
    let pass = |seed: u64| {
        let before_ps = engine.counters.of(0, 0).translation_ps.get();
        let mut active = engine.enter(0);
        let mut page = seed % pages.max(1);
        for _ in 0..pages {
            // Of full period for a power of two (D. Knuth, The Art of Computer Programming, 3.2.1.2).
            page = (page.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f))
                % pages;
            let at = page * PAGE_BYTES + page % (PAGE_BYTES / LINE_BYTES) * LINE_BYTES;
            active.access(Access {
                address: FIRST_BYTES + at,
                virtual_address: FIRST_VIRTUAL_BYTES + at,
                kind: Kind::Load,
                bytes: 8,
                position: 0,
                table: None,
            });
        }
        engine.counters.of(0, 0).translation_ps.get() - before_ps
    };
    // The first pass fills caches and TLBs.
    pass(0);
    pass(0) as f64 / 1000.0 / pages.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::{Scope, TlbPart};

    #[test]
    fn a_walk_of_a_guest_s_tables_on_small_pages_takes_two_hits_and_its_own_time() {
        let cache = |level, size_bytes, scope, latency_ns| CacheLevel {
            level,
            size_bytes,
            ways: 16,
            line_bytes: 64,
            scope,
            latency_ns,
        };
        let caches = [cache(1, 32 << 10, Scope::Cpu, 1.0), cache(2, 2 << 20, Scope::Cpu, 5.0)];
        let part = TlbPart {
            level: 1,
            page_bytes: [PAGE_BYTES].to_vec(),
            entries: 64,
            ways: 64,
            latency_ns: 0.0,
        };
        let mut tlb = Tlb {
            parts: [part].to_vec(),
            upper_entries: 64,
            walkers: 4,
            walk_ns: 3.0,
            walk_each_ns: 0.0,
            host_page_bytes: None,
            tables_node: None,
        };
        // Page tables of 64 KiB, half of which the nearest cache could hold without the lines.
        let alone_ns = translation_ns(&caches, &tlb, 8192);
        assert!((6.0..9.0).contains(&alone_ns), "{alone_ns}");
        tlb.host_page_bytes = Some(PAGE_BYTES);
        let nested_ns = translation_ns(&caches, &tlb, 8192);
        assert!((alone_ns + 3.0..alone_ns + 9.0).contains(&nested_ns), "{nested_ns}");
        assert_eq!(translation_ns(&caches, &tlb, 32), 0.0, "the TLB has them");
    }
}
