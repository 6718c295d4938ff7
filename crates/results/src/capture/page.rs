//! Remarks on the figures of a captured machine file, in words.

use numalab_memory_model::machine::Family;
use numalab_page::number::{figure, size};
use numalab_record::{Civil, Run};

use crate::capture::{Captured, NoLoad, Remark};

/// Returns the comments at the start of a machine file written by this version: its origin and
/// remarks.
pub fn head(run: &Run, remarks: &[String], version: &str) -> String {
    let title = run.environment.text("cpu_model").unwrap_or("A machine");
    let (nodes, day) = (run.machine.nodes.len(), Civil::of(run.started_unix_ms).minute());
    let mut text = format!(
        "# {title}, {nodes} {}, as measured\n#\n# Measured by numalab {} on {day}, written by \
         numalab {version}.\n",
        if nodes == 1 { "node" } else { "nodes" },
        run.version
    );
    for remark in remarks {
        text.push_str(&format!("# {remark}\n"));
    }
    text
}

/// Returns sentences on the figures, for the terminal and for the file's comments.
pub fn sentences(captured: &Captured) -> Vec<String> {
    let chase = captured.chase.map(|(pattern, bytes, pages)| {
        format!("Latencies are for {pattern} access over {}, {} pages.", size(bytes), pages.name())
    });
    chase.into_iter().chain(captured.remarks.iter().map(sentence)).collect()
}

/// Describes a cache with a latency that is only bounded.
fn hidden(level: u8, at_most_ns: f64) -> String {
    let latency = figure(at_most_ns);
    format!(
        "L{level} shows no plateau, because other load uses most of it; its latency is at most \
         {latency} ns."
    )
}

fn found(level: u8, [found, reported]: [String; 2]) -> String {
    format!("L{level} has the size that the sweep found, {found}; the system reports {reported}.")
}

/// Describes a cache with other users.
fn shared(level: u8, life_ms: f64) -> String {
    format!(
        "Assumed for the L{level}: other guests evict lines that are not used for {life_ms:.1} ms \
         (from the largest chase that stays in it)."
    )
}

fn sentence(remark: &Remark) -> String {
    match remark {
        Remark::NoLatency { from, to } => {
            format!("Omitted: latency from node {from} to node {to}, not measured.")
        }
        Remark::OtherPages { more_ns, load_ns, bytes } => {
            other_pages(*more_ns, *load_ns, &size(*bytes))
        }
        Remark::CacheFound { level, found_bytes, reported_bytes } => {
            found(*level, [found_bytes, reported_bytes].map(|bytes| size(*bytes)))
        }
        Remark::CacheShared { level, life_ns } => shared(*level, life_ns / 1e6),
        Remark::CacheHidden { level, at_most_ns } => hidden(*level, *at_most_ns),
        Remark::NoCache { level } => {
            format!("Omitted: L{level}, which the sweep over sizes did not find.")
        }
        Remark::NoSweep => {
            "Omitted: cache hit latencies, because the run has no sweep over sizes; sizes are \
             those that the system reports."
                .to_owned()
        }
        Remark::CoreDerived { lines, prefetch, gb_per_s, window, per_cycle } => {
            derived(*gb_per_s, (*lines, *prefetch), (*window, *per_cycle))
        }
        Remark::CoreContended { measured, gb_per_s, window, per_cycle } => {
            contended(*gb_per_s, *measured, (*window, *per_cycle))
        }
        Remark::CoreTimed { family } => {
            by_table(*family, "by vendor, family and model, which a hypervisor may change")
        }
        Remark::CoreTimedByL2 { family } => by_table(*family, "by vendor and L2 size"),
        Remark::CoreNearest { family, cpu } => nearest_table(*family, cpu),
        Remark::NoTiming { cpu } => format!(
            "Omitted: instruction latencies by class, because there is no table for cores like \
             this one ({cpu}): each instruction takes the same time."
        ),
        Remark::NoCore => "Omitted: a core's outstanding lines, because the run lacks reads by \
            one CPU alone, its latency or its clock."
            .to_owned(),
        Remark::NoAtomicAdd => "Omitted: the latency of an atomic add, which runs recorded by \
             older versions of numalab lack."
            .to_owned(),
        Remark::NoTransfers => "Omitted: cache-to-cache latencies, because not every kind of pair \
            was measured."
            .to_owned(),
        Remark::NoLoad { node, why } => {
            format!("Omitted: latency under load of node {node}, {}.", why_not(*why))
        }
        Remark::TlbAssumed { upper_entries, walkers } => tlb_assumed(*upper_entries, *walkers),
        Remark::HostPages { bytes } => host_pages(*bytes),
        Remark::LongWalks { walk_ns } => {
            format!("A page walk takes {} ns beyond its accesses to page tables.", figure(*walk_ns))
        }
        Remark::WalkersFound { walkers, read_ns } => format!(
            "{walkers} page walks at a time: independent reads of pages take {} ns each.",
            figure(*read_ns)
        ),
        Remark::NoTlb => "Omitted: the TLB, because its size was not found.".to_owned(),
    }
}

