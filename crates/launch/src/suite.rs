//! The files of the benchmark suite: its CSV, `mapping_check.log`, and memory by node.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use numalab_host::{Root, base_page_bytes, current_place, read_environment};
use numalab_record::RankTable;
use numalab_topology::{Machine, NodeId};

use crate::identity::Identity;
use crate::team::Team;

/// Writes the suite's CSV: a row for each size, a column for each rank, means with two decimals.
pub fn csv(table: &RankTable) -> String {
    let mut text = csv_header(table.ranks.len());
    for (index, &size) in table.sizes_bytes.iter().enumerate() {
        let means: Vec<f64> =
            table.ranks.iter().filter_map(|rank| rank.mean.get(index).copied()).collect();
        text.push_str(&csv_row(size, &means));
    }
    text
}

/// Returns the first line of [`csv`].
pub fn csv_header(ranks: usize) -> String {
    let columns: String = (0..ranks).map(|rank| format!(",{rank}")).collect();
    format!("size (MB){columns}\n")
}

/// Returns one row of [`csv`].
pub fn csv_row(size_bytes: u64, means: &[f64]) -> String {
    let values: String = means.iter().map(|mean| format!(",{mean:.2}")).collect();
    let megabytes = size_bytes as f64 / f64::from(1 << 20);
    format!("{megabytes}{values}\n")
}

/// Writes the suite's `mapping_check.log`.
pub fn mapping_check(table: &RankTable) -> String {
    let mut text = "rank,cpu_id,cpu_numa,memory_numa\n".to_owned();
    for (number, rank) in table.ranks.iter().enumerate() {
        let (memory, cpu) = (rank.memory_node(), rank.placement.cpu);
        let cpu_node = rank.placement.cpu_node.unwrap_or_default();
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{number},{cpu},{cpu_node},{memory}");
    }
    text
}

/// Writes memory by kind and node, as printed by `numastat -p`.
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

/// Writes the suite's block about the run, for its readers and their bug reports.
pub fn debug_block(machine: &Machine, identity: &Identity, team: &Team) -> String {
    let arguments: String = std::env::args()
        .enumerate()
        .map(|(index, argument)| format!("    argv[{index}] = {argument}\n"))
        .collect();
    let place = current_place();
    let nodes = machine.nodes.len();
    let kernel = read_environment(&Root::live()).text("kernel").unwrap_or("unknown").to_owned();
    format!(
        "\n=== Debug Information ===\nMPI Configuration:\n  Number of ranks: {}\n  \
         Launcher: {}\n  Meeting: {}\n  Command line arguments:\n{arguments}\n\
         System Information:\n  Page size: {} bytes\n  Number of NUMA nodes: {nodes}\n  \
         NUMA available: {}\n  Number of CPUs: {}\n  Current CPU: {}\n  \
         Current NUMA node: {}\n  Kernel: {kernel}\n\n\
         Note: each rank's memory is where its policy puts it (numalab bind, numactl \
         --membind=<node>), else on its cpu's node\n=====================\n\n",
        team.size(),
        identity.launcher,
        team.describe(),
        base_page_bytes(),
        if nodes > 0 { "Yes" } else { "No" },
        machine.online_cpus().len(),
        place.cpu,
        place.node,
    )
}

#[cfg(test)]
#[path = "../../record/fixtures/rank_table.rs"]
mod rank_table;

#[cfg(test)]
mod tests {
    use super::rank_table::table;
    use super::*;

    #[test]
    fn the_csv_has_a_row_for_each_size_and_a_column_for_each_rank() {
        let expected = "size (MB),0,1\n0.25,3.50,3.25\n1,11.53,11.43\n1024,154.92,104.90\n";
        assert_eq!(csv(&table()), expected);
    }

    #[test]
    fn the_mapping_names_the_node_with_most_of_the_memory() {
        let expected = "rank,cpu_id,cpu_numa,memory_numa\n0,1,0,3\n1,17,1,3\n";
        assert_eq!(mapping_check(&table()), expected);
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
