//! The files of the benchmark suite: its CSV, `mapping_check.log`, and memory by node.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use numalab_record::RankRun;
use numalab_topology::NodeId;

/// Writes the suite's CSV: a row for each size, a column for each rank, means with two decimals.
#[must_use]
pub fn csv(run: &RankRun) -> String {
    let mut text = csv_header(run.ranks.len());
    for (index, &size) in run.sizes_bytes.iter().enumerate() {
        let means: Vec<f64> =
            run.ranks.iter().filter_map(|rank| rank.mean.get(index).copied()).collect();
        text.push_str(&csv_row(size, &means));
    }
    text
}

/// Returns the first line of [`csv`].
#[must_use]
pub fn csv_header(ranks: usize) -> String {
    let columns: String = (0..ranks).map(|rank| format!(",{rank}")).collect();
    format!("size (MB){columns}\n")
}

/// Returns one row of [`csv`].
#[must_use]
pub fn csv_row(size_bytes: u64, means: &[f64]) -> String {
    let values: String = means.iter().map(|mean| format!(",{mean:.2}")).collect();
    let megabytes = size_bytes as f64 / f64::from(1 << 20);
    format!("{megabytes}{values}\n")
}

/// Writes the suite's `mapping_check.log`.
#[must_use]
pub fn mapping_check(run: &RankRun) -> String {
    let mut text = "rank,cpu_id,cpu_numa,memory_numa\n".to_owned();
    for rank in &run.ranks {
        let memory = rank.memory_node();
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{},{},{},{memory}", rank.rank, rank.cpu, rank.cpu_node);
    }
    text
}

/// Writes memory by kind and node, as printed by `numastat -p`.
#[must_use]
pub fn memory_by_node(
    process: u32,
    kinds: &[(&str, &BTreeMap<NodeId, u64>)],
    nodes: &[NodeId],
) -> String {
    let megabytes = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    let rule = " ---------------".repeat(nodes.len() + 1);
    let head: String =
        nodes.iter().map(|node| format!(" {:>15}", format!("Node {node}"))).collect();
    let mut text = format!(
        "Per-node process memory usage (in MBs) for PID {process} (numalab)\n\
         {:17}{head} {:>15}\n{:17}{rule}\n",
        "", "Total", ""
    );
    let row = |name: &str, on: &dyn Fn(NodeId) -> u64| {
        let values: String =
            nodes.iter().map(|&node| format!(" {:>15.2}", megabytes(on(node)))).collect();
        let total: u64 = nodes.iter().map(|&node| on(node)).sum();
        format!("{name:<17}{values} {:>15.2}\n", megabytes(total))
    };
    for (name, bytes) in kinds {
        text += &row(name, &|node| bytes.get(&node).copied().unwrap_or(0));
    }
    let all = |node: NodeId| kinds.iter().filter_map(|(_, bytes)| bytes.get(&node)).sum();
    format!("{text}---------------- {rule}\n{}", row("Total", &all))
}

#[cfg(test)]
mod tests {
    use numalab_record::{Kind, Metric, ProofMethod, RankResult};
    use numalab_topology::CpuId;

    use super::*;

    fn rank(rank: usize, cpu: u32, mean: Vec<f64>) -> RankResult {
        RankResult {
            rank,
            host: "n1".to_owned(),
            cpu: CpuId(cpu),
            affinity: [CpuId(cpu)].into_iter().collect(),
            cpu_node: NodeId(cpu / 16),
            policy: "bind:3".to_owned(),
            memory_nodes: BTreeMap::from([(NodeId(0), 1), (NodeId(3), 255)]),
            method: ProofMethod::MovePages,
            address: 0x52_7e70,
            bytes_per_page_size: BTreeMap::new(),
            median: mean.iter().map(|mean| mean - 1.0).collect(),
            mean,
            windows: Vec::new(),
            times: Vec::new(),
            disturbed: Vec::new(),
        }
    }

    fn run() -> RankRun {
        RankRun {
            schema: Kind::Ranks.into(),
            metric: Metric::Latency,
            unit: "ns".to_owned(),
            version: "0".to_owned(),
            command: Vec::new(),
            launcher: "srun".to_owned(),
            meeting: "shared memory".to_owned(),
            seed: 0,
            iterations: 100_000,
            warmup: 1_000,
            chain: "random".to_owned(),
            pages: "4k".to_owned(),
            serial: false,
            sizes_bytes: vec![256 << 10, 1 << 20, 1 << 30],
            ranks: vec![
                rank(0, 1, vec![3.5, 11.526, 154.92]),
                rank(1, 17, vec![3.25, 11.43, 104.9]),
            ],
        }
    }

    #[test]
    fn the_csv_has_a_row_for_each_size_and_a_column_for_each_rank() {
        let expected = "size (MB),0,1\n0.25,3.50,3.25\n1,11.53,11.43\n1024,154.92,104.90\n";
        assert_eq!(csv(&run()), expected);
    }

    #[test]
    fn the_mapping_names_the_node_with_most_of_the_memory() {
        let expected = "rank,cpu_id,cpu_numa,memory_numa\n0,1,0,3\n1,17,1,3\n";
        assert_eq!(mapping_check(&run()), expected);
    }

    #[test]
    fn memory_is_added_up_by_kind_and_node() {
        let private = BTreeMap::from([(NodeId(0), 1 << 20), (NodeId(8), 3 << 19)]);
        let none = BTreeMap::new();
        let text =
            memory_by_node(7, &[("Heap", &none), ("Private", &private)], &[NodeId(0), NodeId(8)]);
        let last = text.lines().last().map(|line| line.split_ascii_whitespace().collect());
        assert_eq!(last, Some(vec!["Total", "1.00", "1.50", "2.50"]));
        assert!(text.contains("         Node 8           Total"), "{text}");
    }
}
