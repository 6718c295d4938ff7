//! Checks the consistency of a machine's description.

use super::error::{LEAST_MB_S, MOST_LINES};
use super::{
    CacheLevel, Calls, Core, Faults, MOST_NODES, MOST_VCPUS, Machine, MachineError, PAGE_BITS,
    SCHEMA, Scope, Timing, TlbPart, page_size,
};
use crate::curve::Curve;
use alloc::vec::Vec;

/// Maximum number of cycles of an instruction.
const MOST_CYCLES: f64 = 1000.0;

/// Limit of physical addresses (Intel SDM 3A, 4.1.4).
const ADDRESS_END: u64 = 1 << 52;
/// One second, longer than any access.
const MOST_NS: f64 = 1e9;
/// One exabyte per second, beyond any memory.
const MOST_MB_S: f64 = 1e12;

impl Machine {
    /// Checks the consistency of the description.
    ///
    /// # Errors
    ///
    /// [`MachineError`] for the first fault found.
    pub fn check(&self) -> Result<(), MachineError> {
        if self.schema != SCHEMA {
            return Err(MachineError::Schema { found: self.schema.clone() });
        }
        count("nodes", self.nodes.len(), MOST_NODES)?;
        count("vCPUs", self.cpus.len(), MOST_VCPUS)?;
        let last = self.nodes.len() - 1;
        for (vcpu, &node) in self.cpus.iter().enumerate() {
            if node > last {
                return Err(MachineError::NoSuchNode { vcpu, node, last });
            }
        }
        if let Some(groups) = &self.l3_groups {
            length("l3_groups", groups.len(), self.cpus.len(), "vCPU")?;
        }
        self.check_ranges()?;
        self.check_matrix("latency_ns", &self.latency_ns, latency)?;
        if let Some(stores) = &self.store_latency_ns {
            self.check_matrix("store_latency_ns", stores, latency)?;
        }
        latency("other_page_ns", self.other_page_ns)?;
        let mut faults = self.faults.iter().flat_map(Faults::all);
        faults.try_for_each(|(name, ns)| latency(name, ns))?;
        let mut calls = self.calls.iter().flat_map(Calls::all);
        calls.try_for_each(|(name, ns)| latency(name, ns))?;
        if let Some(nodes) = &self.node_bandwidth_mb_s {
            self.check_row("node_bandwidth_mb_s", nodes, bandwidth)?;
        }
        if let Some(links) = &self.link_bandwidth_mb_s {
            self.check_matrix("link_bandwidth_mb_s", links, bandwidth)?;
        }
        self.check_load()?;
        self.core.as_ref().map_or(Ok(()), check_core)?;
        self.check_tlb()?;
        self.caches.iter().try_for_each(|cache| self.check_cache(cache))?;
        self.check_lines()?;
        self.check_transfers()
    }

    fn check_transfers(&self) -> Result<(), MachineError> {
        let Some(transfers) = &self.transfers else { return Ok(()) };
        latency("transfers group_ns", transfers.group_ns)?;
        self.check_matrix("transfers node_ns", &transfers.node_ns, latency)?;
        let own = self.caches.iter().any(|cache| cache.scope == Scope::Cpu);
        if own { Ok(()) } else { Err(MachineError::NoOwnCaches) }
    }

    fn check_tlb(&self) -> Result<(), MachineError> {
        let Some(tlb) = &self.tlb else { return Ok(()) };
        count("arrays of the TLB", tlb.parts.len(), 16)?;
        count("walkers", tlb.walkers as usize, 64)?;
        latency("tlb walk_ns", tlb.walk_ns)?;
        if let Some(bytes) = tlb.host_page_bytes.filter(|&bytes| page_size(bytes).is_none()) {
            return Err(MachineError::HostPages { bytes });
        }
        tlb.parts.iter().try_for_each(check_tlb_part)?;
        if tlb.upper_entries > 1024 {
            let (what, most) = ("upper entries of page tables", 1024);
            return Err(MachineError::Count { what, found: tlb.upper_entries as usize, most });
        }
        let last = self.nodes.len() - 1;
        match tlb.tables_node.filter(|&node| node > last) {
            Some(node) => Err(MachineError::NoNodeForTables { node, last }),
            None => Ok(()),
        }
    }

