//! Parses lscpu's text, with its parsable table (`lscpu -p`).

use std::collections::{BTreeMap, BTreeSet};

use numalab_topology::{CacheKind, CpuId, CpuSet, Machine, NodeId};

use crate::expected::Comparison;

/// Compares the parsable table as partitions of the cpus, and the lines about nodes and caches.
pub fn compare(name: &str, text: &str, machine: &Machine) -> Comparison {
    let mut comparison = Comparison::default();
    let table = Table::parse(text);
    // lscpu restarts the numbers of cores and sockets for each type of core, so that those of this
    // tree collide; only its physical table, the last one, has the right sockets.
    let mixed_cores = name.contains("A510");
    let cpus: CpuSet = table.rows.iter().map(|(cpu, _)| *cpu).collect();
    comparison.check(&format!("{name}: cpus"), &machine.online_cpus(), &cpus);
    for (column, title) in table.titles.iter().enumerate() {
        let Some(found) = found_partition(title, machine) else {
            continue;
        };
        let table = match (mixed_cores, title.as_str()) {
            (true, "Core") => continue,
            (true, "Socket") => &Table::parse(&text[text.rfind("# CPU,").unwrap()..]),
            _ => &table,
        };
        let shown: BTreeSet<CpuSet> =
            found.iter().map(|set| set.intersection(&cpus)).filter(|set| !set.is_empty()).collect();
        // lscpu leaves a column empty if it knows nothing.
        if let Some(expected) = table.partition(column) {
            comparison.check(&format!("{name}: {title}"), &shown, &expected);
        }
    }
    compare_nodes(name, text, machine, &mut comparison);
    compare_cache_lines(name, text, machine, &mut comparison);
    comparison
}

/// The first parsable table: column titles, and per cpu the other columns.
struct Table {
    titles: Vec<String>,
    rows: Vec<(CpuId, Vec<String>)>,
}

impl Table {
    fn parse(text: &str) -> Self {
        let mut lines = text.lines().skip_while(|line| !line.starts_with("# CPU,"));
        let head = lines.next().unwrap();
        let titles = head.split(',').skip(1).map(str::to_owned).collect();
        let rows = lines
            .take_while(|line| line.starts_with(|c: char| c.is_ascii_digit()))
            .map(|line| {
                let mut fields = line.split(',');
                let cpu = CpuId(fields.next().unwrap().parse().unwrap());
                (cpu, fields.map(str::to_owned).collect())
            })
            .collect();
        Self { titles, rows }
    }

    /// Partitions the cpus by their value in a column; `None` if the column is empty.
    fn partition(&self, column: usize) -> Option<BTreeSet<CpuSet>> {
        let mut sets: BTreeMap<&str, CpuSet> = BTreeMap::new();
        for (cpu, fields) in &self.rows {
            let value = fields.get(column).filter(|value| !value.is_empty())?;
            sets.entry(value).or_default().insert(*cpu);
        }
        Some(sets.into_values().collect())
    }
}

/// Returns the sets of cpus that share the objects of a column.
fn found_partition(title: &str, machine: &Machine) -> Option<Vec<CpuSet>> {
    let groups = |groups: Vec<numalab_topology::CpuGroup>| {
        groups.into_iter().map(|group| group.cpus).collect()
    };
    let caches = |level, kind| {
        let caches = machine.caches.iter();
        caches
            .filter(|cache| cache.level == level && cache.kind == kind)
            .map(|cache| cache.cpus.clone())
            .collect()
    };
    Some(match title {
        "Core" => groups(machine.cores()),
        "Socket" => groups(machine.packages()),
        "Node" => machine.nodes.iter().map(|node| node.cpus.clone()).collect(),
        "L1d" => caches(1, CacheKind::Data),
        "L1i" => caches(1, CacheKind::Instruction),
        "L2d" => caches(2, CacheKind::Data),
        "L2i" => caches(2, CacheKind::Instruction),
        "L2" => caches(2, CacheKind::Unified),
        "L3" => caches(3, CacheKind::Unified),
        _ => return None,
    })
}

/// Compares `NUMA node2 CPU(s): 1-61:4`.
fn compare_nodes(name: &str, text: &str, machine: &Machine, comparison: &mut Comparison) {
    for line in text.lines() {
        let Some((head, list)) = line.split_once(':') else {
            continue;
        };
        let Some(number) =
            head.strip_prefix("NUMA node").and_then(|rest| rest.strip_suffix(" CPU(s)"))
        else {
            continue;
        };
        let node = machine.node(NodeId(number.parse().unwrap())).unwrap();
        let expected: CpuSet = list.parse().unwrap();
        comparison.check(&format!("{name}: {head}"), &node.cpus, &expected);
    }
}

/// Compares `L3 cache: 72 MiB (4 instances)`, which is the total size.
fn compare_cache_lines(name: &str, text: &str, machine: &Machine, comparison: &mut Comparison) {
    for line in text.lines() {
        let Some((title, value)) = line.split_once(" cache:") else {
            continue;
        };
        let words: Vec<&str> = value.split_whitespace().collect();
        let [number, unit, count, ..] = words.as_slice() else {
            continue;
        };
        let unit = match *unit {
            "KiB" => 1024.0,
            "MiB" => 1024.0 * 1024.0,
            unit => panic!("unit {unit}"),
        };
        let expected_bytes = number.parse::<f64>().unwrap() * unit;
        let level: u8 = title[1..2].parse().unwrap();
        let kind = match &title[2..] {
            "d" => CacheKind::Data,
            "i" => CacheKind::Instruction,
            _ => CacheKind::Unified,
        };
        let found: Vec<u64> = machine
            .caches
            .iter()
            .filter(|cache| cache.level == level && cache.kind == kind)
            .filter_map(|cache| cache.size_bytes)
            .collect();
        let what = format!("{name}: {title}");
        let count: usize = count.trim_start_matches('(').parse().unwrap();
        comparison.check(&format!("{what} instances"), &found.len(), &count);
        #[expect(clippy::cast_precision_loss, reason = "sizes are far below 2^53")]
        let found_bytes = found.iter().sum::<u64>() as f64;
        // lscpu prints one decimal.
        let close = (found_bytes - expected_bytes).abs() <= 0.05 * unit;
        let what = format!("{what}: {found_bytes} bytes are {expected_bytes}");
        comparison.check(&what, &close, &true);
    }
}
