//! What ranks found, as the benchmark suite's table.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use numalab_page::rows::Rows;
use numalab_page::{Page, Style};
use numalab_record::{Metric, RankResult, RankRun};

use crate::report::Report;

/// What the ranks of one launch found: in text and CSV as the benchmark suite has it.
#[derive(Clone, Debug, PartialEq)]
pub struct RanksReport<'a> {
    /// The ranks.
    pub run: &'a RankRun,
    /// The last rank's memory by node, as `numastat` prints it.
    pub memory: &'a str,
    /// The suite's CSV.
    pub csv: String,
    /// The page of the run that the launch is.
    pub page: Page,
}

impl Report for RanksReport<'_> {
    fn page(&self) -> Page {
        self.page.clone()
    }

    /// In one line: there are many windows.
    fn json(&self) -> serde_json::Result<String> {
        serde_json::to_string(self.run)
    }

    fn rows(&self) -> Option<Rows> {
        None
    }

    fn terminal(&self, _: Style) -> String {
        let disturbed = ranks_disturbed(self.run).unwrap_or_default();
        format!("\n{}{disturbed}\n{}", ranks_table(self.run), self.memory)
    }

    fn csv(&self) -> Option<String> {
        Some(self.csv.clone())
    }
}

/// The suite's table with the means, and below it the same with the medians.
fn ranks_table(run: &RankRun) -> String {
    let (title, unit) = match run.metric {
        Metric::Bandwidth => ("BANDWIDTH", "GB/s"),
        _ => ("LATENCY", "ns"),
    };
    let mean = table(run, &format!("{title} ({unit})"), |rank| &rank.mean);
    let median = table(run, &format!("MEDIAN ({unit})"), |rank| &rank.median);
    format!("{mean}\n{median}")
}

/// How many windows were disturbed, and whose most; nothing if none was.
fn ranks_disturbed(run: &RankRun) -> Option<String> {
    let of = |rank: &RankResult| rank.disturbed.iter().map(BTreeMap::len).sum::<usize>();
    let disturbed: usize = run.ranks.iter().map(of).sum();
    let windows: usize = run.ranks.iter().flat_map(|rank| &rank.windows).map(Vec::len).sum();
    let worst = run.ranks.iter().max_by_key(|rank| (of(rank), usize::MAX - rank.rank))?;
    let reason = worst.disturbed.iter().flat_map(BTreeMap::values).next()?;
    let without_clean: usize = run.ranks.iter().map(medians_of_disturbed).sum();
    let medians: usize = run.ranks.iter().map(|rank| rank.windows.len()).sum();
    let consequence = match without_clean {
        0 => "the medians leave them out, the means do not".to_owned(),
        all if all == medians => "no clean one is left for the medians".to_owned(),
        some => format!(
            "the medians leave them out, but for {some} of {medians} that have no clean window"
        ),
    };
    Some(format!(
        "{disturbed} of {windows} windows were disturbed: {consequence}.\nMost of rank {} on cpu {}: {} ({reason}).\n",
        worst.rank,
        worst.cpu,
        of(worst)
    ))
}

/// Sizes of which every window of a rank was disturbed: their medians are of those.
fn medians_of_disturbed(rank: &RankResult) -> usize {
    let sizes = rank.windows.iter().zip(&rank.disturbed);
    sizes.filter(|(windows, disturbed)| windows.len() == disturbed.len()).count()
}

fn table(run: &RankRun, title: &str, values: impl Fn(&RankResult) -> &Vec<f64>) -> String {
    let columns = run.sizes_bytes.len();
    // Eight characters a column and the bars between them.
    let width = (columns * 9).saturating_sub(1).max(title.len());
    let bar = "--------|".repeat(columns);
    let rule = format!("|-------|---------|------|----------------|-------|{bar}\n");
    let sizes: String =
        run.sizes_bytes.iter().map(|&size| format!(" {:<7}|", size_label(size))).collect();
    let edge = format!(" {}\n", "=".repeat(50 + width));
    let mut text = format!(
        "{edge}|  MPI  |        CPU     |              MEMORY    |{title:^width$}|\n{rule}\
         | Ranks | Cores   | NUMA |     Address    | NUMA  |{sizes}\n{rule}"
    );
    for rank in &run.ranks {
        let address = format!("{:#x}", rank.address);
        let _ = write!(
            text,
            "|  {:03}  | {:<8}| {:^5}| {address:<15}| {:^6}|",
            rank.rank,
            rank.cpu,
            rank.cpu_node,
            rank.memory_node()
        );
        for value in values(rank) {
            let _ = write!(text, " {:<7}|", format!("{value:.2}"));
        }
        text.push('\n');
    }
    text + &edge
}

/// `512MB`, and `1024M` from a thousand on, as the suite has it; `16KB` below one.
fn size_label(bytes: u64) -> String {
    match bytes >> 20 {
        0 => format!("{}KB", bytes >> 10),
        megabytes if megabytes < 1000 => format!("{megabytes}MB"),
        megabytes => format!("{megabytes}M"),
    }
}

#[cfg(test)]
mod tests {
    use numalab_record::{Kind, ProofMethod};
    use numalab_topology::{CpuId, NodeId};

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
    fn disturbed_windows_are_told_with_the_rank_that_has_most() {
        let mut run = run();
        assert_eq!(ranks_disturbed(&run), None);
        for rank in &mut run.ranks {
            rank.windows = vec![vec![3.0; 20]; 3];
        }
        run.ranks[0].disturbed = vec![BTreeMap::from([(4, "switched out once".to_owned())])];
        let switched = BTreeMap::from([(0, "off".to_owned()), (7, "off".to_owned())]);
        run.ranks[1].disturbed = vec![BTreeMap::new(), switched];
        let expected = "3 of 120 windows were disturbed: the medians leave them out, the means do \
                        not.\nMost of rank 1 on cpu 17: 2 (off).\n";
        assert_eq!(ranks_disturbed(&run).as_deref(), Some(expected));
    }

    #[test]
    fn medians_are_not_said_to_leave_out_what_is_all_they_have() {
        let mut run = run();
        run.ranks.truncate(1);
        run.ranks[0].windows = vec![vec![3.0; 2]; 2];
        let all = BTreeMap::from([(0, "off".to_owned()), (1, "off".to_owned())]);
        run.ranks[0].disturbed = vec![all.clone(), BTreeMap::new()];
        let said = ranks_disturbed(&run).unwrap_or_default();
        let expected = "2 of 4 windows were disturbed: the medians leave them out, but for 1 of 2 \
                        that have no clean window.\n";
        assert!(said.starts_with(expected), "{said}");
        run.ranks[0].disturbed[1] = all;
        let said = ranks_disturbed(&run).unwrap_or_default();
        let expected = "4 of 4 windows were disturbed: no clean one is left for the medians.\n";
        assert!(said.starts_with(expected), "{said}");
    }

    #[test]
    fn the_table_is_the_suites() {
        let table = ranks_table(&run());
        let lines: Vec<&str> = table.lines().collect();
        assert_eq!(
            lines[3],
            "| Ranks | Cores   | NUMA |     Address    | NUMA  | 256KB  | 1MB    | 1024M  |"
        );
        assert_eq!(
            lines[5],
            "|  000  | 1       |   0  | 0x527e70       |   3   | 3.50   | 11.53  | 154.92 |"
        );
        assert!(
            lines[..8].iter().all(|line| line.len() == lines[1].len() || line.starts_with(" ="))
        );
        assert!(table.contains("MEDIAN (ns)") && table.contains("| 10.53  |"), "{table}");
    }
}
