//! Every gauge of `--format openmetrics`, with its meaning.

use std::fmt::Write as _;

use numalab_page::rows::{Holds, Rows};
use numalab_record::Metric;

use crate::{
    advice, bisect, compare, explore, fleet, health, machine, profile, program, run, samples,
    scaling, self_test, study, system, tiering, topology,
};

/// The gauges of one kind of result.
struct GaugesOf {
    /// The commands that write them.
    commands: &'static str,
    /// Remarks on labels and values, each a sentence.
    about: String,
    columns: Vec<Rows>,
}

fn gauges(commands: &'static str, about: &str, columns: Vec<Rows>) -> GaugesOf {
    GaugesOf { commands, about: about.to_owned(), columns }
}

/// Returns the gauges of all results, those that are worth collecting over time first.
fn all() -> Vec<GaugesOf> {
    [of_systems(), of_measurements(), of_programs()].into_iter().flatten().collect()
}

fn of_systems() -> Vec<GaugesOf> {
    vec![
        gauges(
            "`numalab fleet health`",
            "`of` is a place (`node 2`, `host`), and `figure` is `memory latency`, `bandwidth` or \
             `core clock`.",
            vec![health::page::columns()],
        ),
        gauges(
            "`numalab explore`",
            "Each view has its gauges: nodes, a process (`--pid`), guests (`--guests`), a job's ranks \
             (`--ranks`) and a heap (`--heap`).",
            explore::page::columns(),
        ),
        gauges(
            "`numalab fleet report`",
            "`scope` is `memory of node 3`, `package 1`, `host`, or a cell.",
            vec![fleet::page::columns()],
        ),
        gauges("`numalab topology`", "Unknown sizes have no gauge.", vec![topology::columns()]),
        gauges("`numalab machine selftest`", "", vec![self_test::page::columns()]),
    ]
}

fn of_measurements() -> Vec<GaugesOf> {
    let metrics = Metric::ALL.map(|metric| format!("`{}`", metric.name().replace('-', "_")));
    vec![
        gauges(
            "`numalab measure`, `latency`, `bandwidth`, `loaded`, `c2c` and `report`",
            &format!(
                "METRIC is one of {}; UNIT is `seconds`, `bytes_per_second`, `ratio` or `hertz`. \
                 Labels that a cell does not have are left out.",
                metrics.join(", ")
            ),
            vec![run::page::rows::columns()],
        ),
        gauges(
            "`numalab study run` and `report` of a study",
            "METRIC is a metric of the study, and UNIT its base unit. Names of metrics without one, \
             such as operations per second, have no UNIT.",
            vec![study::page::effect_columns(), study::page::value_columns()],
        ),
        gauges(
            "`numalab compare`",
            "It compares two runs, two studies, two files of numbers, or a machine file.",
            vec![
                compare::page::columns(),
                study::page::pair_columns(),
                samples::page::columns(),
                machine::page::columns(),
            ],
        ),
        gauges(
            "`numalab scale`",
            "METRIC is `latency` or `bandwidth`; UNIT is its base unit.",
            vec![scaling::page::columns()],
        ),
        gauges("`numalab study bisect`", "", vec![bisect::columns()]),
        gauges(
            "`numalab study probe`",
            "The probes are `balancing` and `tiering`.",
            vec![system::probe_columns(), tiering::page::columns()],
        ),
    ]
}

fn of_programs() -> Vec<GaugesOf> {
    vec![
        gauges("`numalab advise`", "", vec![advice::page::columns()]),
        gauges(
            "`numalab profile`",
            "Values that the source cannot observe have no gauge.",
            vec![profile::page::columns()],
        ),
        gauges("`numalab emulate`", "", vec![program::page::columns()]),
    ]
}

/// Returns the documentation of every gauge, as Markdown.
pub fn documentation() -> String {
    all().iter().map(section).collect::<Vec<_>>().join("\n")
}

fn section(of: &GaugesOf) -> String {
    let mut text = format!("## {}\n", of.commands);
    if !of.about.is_empty() {
        let _ = write!(text, "\n{}\n", of.about);
    }
    for rows in &of.columns {
        let labels = rows.columns.iter().filter(|(_, holds)| *holds == Holds::Label);
        let labels: Vec<String> = labels.map(|(name, _)| format!("`{name}`")).collect();
        let _ = write!(text, "\n| gauge, by {} | means |\n|---|---|\n", labels.join(", "));
        for gauge in rows.gauges() {
            let _ = writeln!(text, "| `{}` | {} |", gauge.name, gauge.means);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_gauge_has_a_name_and_a_meaning_that_no_other_has() {
        let tables: Vec<GaugesOf> = all();
        let gauges: Vec<_> =
            tables.iter().flat_map(|of| &of.columns).flat_map(Rows::gauges).collect();
        let names: BTreeSet<&str> = gauges.iter().map(|gauge| gauge.name.as_str()).collect();
        assert_eq!(names.len(), gauges.len());
        for gauge in &gauges {
            assert!(gauge.means.len() > 5, "{gauge:?}");
            let is_prefixed = ["_percent", "_ns", "_us", "_ms", "_kib", "_mb_s"];
            assert!(!is_prefixed.iter().any(|unit| gauge.name.contains(unit)), "{gauge:?}");
        }
    }
}
