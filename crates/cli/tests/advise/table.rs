//! What was predicted beside what trials found, and how often the two agree.

use std::fmt::Write as _;

use serde_json::Value;

/// Points that a prediction may lie beside the measured interval.
const BESIDE: f64 = 3.0;
/// Changes of this size are none, and winners this near each other are one.
const MARGIN: f64 = 2.0;

/// One candidate of one program on one machine.
pub(crate) struct Row {
    pub candidate: String,
    pub predicted: f64,
    pub promises: bool,
    pub measured: f64,
    pub interval: (f64, f64),
}

/// One program on one machine.
pub(crate) struct Case {
    pub program: String,
    pub machine: &'static str,
    pub rows: Vec<Row>,
}

/// How many of how many.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Rate {
    pub right: usize,
    pub all: usize,
}

impl Rate {
    fn of(cases: impl Iterator<Item = bool>) -> Self {
        cases.fold(Self::default(), |sum, right| Self {
            right: sum.right + usize::from(right),
            all: sum.all + 1,
        })
    }

    pub(crate) fn is_at_least(self, percent: usize) -> bool {
        self.right * 100 >= percent * self.all
    }
}

impl Row {
    /// Whether the interval says if there is a change, and which.
    fn is_decided(&self) -> bool {
        let (low, high) = self.interval;
        low > 0.0 || high < 0.0 || (low > -MARGIN && high < MARGIN)
    }

    pub(crate) fn is_inside(&self) -> bool {
        let (low, high) = self.interval;
        (low - BESIDE..=high + BESIDE).contains(&self.predicted)
    }
}

impl Case {
    /// Of the document that `numalab advise --format json` prints: what was tried.
    pub(crate) fn of(program: &str, machine: &'static str, advice: &Value) -> Self {
        let number = |value: &Value| value.as_f64().expect("a number");
        let row = |option: &Value| {
            let (predicted, measured) = (&option["predicted"], &option["measured"]);
            let interval = measured["interval_percent"].as_array()?;
            let change = number(&predicted["change_percent"]);
            let worst = number(&predicted["interval_percent"][1]);
            Some(Row {
                candidate: name(&option["candidate"]),
                predicted: change,
                promises: change < -MARGIN && worst < 0.0,
                measured: number(&measured["change_percent"]),
                interval: (number(&interval[0]), number(&interval[1])),
            })
        };
        let options = advice["options"].as_array().expect("options");
        Self {
            program: program.to_owned(),
            machine,
            rows: options.iter().filter_map(row).collect(),
        }
    }

    fn best_measured(&self) -> f64 {
        self.rows.iter().map(|row| row.measured).fold(0.0, f64::min)
    }

    /// Whether what was predicted to be best is, or is as good.
    pub(crate) fn winner_is_right(&self) -> bool {
        let better = self.rows.iter().filter(|row| row.predicted < -MARGIN);
        let chosen = better.min_by(|one, other| one.predicted.total_cmp(&other.predicted));
        chosen.map_or(0.0, |row| row.measured) <= self.best_measured() + MARGIN
    }

    /// Whether a gain was promised; asked where there is none.
    fn promises(&self) -> bool {
        self.rows.iter().any(|row| row.promises)
    }
}

/// A candidate's name and its figure, if it has one.
fn name(candidate: &Value) -> String {
    match candidate {
        Value::String(name) => name.clone(),
        Value::Object(fields) => {
            let (name, fields) = fields.iter().next().expect("a candidate has a name");
            fields.get("node").map_or_else(|| name.clone(), |node| format!("{name} {node}"))
        }
        other => panic!("a candidate, not {other}"),
    }
}

pub(crate) fn inside(cases: &[Case]) -> Rate {
    let rows = cases.iter().flat_map(|case| &case.rows);
    Rate::of(rows.filter(|row| row.is_decided()).map(Row::is_inside))
}

pub(crate) fn winners(cases: &[Case]) -> Rate {
    Rate::of(cases.iter().map(Case::winner_is_right))
}

pub(crate) fn no_gains(cases: &[Case]) -> Rate {
    let without = cases.iter().filter(|case| case.best_measured() >= -MARGIN);
    Rate::of(without.map(|case| !case.promises()))
}

/// The table in Markdown, with the rates below it.
pub(crate) fn markdown(cases: &[Case]) -> String {
    let mut text = "| program | machine | candidate | predicted | measured | inside | winner |\n\
        |---|---|---|---|---|---|---|\n"
        .to_owned();
    for case in cases {
        let winner = if case.winner_is_right() { "right" } else { "wrong" };
        for row in &case.rows {
            let inside = match (row.is_decided(), row.is_inside()) {
                (false, _) => "undecided",
                (true, true) => "yes",
                (true, false) => "no",
            };
            let (low, high) = row.interval;
            let _ = writeln!(
                text,
                "| {} | {} | {} | {:+.1} | {:+.1} ({low:+.1} to {high:+.1}) | {inside} | {winner} |",
                case.program, case.machine, row.candidate, row.predicted, row.measured
            );
        }
    }
    let rates = [
        ("inside the interval or 3 points beside it", inside(cases), 80),
        ("right winner", winners(cases), 95),
        ("no gain where there is none", no_gains(cases), 95),
    ];
    text.push_str("\n| rate | of | target % |\n|---|---|---|\n");
    for (what, rate, target) in rates {
        let _ = writeln!(text, "| {what} | {} of {} | {target} |", rate.right, rate.all);
    }
    text
}
