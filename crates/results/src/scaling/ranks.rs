//! Results of ranks as the benchmarking suite's table.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use numalab_page::rows::Rows;
use numalab_page::{Format, Page, Style};
use numalab_record::{Metric, Placement, RankFigures, RankTable};

use crate::report::Report;
use crate::run::page::sentence;
use crate::run::{Oddity, RunFinding, Summary};

/// The results of one launch of ranks: a run, in the suite's text and CSV formats.
#[derive(Debug)]
pub struct RanksReport<'a> {
    /// The summary of the ranks' run.
    pub summary: &'a Summary<'a>,
    pub table: &'a RankTable,
    /// The last rank's memory by node, in the format of `numastat`.
    pub memory: &'a str,
    /// The CSV in the suite's format.
    pub csv: String,
}

impl RanksReport<'_> {
    /// Returns what the launch lacks: cells that could not be measured, and huge pages.
    pub fn shortfalls(&self) -> Vec<String> {
        let is_one = |finding: &&RunFinding| {
            matches!(finding.what, Oddity::Failed { .. } | Oddity::HugePagesMissing { .. })
        };
        self.summary.findings.iter().filter(is_one).map(sentence).collect()
    }
}

impl Report for RanksReport<'_> {
    fn page(&self) -> Page {
        self.summary.page()
    }

    fn json(&self) -> serde_json::Result<String> {
        self.summary.json()
    }

    fn rows(&self) -> Option<Rows> {
        self.summary.rows()
    }

    fn terminal(&self, _: Style) -> String {
        let disturbed = ranks_disturbed(self.table).unwrap_or_default();
        format!("\n{}{disturbed}\n{}", ranks_table(self.table), self.memory)
    }

    fn exported(&self, format: Format) -> Option<String> {
        match format {
            Format::Csv => Some(self.csv.clone()),
            _ => self.summary.exported(format),
        }
    }
}

/// Returns the suite's table with the means, followed by one with the medians.
fn ranks_table(table: &RankTable) -> String {
    let (title, unit) = match table.metric {
        Metric::Bandwidth => ("BANDWIDTH", "GB/s"),
        _ => ("LATENCY", "ns"),
    };
    let mean = columns(table, &format!("{title} ({unit})"), |rank| &rank.mean);
    let median = columns(table, &format!("MEDIAN ({unit})"), |rank| &rank.median);
    format!("{mean}\n{median}")
}

/// Describes the number of disturbed windows and the rank with the most; `None` if there were none.
fn ranks_disturbed(table: &RankTable) -> Option<String> {
    let disturbed: usize = table.ranks.iter().map(RankFigures::all_disturbed).sum();
    let windows: usize = table.ranks.iter().map(RankFigures::all_windows).sum();
    let most = |(number, rank): &(usize, &RankFigures)| (rank.all_disturbed(), usize::MAX - number);
    let (number, worst) = table.ranks.iter().enumerate().max_by_key(most)?;
    let reason = worst.disturbed.iter().flat_map(BTreeMap::values).next()?;
    let without_clean: usize = table.ranks.iter().map(medians_of_disturbed).sum();
    let medians: usize = table.ranks.iter().map(|rank| rank.windows.len()).sum();
    let consequence = match without_clean {
        0 => "the medians leave them out, the means do not".to_owned(),
        all if all == medians => "no clean one is left for the medians".to_owned(),
        some => format!(
            "the medians leave them out, but for {some} of {medians} that have no clean window"
        ),
    };
    Some(format!(
        "{disturbed} of {windows} windows were disturbed: {consequence}.\nMost of rank {} on cpu {}: {} ({reason}).\n",
        number,
        worst.placement.cpu,
        worst.all_disturbed()
    ))
}

/// Counts the sizes at which all windows of a rank were disturbed, so that its medians include
/// them.
fn medians_of_disturbed(rank: &RankFigures) -> usize {
    let sizes = rank.windows.iter().zip(&rank.disturbed);
    sizes.filter(|(windows, disturbed)| **windows == disturbed.len()).count()
}