    fn check_load(&self) -> Result<(), MachineError> {
        let both = |bandwidth, load| Err(MachineError::BandwidthAndLoad { bandwidth, load });
        if self.node_bandwidth_mb_s.is_some() && self.node_load.is_some() {
            return both("node_bandwidth_mb_s", "node_load");
        }
        if self.link_bandwidth_mb_s.is_some() && self.link_load.is_some() {
            return both("link_bandwidth_mb_s", "link_load");
        }
        let row = |field, row: &[Vec<Curve>]| {
            length(field, row.len(), self.nodes.len(), "node")?;
            let check = |curves: &Vec<Curve>| Curve::check(curves);
            row.iter().try_for_each(check).map_err(|error| MachineError::Curve { field, error })
        };
        self.node_load.as_ref().map_or(Ok(()), |nodes| row("node_load", nodes))?;
        let Some(links) = &self.link_load else { return Ok(()) };
        length("link_load", links.len(), self.nodes.len(), "node")?;
        links.iter().try_for_each(|links| row("link_load", links))
    }

    /// Checks that all caches together fit into the host's memory.
    fn check_lines(&self) -> Result<(), MachineError> {
        let lines = |cache: &CacheLevel| {
            let each = cache.size_bytes / u64::from(cache.line_bytes);
            each.saturating_mul(self.instances(cache.scope) as u64)
        };
        let lines = self.caches.iter().map(lines).fold(0, u64::saturating_add);
        if lines > MOST_LINES { Err(MachineError::Lines { lines }) } else { Ok(()) }
    }

    fn check_ranges(&self) -> Result<(), MachineError> {
        let mut seen: Vec<(u64, u64)> = Vec::new();
        for (at, node) in self.nodes.iter().enumerate() {
            if self.nodes[..at].iter().any(|other| other.id == node.id) {
                return Err(MachineError::NodeTwice { id: node.id });
            }
            for &(start, end) in &node.ranges {
                let fault = |problem| MachineError::Range { start, end, id: node.id, problem };
                if start >= end {
                    return Err(fault("is empty"));
                }
                if end > ADDRESS_END {
                    return Err(fault("ends above 2^52"));
                }
                if seen.iter().any(|other| start < other.1 && other.0 < end) {
                    return Err(fault("overlaps another one"));
                }
                seen.push((start, end));
            }
        }
        if seen.is_empty() {
            return Err(MachineError::Count { what: "memory ranges", found: 0, most: usize::MAX });
        }
        Ok(())
    }

    fn check_matrix(
        &self,
        field: &'static str,
        rows: &[Vec<f64>],
        check: Check,
    ) -> Result<(), MachineError> {
        length(field, rows.len(), self.nodes.len(), "node")?;
        rows.iter().try_for_each(|row| self.check_row(field, row, check))
    }

    fn check_row(
        &self,
        field: &'static str,
        row: &[f64],
        check: Check,
    ) -> Result<(), MachineError> {
        length(field, row.len(), self.nodes.len(), "node")?;
        row.iter().try_for_each(|&value| check(field, value))
    }

    fn check_cache(&self, cache: &CacheLevel) -> Result<(), MachineError> {
        let fault = |problem| Err(MachineError::Cache { level: cache.level, problem });
        latency("caches latency_ns", cache.latency_ns)?;
        latency("caches life_ns", cache.life_ns)?;
        if !cache.line_bytes.is_power_of_two() || cache.line_bytes < 8 {
            return fault("line_bytes must be a power of two of 8 or more");
        }
        if self.caches.iter().any(|other| other.line_bytes != cache.line_bytes) {
            return fault("line_bytes must be the same on every level");
        }
        let set_bytes = u64::from(cache.ways) * u64::from(cache.line_bytes);
        if set_bytes == 0 || cache.ways > 1024 || cache.size_bytes > 1 << 32 {
            return fault("expected 1 to 1024 ways and at most 4 GiB");
        }
        if cache.size_bytes == 0 || !cache.size_bytes.is_multiple_of(set_bytes) {
            return fault("size_bytes must be a whole number of sets: ways x line_bytes");
        }
        let nearer = self.caches.iter().filter(|other| other.level < cache.level);
        if cache.scope == Scope::Cpu && nearer.clone().any(|other| other.scope == Scope::Group) {
            return fault("a private cache cannot be behind a shared one");
        }
        if self.caches.iter().filter(|other| other.level == cache.level).count() > 1 {
            return fault("is listed twice");
        }
        Ok(())
    }
}

