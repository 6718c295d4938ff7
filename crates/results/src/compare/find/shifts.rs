//! Changes between the runs of two sides, with their uncertainty.

use std::collections::BTreeMap;

use numalab_record::Metric;
use numalab_stats::{
    Confidence, Direction, RunShift, Sample, Verdict, holm, moderate, percent_change,
};

use super::cells::MatchedCell;
use super::tails::tail;
use super::{Answer, Compared, ComparedCell, FEWEST_UNITS, Tolerance};

/// The kind that is shown and not judged: a run's round trips depend on the lines that it happens to
/// use, and on the cores on which a hypervisor happens to run it, by more than half.
const NOT_JUDGED: &str = "core-to-core";

/// A row not yet judged.
struct Unjudged {
    row: ComparedCell,
    shift: RunShift,
    position: usize,
}

/// Returns the judged rows of kinds and of cells.
pub(super) fn rows(
    cells: &[MatchedCell<'_>],
    tolerance: Tolerance,
) -> (Vec<ComparedCell>, Vec<ComparedCell>) {
    let mut by_kind: BTreeMap<(&'static str, Metric), Vec<&MatchedCell<'_>>> = BTreeMap::new();
    for cell in cells {
        by_kind
            .entry((cell.cell.experiment.description().kind(), cell.metric))
            .or_default()
            .push(cell);
    }
    let (mut kinds, mut rows) = (Vec::new(), Vec::new());
    let mut shown = (Vec::new(), Vec::new());
    let mut is_repeated = true;
    for ((kind, metric), cells) in by_kind {
        let Some(group) = Group::of(&cells) else { continue };
        let units: usize = cells[0].logs.iter().map(Vec::len).sum();
        let is_shown = kind == NOT_JUDGED || units < FEWEST_UNITS;
        let (kinds, rows) =
            if is_shown { (&mut shown.0, &mut shown.1) } else { (&mut kinds, &mut rows) };
        is_repeated &= is_shown || group.units.iter().all(|units| units.len() > 1);
        if group.cells.len() > 1 {
            let of = Compared::Kind { kind, cells: group.cells.len() };
            let tail = tail(&group.cells, metric.better(), tolerance);
            kinds.push(Unjudged {
                row: ComparedCell { tail, ..row(of, metric, &group.shift) },
                shift: group.shift,
                position: 0,
            });
        }
        for (cell, shift) in group.cells.iter().zip(group.shifts()) {
            let row = ComparedCell {
                means: Some(group.means(cell)),
                pages_differ: cell.pages_differ,
                ..row(Compared::Cell(cell.cell.clone()), metric, &shift)
            };
            rows.push(Unjudged { row, shift, position: cell.position });
        }
    }
    moderate_all(&mut kinds);
    let families = if is_repeated { 2.0 } else { 1.0 };
    let mut kinds = answered(kinds, tolerance, families);
    let mut rows = answered(rows, tolerance, families);
    for (_, row) in rows.iter_mut().filter(|_| !is_repeated) {
        row.answer = match row.answer {
            Answer::Judged(Verdict::Better | Verdict::Worse) => Answer::SeenOnce,
            answer => answer,
        };
    }
    let unjudged = |found: Unjudged| (found.position, found.row);
    kinds.extend(shown.0.into_iter().map(unjudged));
    rows.extend(shown.1.into_iter().map(unjudged));
    rows.sort_by_key(|(position, _)| *position);
    let without_positions =
        |rows: Vec<(usize, ComparedCell)>| rows.into_iter().map(|(_, row)| row).collect();
    (without_positions(kinds), without_positions(rows))
}

/// Shrinks the variances of kinds towards their common value on this machine.
fn moderate_all(kinds: &mut [Unjudged]) {
    let mut shifts: Vec<RunShift> = kinds.iter().map(|found| found.shift).collect();
    moderate(&mut shifts);
    for (found, shift) in kinds.iter_mut().zip(shifts) {
        let tail = found.row.tail.take();
        found.row = ComparedCell { tail, ..row(found.row.of.clone(), found.row.metric, &shift) };
        found.shift = shift;
    }
}

/// The cells of a kind, over the units that have at least half of them.
struct Group<'a> {
    cells: Vec<&'a MatchedCell<'a>>,
    /// The indices of each side's units.
    units: [Vec<usize>; 2],
    /// Each unit's value for the kind: the median of its cells' log changes from the baseline's
    /// mean.
    together: [Vec<f64>; 2],
    /// The shift between the two sides' values in `together`.
    shift: RunShift,
}

impl<'a> Group<'a> {
    fn of(cells: &[&'a MatchedCell<'a>]) -> Option<Self> {
        let has_half = |side: usize, unit: &usize| {
            2 * cells.iter().filter(|cell| cell.logs[side][*unit].is_some()).count() >= cells.len()
        };
        let units = [0, 1].map(|side| {
            let all = 0..cells.first().map_or(0, |cell| cell.logs[side].len());
            all.filter(|unit| has_half(side, unit)).collect::<Vec<usize>>()
        });
        let is_on_both = |cell: &&&MatchedCell<'_>| {
            [0, 1]
                .iter()
                .all(|&side| units[side].iter().any(|&unit| cell.logs[side][unit].is_some()))
        };
        let cells: Vec<&MatchedCell<'_>> = cells.iter().filter(is_on_both).copied().collect();
        let baselines: Vec<f64> = cells.iter().map(|cell| mean(&logs(cell, &units, 0))).collect();
        let together = [0, 1].map(|side| {
            let of_unit = |&unit: &usize| {
                let change = |(cell, baseline): (&&MatchedCell<'_>, &f64)| {
                    Some(cell.logs[side][unit]? - baseline)
                };
                let changes: Vec<f64> = cells.iter().zip(&baselines).filter_map(change).collect();
                Sample::new(changes).map_or(f64::NAN, |changes| changes.median())
            };
            units[side].iter().map(of_unit).collect::<Vec<f64>>()
        });
        let shift = RunShift::of(&together[0], &together[1])?;
        Some(Self { cells, units, together, shift })
    }

    /// Returns the geometric means of a cell on both sides, in the metric's unit.
    fn means(&self, cell: &MatchedCell<'_>) -> [f64; 2] {
        [0, 1].map(|side| mean(&logs(cell, &self.units, side)).exp())
    }

    /// Returns the shift of each cell: that of its kind plus its own deviation.
    fn shifts(&self) -> Vec<RunShift> {
        if self.cells.len() < 2 {
            return vec![self.shift; self.cells.len()];
        }
        // Subtracting the kind's median removed 1/n of each cell's variance.
        let share = self.cells.len() as f64 / (self.cells.len() - 1) as f64;
        let beyond = |cell: &&MatchedCell<'_>| {
            let rest = |side: usize| -> Vec<f64> {
                let units = self.units[side].iter().zip(&self.together[side]);
                units.filter_map(|(&unit, kind)| Some(cell.logs[side][unit]? - kind)).collect()
            };
            RunShift::of(&rest(0), &rest(1)).unwrap_or(self.shift).widened(share)
        };
        let mut shifts: Vec<RunShift> = self.cells.iter().map(beyond).collect();
        moderate(&mut shifts);
        shifts.iter().map(|shift| self.shift.plus(shift)).collect()
    }
}

