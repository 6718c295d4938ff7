//! Who works on which memory, backed by which pages, and how names of cells say it.

use core::fmt;
use std::str::FromStr;

use numalab_topology::{CpuId, CpuSet, NodeId};
use serde::{Deserialize, Serialize};

/// One worker: a cpu and the node whose memory it uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WorkerPlan {
    /// The cpu.
    pub cpu: CpuId,
    /// The node of its memory.
    pub node: NodeId,
}

/// The pages that back a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Pages {
    /// The processor's base pages (4 KiB on x86-64; 4, 16 or 64 KiB on aarch64), transparent
    /// huge pages off.
    #[serde(rename = "4k")]
    Base,
    /// Transparent huge pages.
    #[serde(rename = "thp")]
    Transparent,
    /// Reserved huge pages of 2 MiB.
    #[serde(rename = "2m")]
    Huge2M,
    /// Reserved huge pages of 1 GiB.
    #[serde(rename = "1g")]
    Huge1G,
}

impl Pages {
    /// Every choice.
    pub const ALL: [Self; 4] = [Self::Base, Self::Transparent, Self::Huge2M, Self::Huge1G];

    /// Its name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Base => "4k",
            Self::Transparent => "thp",
            Self::Huge2M => "2m",
            Self::Huge1G => "1g",
        }
    }

    /// Whether the pages come from a reserved pool.
    #[must_use]
    pub const fn is_reserved(self) -> bool {
        matches!(self, Self::Huge2M | Self::Huge1G)
    }
}

/// A text that names no choice of pages.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a choice of pages: expected 4k, thp, 2m or 1g")]
pub struct UnknownPages {
    /// The text.
    pub text: String,
}

impl FromStr for Pages {
    type Err = UnknownPages;

    fn from_str(text: &str) -> Result<Self, UnknownPages> {
        let named = |pages: &Self| pages.name().eq_ignore_ascii_case(text);
        Self::ALL.into_iter().find(named).ok_or_else(|| UnknownPages { text: text.to_owned() })
    }
}

impl fmt::Display for Pages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// `cpu0/node1`
pub(super) fn worker_name(worker: WorkerPlan) -> String {
    format!("cpu{}/node{}", worker.cpu, worker.node)
}

/// `cpu0-node1` for one worker; for more, the list of cpus by node: `node0:0-3+node1:4-7`.
pub(super) fn team_name(workers: &[WorkerPlan]) -> String {
    if let [worker] = workers {
        return format!("cpu{}-node{}", worker.cpu, worker.node);
    }
    let mut nodes: Vec<_> = workers.iter().map(|worker| worker.node).collect();
    nodes.sort_unstable();
    nodes.dedup();
    let cpus_of = |node| {
        let on_node = workers.iter().filter(|worker| worker.node == node);
        on_node.map(|worker| worker.cpu).collect::<CpuSet>()
    };
    // A comma would end the field in samples.csv.
    let part = |node| format!("node{node}:{}", cpus_of(node)).replace(',', ".");
    nodes.into_iter().map(part).collect::<Vec<_>>().join("+")
}

/// `64M` where it is exact, else `1.5M` or plain bytes.
pub(super) fn size_name(bytes: u64) -> String {
    for (unit, letter) in [(1_u64 << 30, 'G'), (1 << 20, 'M'), (1 << 10, 'K')] {
        if bytes >= unit && bytes.is_multiple_of(unit) {
            return format!("{}{letter}", bytes / unit);
        }
        if bytes >= unit && bytes.is_multiple_of(unit / 2) {
            return format!("{}.5{letter}", bytes / unit);
        }
    }
    bytes.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_named_exactly() {
        let names = [4096, 98_304, 1 << 20, 3 << 19, 100_000, 5 << 30].map(size_name);
        assert_eq!(names, ["4K", "96K", "1M", "1.5M", "100000", "5G"]);
    }

    #[test]
    fn a_team_is_named_by_node_without_commas() {
        let worker = |cpu, node| WorkerPlan { cpu: CpuId(cpu), node: NodeId(node) };
        let team = [worker(0, 0), worker(2, 0), worker(3, 1)];
        assert_eq!(team_name(&team), "node0:0.2+node1:3");
        assert_eq!(team_name(&team[..1]), "cpu0-node0");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_choice_of_pages_is_read_back_from_its_name() {
        for pages in Pages::ALL {
            assert_eq!(pages.to_string().parse(), Ok(pages));
        }
        let error = "8k".parse::<Pages>().unwrap_err();
        let expected = "`8k` is not a choice of pages: expected 4k, thp, 2m or 1g";
        assert_eq!(error.to_string(), expected);
    }
}