fn check_tlb_part(part: &TlbPart) -> Result<(), MachineError> {
    let level = part.level;
    latency("tlb latency_ns", part.latency_ns)?;
    count("sizes of pages of the TLB", part.page_bytes.len(), PAGE_BITS.len())?;
    let is_none = |bytes: &&u64| !PAGE_BITS.iter().any(|bits| **bytes == 1 << bits);
    if let Some(&bytes) = part.page_bytes.iter().find(is_none) {
        return Err(MachineError::Page { level, bytes });
    }
    count("entries of the TLB", part.entries as usize, 1 << 16)?;
    count("ways of the TLB", part.ways as usize, 1 << 16)?;
    let whole = part.entries.is_multiple_of(part.ways);
    if whole { Ok(()) } else { Err(MachineError::TlbSets { level }) }
}

fn check_core(core: &Core) -> Result<(), MachineError> {
    count("misses at a time", core.misses as usize, 1024)?;
    count("instructions looked ahead", core.instructions as usize, 65_536)?;
    count("lines fetched ahead", core.prefetch.map_or(1, |lines| lines as usize), 1024)?;
    count("lines written at a time", core.writes.map_or(1, |lines| lines as usize), 1024)?;
    core.atomic_ns.map_or(Ok(()), |ns| latency("core atomic_ns", ns))?;
    core.branch_ns.map_or(Ok(()), |ns| latency("core branch_ns", ns))?;
    time("core ns_per_instruction", core.ns_per_instruction)?;
    core.timing.as_ref().map_or(Ok(()), check_timing)
}

fn check_timing(timing: &Timing) -> Result<(), MachineError> {
    time("core cycle_ns", timing.cycle_ns)?;
    count("instructions a cycle", timing.width as usize, 64)?;
    timing.all().into_iter().try_for_each(|(field, takes)| {
        figure(field, takes.latency, MOST_CYCLES)?;
        figure(field, takes.each, MOST_CYCLES)
    })
}

fn time(field: &'static str, ns: f64) -> Result<(), MachineError> {
    let most = 1000.0;
    if ns >= 0.001 {
        figure(field, ns, most)
    } else {
        Err(MachineError::Figure { field, value: ns, most })
    }
}

fn count(what: &'static str, found: usize, most: usize) -> Result<(), MachineError> {
    if (1..=most).contains(&found) {
        Ok(())
    } else {
        Err(MachineError::Count { what, found, most })
    }
}

fn length(
    field: &'static str,
    found: usize,
    expected: usize,
    per: &'static str,
) -> Result<(), MachineError> {
    if found == expected {
        Ok(())
    } else {
        Err(MachineError::Length { field, found, expected, per })
    }
}

/// A check of a field's figure.
type Check = fn(&'static str, f64) -> Result<(), MachineError>;

fn latency(field: &'static str, ns: f64) -> Result<(), MachineError> {
    figure(field, ns, MOST_NS)
}

fn bandwidth(field: &'static str, mb_s: f64) -> Result<(), MachineError> {
    if mb_s > 0.0 && mb_s < LEAST_MB_S {
        return Err(MachineError::Bandwidth { field, value: mb_s });
    }
    figure(field, mb_s, MOST_MB_S)
}

fn figure(field: &'static str, value: f64, most: f64) -> Result<(), MachineError> {
    if (0.0..=most).contains(&value) {
        Ok(())
    } else {
        Err(MachineError::Figure { field, value, most })
    }
}