/// Returns a cell's logarithms in the given units of a side.
fn logs(cell: &MatchedCell<'_>, units: &[Vec<usize>; 2], side: usize) -> Vec<f64> {
    units[side].iter().filter_map(|&unit| cell.logs[side][unit]).collect()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Returns a row without means or answer.
fn row(of: Compared, metric: Metric, shift: &RunShift) -> ComparedCell {
    let interval = shift.interval(Confidence::P95);
    ComparedCell {
        of,
        metric,
        means: None,
        change_percent: percent_change(shift.effect),
        spread_percent: interval.map(|_| percent_change(shift.spread())),
        interval_percent: interval.map(|interval| interval.map_monotone(percent_change)),
        least_percent: None,
        answer: Answer::NotJudged,
        tail: None,
        pages_differ: None,
    }
}

/// Judges rows, adjusting for their number, the tolerance and the number of families; returns them
/// with their positions.
fn answered(
    found: Vec<Unjudged>,
    tolerance: Tolerance,
    families: f64,
) -> Vec<(usize, ComparedCell)> {
    let shifts: Vec<(RunShift, Direction)> =
        found.iter().map(|found| (found.shift, found.row.metric.better())).collect();
    let answers = answers(&shifts, tolerance, families);
    let p = Confidence::P95.alpha() / (families * found.len().max(1) as f64);
    let rows = found.into_iter().zip(answers);
    rows.map(|(found, answer)| {
        let least = found.shift.least_shown(tolerance.margin().as_log(), p);
        let least_percent = least.map(percent_change);
        (found.position, ComparedCell { answer, least_percent, ..found.row })
    })
    .collect()
}

/// Judges shifts together, as one of `families` families.
pub(crate) fn answers(
    shifts: &[(RunShift, Direction)],
    tolerance: Tolerance,
    families: f64,
) -> Vec<Answer> {
    let bound = tolerance.margin().as_log();
    let adjusted = |p: fn(&RunShift, f64) -> f64| {
        holm(&shifts.iter().map(|(shift, _)| families * p(shift, bound)).collect::<Vec<_>>())
    };
    let (beyond, within) = (adjusted(RunShift::p_beyond), adjusted(RunShift::p_within));
    let alpha = Confidence::P95.alpha();
    let judged = shifts.iter().zip(beyond.into_iter().zip(within));
    judged
        .map(|((shift, better), (beyond, within))| match () {
            () if shift.freedom <= 0.0 => Answer::NotJudged,
            () if beyond <= alpha => Answer::Judged(side(shift.effect, *better)),
            () if within <= alpha => Answer::Judged(Verdict::Equivalent),
            () => Answer::Judged(Verdict::Inconclusive { further_blocks: None }),
        })
        .collect()
}

fn side(effect: f64, better: Direction) -> Verdict {
    match (effect < 0.0) == (better == Direction::LowerIsBetter) {
        true => Verdict::Better,
        false => Verdict::Worse,
    }
}
