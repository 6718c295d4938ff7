//! The memory system to emulate: nodes, vCPUs, latencies, bandwidths, caches.

use alloc::string::String;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

use crate::curve::Curve;

/// Name of the format that [`Machine`] is read from.
pub const SCHEMA: &str = "numalab-emulator-machine/1";
/// Maximum number of nodes that the virtual PMU has room for.
pub const MOST_NODES: usize = 16;
/// Maximum number of vCPUs that the 64 KiB of the virtual PMU have room for.
pub const MOST_VCPUS: usize = 255;
/// Unloaded latency to assume for load curves if the machine's latency is 0.
const LEAST_UNLOADED_NS: f64 = 1.0;

mod calls;
mod check;
mod core;
mod error;
mod faults;
mod timing;
mod tlb;
pub use calls::{Calls, SystemCall};
pub use core::Core;
pub use error::MachineError;
pub use faults::{Fault, Faults};
pub use timing::family::Family;
pub(crate) use timing::family::Renaming;
pub use timing::family::identity::{Found, Identity};
pub use timing::{CLASSES, Class, Takes, Timing};
pub(crate) use tlb::{PAGE_BITS, page_size};
pub use tlb::{Tlb, TlbPart};

/// A node and the guest-physical memory on it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Node {
    /// The node's number as the guest knows it.
    pub id: u32,
    /// Guest-physical ranges, start and end (exclusive); none on a memory-less node.
    #[serde(default)]
    pub ranges: Vec<(u64, u64)>,
}

/// The vCPUs that share a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// Each vCPU has a private cache.
    Cpu,
    /// The vCPUs of an L3 group share a cache.
    Group,
}

/// One level of the caches.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CacheLevel {
    /// The level; 1 is the nearest.
    pub level: u8,
    /// Total bytes: lines × ways × sets.
    pub size_bytes: u64,
    /// Lines per set.
    pub ways: u32,
    /// Bytes per line: a power of two, the same on every level.
    pub line_bytes: u32,
    /// The vCPUs that share it.
    pub scope: Scope,
    /// Cost of a hit in addition to the instruction's own time, in ns.
    #[serde(default)]
    pub latency_ns: f64,
    /// Mean time in ns after which other users of the cache, such as other guests of a host, evict
    /// an unused line; 0 if there are none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub life_ns: f64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
fn is_zero(figure: &f64) -> bool {
    *figure == 0.0
}

/// Latencies of lines from other vCPUs' caches, in ns: half a round trip.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Transfers {
    /// Between vCPUs of one L3 group.
    pub group_ns: f64,
    /// Between vCPUs of different groups, in ns: rows are the node of the vCPU that takes the line,
    /// columns that of the previous holder.
    pub node_ns: Vec<Vec<f64>>,
}

impl Transfers {
    /// Returns the latencies of two EPYC 7R13 (Milan), each a node of several L3 groups: medians in
    /// github.com/nviennot/core-to-core-latency, commit 0dddf509.
    fn typical(nodes: usize) -> Self {
        let ns = |from: usize, to: usize| if from == to { 107.0 } else { 197.0 };
        let row = |from| (0..nodes).map(|to| ns(from, to)).collect();
        Self { group_ns: 23.0, node_ns: (0..nodes).map(row).collect() }
    }
}

/// The memory system of a guest. Rows of matrices are the vCPU's node, columns the memory's,
/// both by position in `nodes`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// [`SCHEMA`].
    pub schema: String,
    /// The nodes, in the order in which QEMU is given their memory.
    pub nodes: Vec<Node>,
    /// Position in `nodes` of each vCPU's node.
    pub cpus: Vec<usize>,
    /// Each vCPU's L3 group, as any number; by default one group per node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub l3_groups: Option<Vec<usize>>,
    /// Latency of a load that reaches memory, in ns.
    pub latency_ns: Vec<Vec<f64>>,
    /// Latency of a store that reaches memory, in ns; by default that of a load.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub store_latency_ns: Option<Vec<Vec<f64>>>,
    /// Additional latency in ns of a line that is not in one of the pages from which the vCPU has last
    /// read lines of memory.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub other_page_ns: f64,
    /// Bandwidth of each node's memory in 10^6 bytes per second, 0.001 or more; 0 means no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_bandwidth_mb_s: Option<Vec<f64>>,
    /// Bandwidth from each node's vCPUs to each node's memory; 0 means no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link_bandwidth_mb_s: Option<Vec<Vec<f64>>>,
    /// Load curves of each node's memory, by rising share of writes; without curves its latency is
    /// constant. They replace a bandwidth.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_load: Option<Vec<Vec<Curve>>>,
    /// Load curves of the links from each node's vCPUs to each node's memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link_load: Option<Vec<Vec<Vec<Curve>>>>,
    /// Overlap of misses; without it a miss hides some instructions and no other miss.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub core: Option<Core>,
    /// Translation of addresses; without it, translations are free.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tlb: Option<Tlb>,
    /// Page faults of a program that is not a whole machine; without it, they are free.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub faults: Option<Faults>,
    /// System calls of a program that is not a whole machine; without it, they are free.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calls: Option<Calls>,
    /// Transfers of lines between caches; without them, caches are independent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transfers: Option<Transfers>,
    /// The caches, nearest first; without any, every access reaches memory.
    #[serde(default)]
    pub caches: Vec<CacheLevel>,
}

