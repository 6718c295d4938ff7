//! Computes the times that the model of a machine gives for the probes of a capture, so that a
//! captured figure can be solved for.

use alloc::string::String;
use alloc::vec;
use core::time::Duration;

use crate::address::Addressing;
use crate::arguments::Arguments;
use crate::counters::Kind;
use crate::engine::{Access, Engine, PS_PER_INSTRUCTION};
use crate::machine::{CacheLevel, Tlb};

const PAGE_BYTES: u64 = 4096;
const LINE_BYTES: u64 = 64;
/// The addresses of the pages: at different offsets in a large page, so that none looks like a
/// large page.
const FIRST_BYTES: u64 = 1 << 20;
const FIRST_VIRTUAL_BYTES: u64 = (1 << 40) + PAGE_BYTES;
/// Loads that fill the caches, one for each line of 32 MiB, and loads that are timed.
const WARM_LOADS: u64 = 1 << 19;
const LOADS: u64 = 1 << 16;
/// Maximum number of steps to a latency.
const STEPS: usize = 4;

/// The order in which a probe visits pages or lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Visits {
    /// One after the other.
    InOrder,
    /// In random order, which no prefetcher follows.
    Random,
}

impl Visits {
    /// Returns the next of `count` items after one. The random order is of full period for a power of
    /// two (D. Knuth, The Art of Computer Programming, 3.2.1.2).
    fn after(self, item: u64, count: u64) -> u64 {
        match self {
            Self::InOrder => (item + 1) % count,
            Self::Random => {
                item.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f) % count
            }
        }
    }
}

/// Returns the mean time in ns that translation adds to a load of one line in each of a number of
/// small pages, on a core with these caches.
///
/// # Panics
/// If the pages are more than 1 GiB.
pub fn translation_ns(caches: &[CacheLevel], tlb: &Tlb, pages: u64, order: Visits) -> f64 {
    assert!(pages <= 1 << 18, "{pages} pages, expected at most 1 GiB of them");
    let Some(engine) = engine(caches, Some(tlb), 100.0) else { return 0.0 };
    let pages = pages.max(1);
    let mut page = 0;
    let mut pass = || {
        let before_ps = engine.counters.of(0, 0).translation_ps.get();
        let mut active = engine.enter(0);
        for _ in 0..pages {
            page = order.after(page, pages);
            active.access(load(page * PAGE_BYTES + page % (PAGE_BYTES / LINE_BYTES) * LINE_BYTES));
        }
        engine.counters.of(0, 0).translation_ps.get() - before_ps
    };
    // The first pass fills caches and TLBs.
    pass();
    pass() as f64 / 1000.0 / pages as f64
}

/// Returns the latency of memory in ns at which dependent loads of random lines in `bytes` of small
/// pages take `load_ns` each, on a core with these caches; `None` if it makes no difference.
///
/// # Panics
/// If `bytes` is more than 1 GiB.
pub fn memory_ns(caches: &[CacheLevel], tlb: &Tlb, bytes: u64, load_ns: f64) -> Option<f64> {
    assert!(bytes <= 1 << 30, "{bytes} bytes, expected at most 1 GiB");
    let lines = (bytes / LINE_BYTES).max(1);
    let takes_ns = |memory_ns: f64| {
        let engine = engine(caches, Some(tlb), memory_ns)?;
        let mut line = 0;
        let mut pass = |loads: u64| {
            let before_ps = engine.counters.of(0, 0).cost_ps.get();
            let mut active = engine.enter(0);
            for _ in 0..loads {
                line = Visits::Random.after(line, lines);
                active.access(load(line * LINE_BYTES));
            }
            engine.counters.of(0, 0).cost_ps.get() - before_ps
        };
        pass(WARM_LOADS);
        Some(pass(LOADS) as f64 / 1000.0 / LOADS as f64)
    };
    // Each miss of a line or of a page table adds the latency once. Other users of a cache evict
    // more in a longer time, so the dependence is not quite linear.
    let mut low = (100.0, takes_ns(100.0)?);
    let mut found_ns = 200.0;
    for _ in 0..STEPS {
        let found = (found_ns, takes_ns(found_ns)?);
        let misses = (found.1 - low.1) / (found.0 - low.0);
        if misses.is_nan() || misses <= 0.0 {
            return None;
        }
        found_ns = found.0 + (load_ns - found.1) / misses;
        if (found_ns - found.0).abs() < 1.0 || found_ns <= 0.0 {
            break;
        }
        low = found;
    }
    Some(found_ns)
}