fn columns(table: &RankTable, title: &str, values: impl Fn(&RankFigures) -> &Vec<f64>) -> String {
    let sizes = table.sizes_bytes.len();
    // Eight characters per column, and the bars between them.
    let width = (sizes * 9).saturating_sub(1).max(title.len());
    let bar = "--------|".repeat(sizes);
    let rule = format!("|-------|---------|------|----------------|-------|{bar}\n");
    let sizes: String =
        table.sizes_bytes.iter().map(|&size| format!(" {:<7}|", size_label(size))).collect();
    let edge = format!(" {}\n", "=".repeat(50 + width));
    let mut text = format!(
        "{edge}|  MPI  |        CPU     |              MEMORY    |{title:^width$}|\n{rule}\
         | Ranks | Cores   | NUMA |     Address    | NUMA  |{sizes}\n{rule}"
    );
    for (number, rank) in table.ranks.iter().enumerate() {
        let Placement { cpu, cpu_node, address, .. } = &rank.placement;
        let (address, cpu_node) = (format!("{address:#x}"), cpu_node.unwrap_or_default());
        let _ = write!(
            text,
            "|  {number:03}  | {cpu:<8}| {cpu_node:^5}| {address:<15}| {:^6}|",
            rank.memory_node()
        );
        for value in values(rank) {
            let _ = write!(text, " {:<7}|", format!("{value:.2}"));
        }
        text.push('\n');
    }
    text + &edge
}

/// Formats a size as the suite does: `512MB`, but `1024M` from 1000 on, and `16KB` below one.
fn size_label(bytes: u64) -> String {
    match bytes >> 20 {
        0 => format!("{}KB", bytes >> 10),
        megabytes if megabytes < 1000 => format!("{megabytes}MB"),
        megabytes => format!("{megabytes}M"),
    }
}

#[cfg(test)]
#[path = "../../../record/fixtures/rank_table.rs"]
mod rank_table;

#[cfg(test)]
mod tests {
    use super::rank_table::table;
    use super::*;

    #[test]
    fn disturbed_windows_are_reported_with_the_rank_that_has_most() {
        let mut table = table();
        assert_eq!(ranks_disturbed(&table), None);
        for rank in &mut table.ranks {
            rank.windows = vec![20; 3];
        }
        table.ranks[0].disturbed = vec![BTreeMap::from([(4, "switched out once".to_owned())])];
        let switched = BTreeMap::from([(0, "off".to_owned()), (7, "off".to_owned())]);
        table.ranks[1].disturbed = vec![BTreeMap::new(), switched];
        let expected = "3 of 120 windows were disturbed: the medians leave them out, the means do \
                        not.\nMost of rank 1 on cpu 17: 2 (off).\n";
        assert_eq!(ranks_disturbed(&table).as_deref(), Some(expected));
    }

    #[test]
    fn medians_of_disturbed_windows_alone_do_not_claim_to_leave_them_out() {
        let mut table = table();
        table.ranks.truncate(1);
        table.ranks[0].windows = vec![2; 2];
        let all = BTreeMap::from([(0, "off".to_owned()), (1, "off".to_owned())]);
        table.ranks[0].disturbed = vec![all.clone(), BTreeMap::new()];
        let said = ranks_disturbed(&table).unwrap_or_default();
        let expected = "2 of 4 windows were disturbed: the medians leave them out, but for 1 of 2 \
                        that have no clean window.\n";
        assert!(said.starts_with(expected), "{said}");
        table.ranks[0].disturbed[1] = all;
        let said = ranks_disturbed(&table).unwrap_or_default();
        let expected = "4 of 4 windows were disturbed: no clean one is left for the medians.\n";
        assert!(said.starts_with(expected), "{said}");
    }

    #[test]
    fn the_table_is_the_suites() {
        let table = ranks_table(&table());
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
