//! Compares predictions with trials, and counts how often they agree.

use std::fmt::Write as _;

use serde_json::Value;

/// Points by which a prediction may be outside the measured interval.
const BESIDE: f64 = 3.0;
/// The share of the measured change by which a prediction may be outside, if that is more.
const BESIDE_SHARE: f64 = 0.1;
/// Changes up to this size count as none, as in `numalab advise`.
const MARGIN: f64 = 2.0;
/// Default number of candidates tried.
const TRIED: usize = 2;

/// One candidate of one program on one machine.
pub(crate) struct Row {
    pub candidate: String,
    /// `None` if one run cannot predict it, and trials decide.
    pub predicted: Option<f64>,
    pub promises: bool,
    pub measured: f64,
    pub interval: (f64, f64),
    /// True by the verdict of the trials.
    pub is_better: bool,
}

/// One program on one machine.
pub(crate) struct Case {
    pub program: String,
    pub machine: &'static str,
    pub rows: Vec<Row>,
}

/// The outcome of a choice among candidates and the unchanged program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Choice {
    /// The best, or slower than it by less than the margin.
    Right,
    /// Its interval and the best one's overlap: the trials cannot distinguish them.
    Tie,
    /// Another candidate is better.
    Wrong,
}

/// A number of cases among a total.
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
    /// Returns true if the interval decides between better, worse and equivalent.
    fn is_decided(&self) -> bool {
        let (low, high) = self.interval;
        low > 0.0 || high < 0.0 || (low > -MARGIN && high < MARGIN)
    }

    /// Returns true if the prediction agrees with the trials; `None` without a prediction.
    pub(crate) fn is_inside(&self) -> Option<bool> {
        let (low, high) = self.interval;
        let beside = BESIDE.max(BESIDE_SHARE * self.measured.abs());
        Some((low - beside..=high + beside).contains(&self.predicted?))
    }

    fn is_likely(&self) -> bool {
        self.predicted.is_some_and(|change| change < -MARGIN)
    }

    fn binds_alike(&self, other: &Self) -> bool {
        let change = |row: &Self| row.predicted.filter(|_| row.candidate.starts_with("bind"));
        change(self).zip(change(other)).is_some_and(|(one, other)| (one - other).abs() < 0.1)
    }
}