/// Returns a machine of one core with these caches and this latency of memory.
fn engine(caches: &[CacheLevel], tlb: Option<&Tlb>, memory_ns: f64) -> Option<Engine> {
    let text = "cpus=0,memory=2G,latency=100,mode=count";
    let mut arguments = Arguments::parse(text.split(','), |_| Ok(String::new())).ok()?;
    arguments.machine.latency_ns = vec![vec![memory_ns]];
    arguments.machine.caches = caches.to_vec();
    arguments.machine.tlb = tlb.cloned();
    Some(Engine::new(arguments, Addressing::Physical, PS_PER_INSTRUCTION, || Duration::ZERO))
}

fn load(at: u64) -> Access {
    Access {
        address: FIRST_BYTES + at,
        virtual_address: FIRST_VIRTUAL_BYTES + at,
        kind: Kind::Load,
        bytes: 8,
        position: 0,
        table: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::{Scope, TlbPart};

    fn cache(level: u8, size_bytes: u64, latency_ns: f64) -> CacheLevel {
        CacheLevel {
            level,
            size_bytes,
            ways: 16,
            line_bytes: 64,
            scope: Scope::Cpu,
            latency_ns,
            life_ns: 0.0,
        }
    }

    fn tlb() -> Tlb {
        let part = TlbPart {
            level: 1,
            page_bytes: [PAGE_BYTES].to_vec(),
            entries: 64,
            ways: 64,
            latency_ns: 0.0,
        };
        Tlb {
            parts: [part].to_vec(),
            upper_entries: 64,
            walkers: 4,
            walk_ns: 3.0,
            host_page_bytes: None,
            tables_node: None,
        }
    }

    #[test]
    fn a_walk_of_guest_tables_on_small_pages_costs_two_hits_and_the_walk_time() {
        let caches = [cache(1, 32 << 10, 1.0), cache(2, 2 << 20, 5.0)];
        let mut tlb = tlb();
        // Page tables of 64 KiB, half of which the nearest cache could hold if it had no other
        // lines.
        let alone_ns = translation_ns(&caches, &tlb, 8192, Visits::Random);
        assert!((6.0..9.0).contains(&alone_ns), "{alone_ns}");
        tlb.host_page_bytes = Some(PAGE_BYTES);
        let nested_ns = translation_ns(&caches, &tlb, 8192, Visits::Random);
        assert!((alone_ns + 3.0..alone_ns + 9.0).contains(&nested_ns), "{nested_ns}");
        assert_eq!(translation_ns(&caches, &tlb, 32, Visits::Random), 0.0, "the TLB has them");
    }

    #[test]
    fn walks_in_order_find_the_tables_of_the_page_before_and_random_ones_do_not() {
        let caches = [cache(1, 32 << 10, 1.0), cache(2, 2 << 20, 5.0)];
        let [in_order, random] = [Visits::InOrder, Visits::Random]
            .map(|order| translation_ns(&caches, &tlb(), 8192, order));
        // Eight entries share a line.
        assert!((4.4..5.2).contains(&in_order), "{in_order}");
        assert!(random > in_order + 1.0, "{random}");
    }

    #[test]
    fn memory_takes_what_a_random_load_takes_less_its_walk_and_hits() {
        let bytes = 64 << 20;
        let tlb = tlb();
        let of = |bytes, load_ns| memory_ns(&[cache(1, 1 << 20, 1.0)], &tlb, bytes, load_ns);
        // Each line is loaded once before the first one is loaded again.
        let with = of(bytes, 150.0).unwrap();
        assert!((142.0..147.0).contains(&with), "{with}");
        assert!(of(bytes, 250.0).unwrap() > with + 90.0);
        assert_eq!(of(1 << 18, 150.0), None, "all hit");
    }
}
