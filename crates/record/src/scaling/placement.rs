//! The location of ranks: from the step's JSON, `scale.json`, the suite's log or
//! `mapping_check.log`, whichever has it first.

use std::collections::BTreeMap;

use numalab_topology::{CpuId, NodeId};
use serde::Deserialize;

use super::{Mode, RankPlace};

/// The JSON of a step as written before runs of ranks existed, as far as it is used here.
#[derive(Debug, Default, Deserialize)]
pub(super) struct StepJson {
    #[serde(default)]
    pub(super) metric: String,
    #[serde(default)]
    pub(super) serial: bool,
    #[serde(default)]
    ranks: Vec<RankJson>,
}

#[derive(Debug, Deserialize)]
struct RankJson {
    cpu: u32,
    cpu_node: Option<u32>,
    #[serde(default)]
    memory_nodes: BTreeMap<String, u64>,
    #[serde(default)]
    median: Vec<Option<f64>>,
    #[serde(default)]
    windows: Vec<Vec<f64>>,
    #[serde(default)]
    disturbed: Vec<BTreeMap<usize, String>>,
}

/// `scale.json`, as far as it is used here.
#[derive(Debug, Default, Deserialize)]
pub(super) struct ScaleJson {
    #[serde(default)]
    pub(super) system: String,
    #[serde(default)]
    pub(super) partition: String,
    #[serde(default)]
    pub(super) arch: String,
    mode: Option<Mode>,
    #[serde(default)]
    domains: Vec<u32>,
    #[serde(default)]
    steps: Vec<PlannedStep>,
}

#[derive(Debug, Deserialize)]
struct PlannedStep {
    /// The first versions wrote the CSV's name instead.
    #[serde(default, alias = "csv")]
    stem: String,
    #[serde(default)]
    cpus: Vec<u32>,
    #[serde(default)]
    nodes: Vec<u32>,
}

impl StepJson {
    pub(super) fn places(&self) -> Vec<RankPlace> {
        let place = |rank: &RankJson| {
            let most = rank.memory_nodes.iter().max_by_key(|(_, pages)| **pages);
            RankPlace {
                cpu: CpuId(rank.cpu),
                cpu_node: rank.cpu_node.map(NodeId),
                memory_node: most.and_then(|(node, _)| node.parse().ok()).map(NodeId),
            }
        };
        self.ranks.iter().map(place).collect()
    }

    /// Returns the medians by size, then by rank; empty unless all of them are known.
    pub(super) fn medians(&self, sizes: usize, ranks: usize) -> Vec<Vec<f64>> {
        let of = |size: usize| -> Option<Vec<f64>> {
            self.ranks.iter().map(|rank| rank.median.get(size).copied().flatten()).collect()
        };
        let all: Option<Vec<_>> = (0..sizes).map(of).collect();
        all.filter(|_| self.ranks.len() == ranks).unwrap_or_default()
    }

    /// Returns the share of disturbed windows; `None` without windows.
    pub(super) fn disturbed(&self) -> Option<f64> {
        let windows: usize = self.ranks.iter().flat_map(|rank| &rank.windows).map(Vec::len).sum();
        let disturbed: usize =
            self.ranks.iter().flat_map(|rank| &rank.disturbed).map(BTreeMap::len).sum();
        (windows > 0).then(|| disturbed as f64 / windows as f64)
    }
}

impl ScaleJson {
    pub(super) fn places(&self, stem: &str) -> Vec<RankPlace> {
        self.step(stem).map_or_else(Vec::new, |step| bound(&step.cpus, &step.nodes))
    }

    /// Returns the binding order and the nodes of a planned step.
    pub(super) fn binding(&self, stem: &str) -> Option<(Mode, Vec<u32>)> {
        self.step(stem)?;
        Some((self.mode?, self.domains.clone()))
    }

    fn step(&self, stem: &str) -> Option<&PlannedStep> {
        let planned = |step: &&PlannedStep| step.stem.trim_end_matches(".csv") == stem;
        self.steps.iter().find(planned)
    }
}

fn bound(cpus: &[u32], nodes: &[u32]) -> Vec<RankPlace> {
    let place = |(rank, &cpu): (usize, &u32)| RankPlace {
        cpu: CpuId(cpu),
        cpu_node: None,
        memory_node: nodes.get(rank).copied().map(NodeId),
    };
    cpus.iter().enumerate().map(place).collect()
}

/// Finds the bindings of the step with this number of ranks and this CSV in the suite's log: `[ 4
/// RANKS ] CPU binding : 48,56,80,88` and `[ 4 RANKS ] NUMA binding: 3,3,5,5`, before the line that
/// runs it.
pub(super) fn in_log(log: &str, csv: &str) -> Vec<RankPlace> {
    let (mut cpus, mut nodes) = (Vec::new(), Vec::new());
    for line in log.lines() {
        let Some((_, said)) = line.split_once("RANKS ]") else { continue };
        let Some((name, value)) = said.split_once(':') else { continue };
        match name.trim() {
            "CPU binding" => cpus = numbers(value),
            "NUMA binding" => nodes = numbers(value),
            "Executing" if said.contains(csv) => return bound(&cpus, &nodes),
            _ => {}
        }
    }
    Vec::new()
}

fn numbers(text: &str) -> Vec<u32> {
    text.trim().split(',').map_while(|number| number.trim().parse().ok()).collect()
}

/// Reads `rank,cpu_id,cpu_numa,memory_numa`, one row per rank.
pub(super) fn in_mapping_check(text: &str) -> Vec<RankPlace> {
    let place = |line: &str| {
        let mut fields = line.split(',').map(|field| field.trim().parse::<u32>().ok());
        fields.next()??;
        Some(RankPlace {
            cpu: CpuId(fields.next()??),
            cpu_node: fields.next().flatten().map(NodeId),
            memory_node: fields.next().flatten().map(NodeId),
        })
    };
    text.lines().filter_map(place).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LOG: &str = "\
[ 2 RANKS ] NUMA binding: 3,5
[ 2 RANKS ] CPU binding : 48,80
[ 2 RANKS ] Executing : srun --csv=interleaved_domains3,5_2ranks_1-512MB.csv
[ 4 RANKS ] NUMA binding: 3,3,5,5
[ 4 RANKS ] CPU binding : 48,56,80,88
[ 4 RANKS ] Executing : srun --csv=interleaved_domains3,5_4ranks_1-512MB.csv
";

    #[test]
    fn the_log_names_cpu_and_node_of_each_rank_of_a_step() {
        let places = in_log(LOG, "interleaved_domains3,5_4ranks_1-512MB.csv");
        let found: Vec<(u32, Option<u32>)> = places
            .iter()
            .map(|place| (place.cpu.0, place.memory_node.map(|node| node.0)))
            .collect();
        assert_eq!(found, [(48, Some(3)), (56, Some(3)), (80, Some(5)), (88, Some(5))]);
        assert!(in_log(LOG, "other.csv").is_empty());
    }

    #[test]
    fn a_mapping_check_names_both_nodes() {
        let places = in_mapping_check("rank,cpu_id,cpu_numa,memory_numa\n0,48,3,3\n1,80,5,3\n");
        assert_eq!(places.len(), 2);
        assert_eq!(places[1].memory_node, Some(NodeId(3)));
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_a_panic(text in "(?s)(\\[ 1 RANKS \\] \\PC{0,30}\n){0,3}\\PC{0,60}") {
            let _ = (in_log(&text, "x.csv"), in_mapping_check(&text));
        }
    }
}