/// Names the table of instruction latencies and how it was chosen.
fn by_table(family: Family, chosen: &str) -> String {
    let family = family.name();
    format!(
        "Instruction latencies are from the published table for {family} cores, chosen {chosen}."
    )
}

fn nearest_table(family: Family, cpu: &str) -> String {
    format!(
        "Assumed: instruction latencies and buffers of {} cores, the nearest with a published \
         table; this core is {cpu}.",
        family.name()
    )
}

fn tlb_assumed(upper_entries: u32, walkers: Option<u32>) -> String {
    let walkers =
        walkers.map_or_else(String::new, |walkers| format!("{walkers} concurrent walks, "));
    format!(
        "Assumed for the TLB: {upper_entries} entries for upper-level page tables, {walkers}and full \
         associativity."
    )
}

fn other_pages(more_ns: f64, load_ns: f64, size: &str) -> String {
    format!(
        "A line outside the pages read last takes {} ns longer: this makes random loads over \
         {size} of small pages, with their page walks and hits, take the measured {} ns.",
        figure(more_ns),
        figure(load_ns)
    )
}

fn derived(gb_per_s: f64, (lines, prefetch): (u32, u32), (window, per_cycle): (u32, u8)) -> String {
    format!(
        "A core has {lines} outstanding lines, by Little's law: alone it reads {} GB/s. Assumed: \
         {prefetch} of them are prefetches, a window of {window} instructions, and an IPC of \
         {per_cycle}.",
        figure(gb_per_s)
    )
}

fn contended(gb_per_s: f64, measured: u32, (window, per_cycle): (u32, u8)) -> String {
    format!(
        "A core alone reads only {} GB/s, which needs {measured} outstanding lines, fewer than \
         its fill buffers: other load used the memory. Assumed: its fill buffers, 20 prefetches, \
         a window of {window} instructions, and an IPC of {per_cycle}.",
        figure(gb_per_s)
    )
}

fn host_pages(bytes: u64) -> String {
    format!(
        "The host has pages of {} behind this guest's memory, judging by the gain of the guest's huge \
         pages; its page tables are walked too.",
        size(bytes)
    )
}

fn why_not(why: NoLoad) -> String {
    match why {
        NoLoad::NotMeasured => "not measured (numalab loaded --surface)".to_owned(),
        NoLoad::Doubtful => "because other load disturbed the measurement".to_owned(),
        NoLoad::NotSaturated { most_mb_s } => format!(
            "because {} GB/s of traffic did not saturate it",
            figure(most_mb_s as f64 / 1000.0)
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use numalab_topology::NodeId;

    #[test]
    fn omissions_are_named_with_the_reason() {
        let node = NodeId(1);
        let remarks = vec![
            Remark::NoLoad { node, why: NoLoad::NotSaturated { most_mb_s: 12_300 } },
            Remark::CacheFound { level: 3, found_bytes: 18 << 20, reported_bytes: 480 << 20 },
            Remark::CacheShared { level: 3, life_ns: 3.66e6 },
        ];
        let captured = Captured { figures: Default::default(), chase: None, remarks };
        let expected = [
            "Omitted: latency under load of node 1, because 12.3 GB/s of traffic did not saturate it.",
            "L3 has the size that the sweep found, 18M; the system reports 480M.",
            "Assumed for the L3: other guests evict lines that are not used for 3.7 ms (from the largest \
             chase that stays in it).",
        ];
        assert_eq!(sentences(&captured), expected);
    }
}