impl Case {
    /// Reads the candidates from the document of `numalab advise --format json`.
    pub(crate) fn of(program: &str, machine: &'static str, advice: &Value) -> Self {
        let number = |value: &Value| value.as_f64().expect("a number");
        let row = |option: &Value| {
            let (predicted, measured) = (&option["predicted"], &option["measured"]);
            let interval = measured["interval_percent"].as_array()?;
            let change = predicted["change_percent"].as_f64();
            let worst = predicted["interval_percent"][1].as_f64();
            let is_gain = change.zip(worst).map(|(change, worst)| change < -MARGIN && worst < 0.0);
            Some(Row {
                candidate: name(&option["candidate"]),
                predicted: change,
                promises: is_gain.unwrap_or(false),
                measured: number(&measured["change_percent"]),
                interval: (number(&interval[0]), number(&interval[1])),
                is_better: measured["verdict"] == "better",
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

    /// Judges the best prediction before any trial, in the order printed, whatever the interval.
    pub(crate) fn predicted_best(&self) -> Choice {
        let predicted = || self.rows.iter().filter(|row| row.predicted.is_some());
        judged(predicted().find(|row| row.is_likely()), predicted())
    }

    /// Returns what is advised after trying the best predictions, and then those without one; of
    /// nodes with equal predictions, the first.
    pub(crate) fn advised(&self) -> Choice {
        let likely = self.rows.iter().filter(|row| row.is_likely());
        let unknown = self.rows.iter().filter(|row| row.predicted.is_none());
        let mut tried: Vec<&Row> = likely.chain(unknown).collect();
        tried.dedup_by(|one, other| one.binds_alike(other));
        let better = tried.into_iter().take(TRIED).filter(|row| row.is_better);
        judged(better.min_by(|one, other| one.measured.total_cmp(&other.measured)), &self.rows)
    }

    /// Returns true if a gain was promised; asked where the trials found none.
    fn promises(&self) -> bool {
        self.rows.iter().any(|row| row.promises)
    }
}

/// Judges a choice among these rows and the unchanged program.
fn judged<'a>(chosen: Option<&Row>, among: impl IntoIterator<Item = &'a Row>) -> Choice {
    let best = among.into_iter().min_by(|one, other| one.measured.total_cmp(&other.measured));
    let best = best.filter(|row| row.measured < 0.0);
    let found =
        |row: Option<&Row>| row.map_or((0.0, (0.0, 0.0)), |row| (row.measured, row.interval));
    let ((chosen, of_chosen), (best, of_best)) = (found(chosen), found(best));
    if chosen <= best + MARGIN {
        Choice::Right
    } else if of_chosen.0 <= of_best.1 {
        Choice::Tie
    } else {
        Choice::Wrong
    }
}

/// Returns a candidate's name and figure, if it has one.
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

fn word(choice: Choice) -> &'static str {
    match choice {
        Choice::Right => "right",
        Choice::Tie => "tie",
        Choice::Wrong => "wrong",
    }
}

pub(crate) fn inside(cases: &[Case]) -> Rate {
    let rows = cases.iter().flat_map(|case| &case.rows);
    Rate::of(rows.filter(|row| row.is_decided()).filter_map(Row::is_inside))
}

/// Returns how often a choice is not wrong.
pub(crate) fn winners(cases: &[Case], choice: fn(&Case) -> Choice) -> Rate {
    Rate::of(cases.iter().map(|case| choice(case) != Choice::Wrong))
}

pub(crate) fn no_gains(cases: &[Case]) -> Rate {
    let without = cases.iter().filter(|case| case.best_measured() >= -MARGIN);
    Rate::of(without.map(|case| !case.promises()))
}

/// Formats a row of the table: predicted and measured changes of each candidate, with misses in
/// bold.
pub(crate) fn row(case: &Case) -> String {
    let mut cells: Vec<(String, String)> = Vec::new();
    for row in &case.rows {
        let predicted = row.predicted.map_or("–".to_owned(), |change| format!("{change:+.1}"));
        let mut figures = format!("{predicted} / {:+.1}", row.measured);
        match (row.is_decided(), row.is_inside()) {
            (false, _) => figures.push('?'),
            (true, Some(false)) => figures = format!("**{figures}**"),
            (true, _) => {}
        }
        // Equivalent nodes share a cell.
        match cells.last_mut().filter(|(_, last)| *last == figures) {
            Some((names, _)) => {
                *names += ", ";
                *names += row.candidate.trim_start_matches("bind ");
            }
            None => cells.push((row.candidate.clone(), figures)),
        }
    }
    let cells: Vec<String> =
        cells.into_iter().map(|(names, figures)| format!("{names} {figures}")).collect();
    let width = |row: &Row| row.interval.1 - row.interval.0;
    let widest = case.rows.iter().map(width).fold(0.0, f64::max);
    let choice = word(case.predicted_best());
    format!("| {} | {} | {widest:.1} | {choice} |", case.program, cells.join("; "))
}

/// Formats a Markdown table for each machine, with the rates of all below.
pub(crate) fn markdown(cases: &[Case]) -> String {
    let mut text = String::new();
    for of_machine in cases.chunk_by(|one, other| one.machine == other.machine) {
        let _ = writeln!(
            text,
            "| {} | predicted / measured, % | widest interval | best prediction |\n|---|---|---|---|",
            of_machine[0].machine
        );
        of_machine.iter().for_each(|case| text += &(row(case) + "\n"));
        text.push('\n');
    }
    let rates = [
        ("at most 3 points or a tenth of the change outside the interval", inside(cases), 80),
        ("the best prediction is the best", winners(cases, Case::predicted_best), 95),
        ("what is advised is the best", winners(cases, Case::advised), 95),
        ("no gain where there is none", no_gains(cases), 95),
    ];
    text.push_str("| rate | of | target % |\n|---|---|---|\n");
    for (what, rate, target) in rates {
        let _ = writeln!(text, "| {what} | {} of {} | {target} |", rate.right, rate.all);
    }
    text
}
