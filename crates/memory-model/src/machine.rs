//! The memory system to emulate: nodes, vCPUs, latencies, bandwidths, caches.

use serde::{Deserialize, Serialize};

/// Name of the format that [`Machine`] is read from.
pub const SCHEMA: &str = "numalab-emulator-machine/1";
/// Nodes at most: the virtual PMU has room for so many.
pub const MOST_NODES: usize = 16;
/// vCPUs at most: the virtual PMU's 64 KiB have room for so many.
pub const MOST_VCPUS: usize = 255;
/// No processor has addresses of more bits (Intel SDM 3A, 4.1.4).
const ADDRESS_END: u64 = 1 << 52;
/// Lines of all caches at most: their model takes 8 bytes of the host's memory for each.
const MOST_LINES: u64 = 1 << 27;

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

/// Who shares a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// Each vCPU has one.
    Cpu,
    /// Each L3 group has one.
    Group,
}

/// One level of the caches.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CacheLevel {
    /// 1 is the nearest.
    pub level: u8,
    /// All its bytes: lines × ways × sets, sets a power of two.
    pub size_bytes: u64,
    /// Lines of a set.
    pub ways: u32,
    /// A power of two, the same on every level.
    pub line_bytes: u32,
    /// Who shares it.
    pub scope: Scope,
    /// What a hit costs beyond the instruction's own time.
    #[serde(default)]
    pub latency_ns: f64,
}

/// The memory system of a guest. Rows of matrices are the vCPU's node, columns the memory's,
/// both by position in `nodes`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// [`SCHEMA`].
    pub schema: String,
    /// In the order in which QEMU was given their memory.
    pub nodes: Vec<Node>,
    /// Position in `nodes` of each vCPU's node.
    pub cpus: Vec<usize>,
    /// Each vCPU's L3 group, any number; without it, its node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub l3_groups: Option<Vec<usize>>,
    /// What a load that reaches memory takes, in ns.
    pub latency_ns: Vec<Vec<f64>>,
    /// What a store that reaches memory takes; without it, as a load.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub store_latency_ns: Option<Vec<Vec<f64>>>,
    /// Bandwidth of each node's memory in 10^6 bytes a second, 0.001 or more; 0 is no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_bandwidth_mb_s: Option<Vec<f64>>,
    /// Bandwidth from each node's vCPUs to each node's memory; 0 is no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link_bandwidth_mb_s: Option<Vec<Vec<f64>>>,
    /// Nearest first; none means that every access reaches memory.
    #[serde(default)]
    pub caches: Vec<CacheLevel>,
}

/// What is wrong with a machine's description.
#[derive(Debug, thiserror::Error)]
pub enum MachineError {
    /// Not the JSON that was expected.
    #[error("{0}; expected a machine as in `{SCHEMA}`")]
    Json(#[from] serde_json::Error),
    /// Another format or version.
    #[error("schema is `{found}`, expected `{SCHEMA}`")]
    Schema {
        /// What the file says.
        found: String,
    },
    /// A list or matrix of the wrong size.
    #[error("`{field}` has {found} entries, expected {expected}, one per {per}")]
    Length {
        /// The list, or the matrix' row.
        field: &'static str,
        /// Entries found.
        found: usize,
        /// Entries expected.
        expected: usize,
        /// What there is one of each.
        per: &'static str,
    },
    /// More than fits.
    #[error("{found} {what}, expected 1 to {most}")]
    Count {
        /// Nodes or vCPUs.
        what: &'static str,
        /// How many.
        found: usize,
        /// How many may be.
        most: usize,
    },
    /// A vCPU on a node that is not there.
    #[error("vCPU {vcpu} is on node position {node}, expected 0 to {last}")]
    NoSuchNode {
        /// The vCPU.
        vcpu: usize,
        /// What it says.
        node: usize,
        /// The last position.
        last: usize,
    },
    /// Memory that ends before it begins, or belongs to two nodes.
    #[error("range {start:#x}-{end:#x} of node {id} {problem}")]
    Range {
        /// Its first byte.
        start: u64,
        /// The byte after its last.
        end: u64,
        /// The node's number.
        id: u32,
        /// What is wrong.
        problem: &'static str,
    },
    /// A negative or absurd figure.
    #[error("`{field}` has {value}, expected 0 to {most}")]
    Figure {
        /// Which figure.
        field: &'static str,
        /// What it is.
        value: f64,
        /// What it may be.
        most: f64,
    },
    /// A bandwidth so small that nothing would ever pass.
    #[error("`{field}` has {value} MB/s, expected {LEAST_MB_S} or more, or 0 for no limit")]
    Bandwidth {
        /// Which figure.
        field: &'static str,
        /// What it is.
        value: f64,
    },
    /// A node's number that another one has.
    #[error("node {id} is there twice")]
    NodeTwice {
        /// The number.
        id: u32,
    },
    /// Caches that the host has no room for.
    #[error("the caches have {lines} lines together, expected at most {MOST_LINES}")]
    Lines {
        /// Of all vCPUs and groups.
        lines: u64,
    },
    /// A cache that cannot be built.
    #[error("cache level {level}: {problem}")]
    Cache {
        /// Which level.
        level: u8,
        /// What is wrong.
        problem: &'static str,
    },
}

/// A second, more than any access takes.
const MOST_NS: f64 = 1e9;
/// An exabyte a second.
const MOST_MB_S: f64 = 1e12;
/// A kilobyte a second.
const LEAST_MB_S: f64 = 1e-3;

impl Machine {
    /// Reads and checks a description.
    ///
    /// # Errors
    /// [`MachineError`] names the field and what was expected.
    pub fn from_json(text: &str) -> Result<Self, MachineError> {
        let machine: Self = serde_json::from_str(text)?;
        machine.check()?;
        Ok(machine)
    }

