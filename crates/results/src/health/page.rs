//! Page, JSON, rows and one-line summary of a health check.

use numalab_page::number::{figure, percent, size};
use numalab_page::rows::{Field, Rows};
use numalab_page::{Mood, Page, Panel, Part, Table};

use crate::document::document_of;
use crate::fleet::{Family, Scope};
use crate::health::{
    Health, HealthFigure, HealthFinding, LEAST_BASELINE_RUNS, Severity, Suspicion, Symptom,
};
use crate::report::Report;

/// Maximum number of findings named in the line; the rest are counted, because schedulers truncate
/// long reasons.
const MOST_NAMED: usize = 3;

/// Returns a summary in one line, worst finding first: `node 2: bandwidth 31 % below the baseline,
/// DIMM missing?`
pub fn reason(health: &Health) -> String {
    if health.findings.is_empty() {
        return format!("healthy: no figure is worse than in {} runs", health.baseline.len());
    }
    let words = |finding| words(finding, health);
    let named: Vec<String> = health.findings.iter().take(MOST_NAMED).map(words).collect();
    let more = health.findings.len().saturating_sub(MOST_NAMED);
    let more = if more > 0 { format!("; and {more} more") } else { String::new() };
    named.join("; ") + &more
}

fn words(finding: &HealthFinding, health: &Health) -> String {
    let what = match &finding.symptom {
        Symptom::NodeMissing { node, baseline_bytes } => {
            format!("node {node}: no memory, {} in the baseline", size(*baseline_bytes))
        }
        Symptom::MemoryMissing { node, bytes, baseline_bytes } => {
            let (now, before) = (size(*bytes), size(*baseline_bytes));
            format!("node {node}: {now} of memory, {before} in the baseline, DIMM missing?")
        }
        Symptom::CpusMissing { cpus } => format!("CPUs {cpus} missing or offline"),
        Symptom::Slower { scope, family, change_percent, suspicion } => {
            let side = if *change_percent < 0.0 { "below" } else { "above" };
            let change = format!("{:.0} % {side} the baseline", change_percent.abs());
            let because = suspicion.map(because).unwrap_or_default();
            format!("{}: {} {change}{because}", place(scope), name(*family))
        }
        Symptom::NotMeasured { scope, family } => {
            format!("{}: {} not measured", place(scope), name(*family))
        }
        Symptom::NotInBaseline { scope, family, runs } => {
            let figure = format!("{}: {} not compared", place(scope), name(*family));
            let all = health.baseline.len();
            format!("{figure}, as only {runs} of {all} runs of the baseline measured it")
        }
    };
    let failing_percent = health.limits.failing_percent;
    match (&finding.symptom, finding.severity) {
        (Symptom::Slower { .. }, Severity::Disturbed) => {
            format!("{what} (not certain: other load)")
        }
        (Symptom::Slower { change_percent, .. }, Severity::Degraded)
            if change_percent.abs() > failing_percent =>
        {
            format!(
                "{what} (not certain: the baseline was taken at {}; {LEAST_BASELINE_RUNS} are needed)",
                times(health.baseline_groups)
            )
        }
        _ => what,
    }
}

fn times(groups: usize) -> String {
    if groups == 1 { "one time".to_owned() } else { format!("{groups} different times") }
}

fn because(suspicion: Suspicion) -> &'static str {
    match suspicion {
        Suspicion::ModuleMissing => ", DIMM missing?",
        Suspicion::ChannelSlow => ", slow memory channel or DIMM?",
        Suspicion::MemorySlow => ", memory speed lowered?",
        Suspicion::ClockLimited => ", power or thermal limit?",
    }
}

fn place(scope: &Scope) -> String {
    match scope {
        Scope::MemoryNode(node) => format!("node {node}"),
        scope => scope.to_string(),
    }
}

fn name(family: Family) -> &'static str {
    if family == Family::Core { "core clock" } else { family.name() }
}

const fn severity_word(severity: Severity) -> &'static str {
    match severity {
        Severity::Healthy => "healthy",
        Severity::Disturbed => "not certain",
        Severity::Degraded => "degraded",
        Severity::Failing => "failing",
    }
}