/// An optional stage of the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Latency rises with bandwidth.
    Load,
    /// Misses overlap.
    Core,
    /// A line is fetched from the core that owns it.
    Owners,
    /// Addresses are translated.
    Tlb,
    /// Addresses are translated by the tables of a guest and of its host.
    Nested,
}

impl Stage {
    /// All stages, with their names.
    pub const ALL: [(&'static str, Self); 5] = [
        ("load", Self::Load),
        ("core", Self::Core),
        ("owners", Self::Owners),
        ("tlb", Self::Tlb),
        ("nested", Self::Nested),
    ];

    /// Returns the stage with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(other, _)| *other == name).map(|(_, stage)| *stage)
    }
}

impl Machine {
    /// Parses and validates a description.
    ///
    /// # Errors
    /// [`MachineError`] names the field and the expected value.
    pub fn from_json(text: &str) -> Result<Self, MachineError> {
        let machine: Self = serde_json::from_str(text)?;
        machine.check()?;
        Ok(machine)
    }

    /// Returns the machine with typical figures for a stage.
    #[must_use]
    pub fn with(self, stage: Stage) -> Self {
        match stage {
            Stage::Load => self.with_load(),
            Stage::Owners => Self { transfers: Some(Transfers::typical(self.nodes.len())), ..self },
            Stage::Tlb => Self { tlb: Some(Tlb::typical()), ..self },
            Stage::Nested => Self { tlb: Some(Tlb::nested(self.tlb)), ..self },
            Stage::Core => Self { core: Some(Core::TYPICAL), ..self },
        }
    }

    /// Replaces bandwidths by curves of the typical shape.
    fn with_load(mut self) -> Self {
        let latency_ns = &self.latency_ns;
        let curves = |from: usize, to: usize, mb_s: f64| {
            Curve::typical(mb_s, f64::max(latency_ns[from][to], LEAST_UNLOADED_NS))
        };
        let nodes = self.node_bandwidth_mb_s.take();
        self.node_load = nodes
            .map(|row| row.iter().enumerate().map(|(to, &mb_s)| curves(to, to, mb_s)).collect());
        let links = self.link_bandwidth_mb_s.take();
        self.link_load = links.map(|rows| {
            let row = |(from, row): (usize, &Vec<f64>)| {
                row.iter().enumerate().map(|(to, &mb_s)| curves(from, to, mb_s)).collect()
            };
            rows.iter().enumerate().map(row).collect()
        });
        self
    }

    /// Returns each vCPU's L3 group, numbered from 0 without gaps in the order of their first
    /// vCPUs.
    pub fn groups(&self) -> Vec<usize> {
        let named = self.l3_groups.as_ref().unwrap_or(&self.cpus);
        let mut seen = Vec::new();
        let dense = |group: &usize| {
            let at = seen.iter().position(|other| other == group);
            at.unwrap_or_else(|| {
                seen.push(*group);
                seen.len() - 1
            })
        };
        named.iter().map(dense).collect()
    }