    /// Checks that everything fits together.
    ///
    /// # Errors
    /// [`MachineError`], the first thing that does not.
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
        if let Some(nodes) = &self.node_bandwidth_mb_s {
            self.check_row("node_bandwidth_mb_s", nodes, bandwidth)?;
        }
        if let Some(links) = &self.link_bandwidth_mb_s {
            self.check_matrix("link_bandwidth_mb_s", links, bandwidth)?;
        }
        self.caches.iter().try_for_each(|cache| self.check_cache(cache))?;
        self.check_lines()
    }

    /// Each vCPU's L3 group, counted from 0 without gaps in the order of their first vCPUs.
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

    /// How many caches there are of a scope.
    fn instances(&self, scope: Scope) -> usize {
        match scope {
            Scope::Cpu => self.cpus.len(),
            Scope::Group => self.groups().iter().max().map_or(0, |most| most + 1),
        }
    }

    /// All caches together fit into the host's memory.
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
        if !cache.size_bytes.is_multiple_of(set_bytes)
            || !(cache.size_bytes / set_bytes).is_power_of_two()
        {
            return fault("size_bytes / (ways x line_bytes) must be a power of two");
        }
        let nearer = self.caches.iter().filter(|other| other.level < cache.level);
        if cache.scope == Scope::Cpu && nearer.clone().any(|other| other.scope == Scope::Group) {
            return fault("a vCPU's own cache cannot lie behind a shared one");
        }
        if self.caches.iter().filter(|other| other.level == cache.level).count() > 1 {
            return fault("is there twice");
        }
        Ok(())
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

/// Whether a figure of a field is one that can be.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments::machine_of;

    fn example() -> Machine {
        machine_of(
            "cpus=0.0.1.1,memory=1G.3G,distances=10.21/21.10,node-bandwidth=8000.0,\
             link-bandwidth=0.500/500.0,caches=1:32K:8:64:cpu+3:1M:16:64:group",
        )
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

    #[test]
    fn what_does_not_fit_together_is_named() {
        type Change = fn(&mut Machine);
        let cases: [(Change, &str); 14] = [
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
            (|m| m.nodes[1].id = 0, "node 0 is there twice"),
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
            (|m| m.caches[1].line_bytes = 128, "cache level 1: line_bytes must be the same"),
        ];
        for (change, message) in cases {
            let mut machine = example();
            change(&mut machine);
            let said = machine.check().map_or_else(|error| error.to_string(), |()| String::new());
            assert!(said.starts_with(message) && said.is_empty() == message.is_empty(), "{said}");
        }
    }
}