const fn mood(severity: Severity) -> Mood {
    match severity {
        Severity::Healthy => Mood::Fine,
        Severity::Disturbed | Severity::Degraded => Mood::Odd,
        Severity::Failing => Mood::Bad,
    }
}

impl Report for Health {
    fn page(&self) -> Page {
        let row = |found: &HealthFigure| {
            vec![
                place(&found.scope),
                name(found.family).to_owned(),
                percent(found.change_percent),
                format!("{} %", figure(found.spread_percent)),
                found.cells.len().to_string(),
                severity_word(found.severity).to_owned(),
            ]
        };
        let table = Table::new("change from the baseline; spread: between runs")
            .words(["of", "figure"])
            .figures(["change", "spread", "cells"])
            .words("")
            .rows(self.figures.iter().map(row))
            .moods(self.figures.iter().map(|found| mood(found.severity)));
        Page {
            brand: "numalab fleet health".to_owned(),
            title: reason(self),
            meta: format!(
                "{} runs as baseline{}; degraded beyond {} %, failing beyond {} %",
                self.baseline.len(),
                // Checks of earlier versions did not record it.
                match self.baseline_groups {
                    0 => String::new(),
                    groups => format!(", taken at {}", times(groups)),
                },
                figure(self.limits.degraded_percent),
                figure(self.limits.failing_percent)
            ),
            parts: Part::of("Figures", vec![Panel::table(table)]).into_iter().collect(),
            ..Page::default()
        }
    }

    document_of!(Health);

    fn rows(&self) -> Option<Rows> {
        let row = |found: &HealthFigure| {
            vec![
                Field::from(place(&found.scope)),
                name(found.family).into(),
                found.change_percent.into(),
                found.spread_percent.into(),
                severity_word(found.severity).into(),
            ]
        };
        Some(columns().rows(self.figures.iter().map(row)))
    }
}

pub(crate) fn columns() -> Rows {
    Rows::new("health")
        .labels(["of", "figure"])
        .values(
            "%",
            [
                ("change_percent", "the change against the baseline: -0.31 is 31 % lower"),
                ("spread_percent", "the standard deviation between runs of the machine"),
            ],
        )
        .texts(["severity"])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::health::Limits;
    use numalab_topology::{CpuSet, NodeId};

    fn health(findings: Vec<(Severity, Symptom)>) -> Health {
        let finding = |(severity, symptom)| HealthFinding { severity, symptom };
        Health {
            severity: findings.first().map_or(Severity::Healthy, |found| found.0),
            baseline: vec![String::new(); 5],
            baseline_groups: 5,
            limits: Limits { degraded_percent: 10.0, failing_percent: 20.0 },
            findings: findings.into_iter().map(finding).collect(),
            figures: Vec::new(),
            suspected: Default::default(),
        }
    }

    #[test]
    fn a_reason_is_one_line_with_the_place_the_size_and_the_likely_cause() {
        let slower = |node, change_percent, suspicion| Symptom::Slower {
            scope: Scope::MemoryNode(node),
            family: Family::Bandwidth,
            change_percent,
            suspicion,
        };
        let node = NodeId(2);
        let (bytes, baseline_bytes) = (96 << 30, 128 << 30);
        let found = health(vec![
            (Severity::Failing, slower(2, -31.2, Some(Suspicion::ModuleMissing))),
            (Severity::Failing, Symptom::MemoryMissing { node, bytes, baseline_bytes }),
            (Severity::Disturbed, slower(0, -12.0, None)),
            (Severity::Degraded, Symptom::CpusMissing { cpus: CpuSet::new() }),
        ]);
        assert_eq!(
            reason(&found),
            "node 2: bandwidth 31 % below the baseline, DIMM missing?; node 2: 96G of memory, \
             128G in the baseline, DIMM missing?; node 0: bandwidth 12 % below the baseline (not \
             certain: other load); and 1 more"
        );
        assert_eq!(reason(&health(vec![])), "healthy: no figure is worse than in 5 runs");
    }
}