    /// Returns the number of caches that a level of this scope has.
    fn instances(&self, scope: Scope) -> usize {
        match scope {
            Scope::Cpu => self.cpus.len(),
            Scope::Group => self.groups().iter().max().map_or(0, |most| most + 1),
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;
    use crate::arguments::machine_of;

    fn example() -> Machine {
        machine_of(
            "cpus=0.0.1.1,memory=1G.3G,distances=10.21/21.10,node-bandwidth=8000.0,\
             link-bandwidth=0.500/500.0,caches=1:32K:8:64:cpu+3:1M:16:64:group",
        )
    }

    fn tlb_of(machine: &Machine, change: impl Fn(&mut Tlb)) -> Machine {
        let mut tlb = Tlb::typical();
        change(&mut tlb);
        Machine { tlb: Some(tlb), ..machine.clone() }
    }

    #[test]
    fn json_is_read_as_it_is_written_and_no_piece_of_it_is_accepted() {
        let text = serde_json::to_string(&example()).unwrap();
        assert_eq!(Machine::from_json(&text).unwrap(), example());
        for end in 0..text.len() {
            assert!(Machine::from_json(&text[..end]).is_err(), "{}", &text[..end]);
        }
        let unknown = text.replacen('{', "{\"colour\":1,", 1);
        let error = Machine::from_json(&unknown).unwrap_err().to_string();
        assert!(error.contains("unknown field `colour`"), "{error}");
    }

    type Change = fn(&mut Machine);

    fn is_named((change, message): (Change, &str)) {
        let mut machine = example();
        change(&mut machine);
        let said = machine.check().map_or_else(|error| error.to_string(), |()| String::new());
        assert!(said.starts_with(message) && said.is_empty() == message.is_empty(), "{said}");
    }

    #[test]
    fn contradictions_are_named() {
        let cases: [(Change, &str); 18] = [
            (|m| m.schema = "other/2".into(), "schema is `other/2`, expected"),
            (|m| m.nodes.clear(), "0 nodes, expected 1 to 16"),
            (|m| m.cpus = vec![0; 256], "256 vCPUs, expected 1 to 255"),
            (|m| m.cpus[3] = 2, "vCPU 3 is on node position 2, expected 0 to 1"),
            (
                |m| m.l3_groups = Some(vec![0]),
                "`l3_groups` has 1 entries, expected 4, one per vCPU",
            ),
            (|m| m.latency_ns[1][0] = -1.0, "`latency_ns` has -1, expected 0 to 1000000000"),
            (|m| m.latency_ns[0][0] = f64::NAN, "`latency_ns` has NaN"),
            (|m| m.nodes[1].ranges.clear(), ""),
            (|m| m.l3_groups = Some(vec![1 << 60, usize::MAX, 0, 1 << 60]), ""),
            (|m| m.nodes[1].id = 0, "node 0 is listed twice"),
            (
                |m| m.nodes[1].ranges[0].1 = u64::MAX,
                "range 0x40000000-0xffffffffffffffff of node 1",
            ),
            (
                |m| m.node_bandwidth_mb_s = Some(vec![1e-300, 0.0]),
                "`node_bandwidth_mb_s` has 0.000",
            ),
            (
                |m| m.caches[0].size_bytes = 1 << 32,
                "the caches have 268468224 lines together, expected at most 134217728",
            ),
            (
                |m| m.node_load = Some(vec![vec![]; 2]),
                "`node_bandwidth_mb_s` and `node_load` exclude each other",
            ),
            (
                |m| (m.node_bandwidth_mb_s, m.node_load) = (None, Some(vec![vec![]])),
                "`node_load` has 1 entries, expected 2, one per node",
            ),
            (
                |m| {
                    let curve = Curve { writes_percent: 0.0, points: vec![] };
                    (m.link_bandwidth_mb_s, m.link_load) =
                        (None, Some(vec![vec![vec![curve]; 2]; 2]));
                },
                "`link_load` has 0 points, expected 2 to 1000",
            ),
            (|m| m.caches[1].line_bytes = 128, "cache level 1: line_bytes must be the same"),
            (|m| m.caches[0].ways = 7, "cache level 1: size_bytes must be a whole number of sets"),
        ];
        cases.into_iter().for_each(is_named);
    }

    #[test]
    fn a_tlb_that_cannot_be_built_is_named() {
        let cases: [(Change, &str); 3] = [
            (|m| *m = tlb_of(m, |tlb| tlb.parts[1].ways = 7), "TLB level 2: entries must be"),
            (
                |m| *m = tlb_of(m, |tlb| tlb.parts[0].page_bytes = vec![1 << 21, 8192]),
                "TLB level 1: page size 8192, expected 4096, 2097152 or 1073741824",
            ),
            (
                |m| *m = tlb_of(m, |tlb| tlb.tables_node = Some(2)),
                "`tlb` puts page tables on node position 2, expected 0 to 1",
            ),
        ];
        cases.into_iter().for_each(is_named);
    }
}
