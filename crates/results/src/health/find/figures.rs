//! The figures of a health check compared with the baseline's.

use std::collections::{BTreeMap, BTreeSet};

use numalab_record::{Cell, CellId, Experiment, LatencyCell, Metric};
use numalab_stats::{Direction, RunShift, moderate};
use serde::{Deserialize, Serialize};

use super::{LEAST_BASELINE_RUNS, Limits, Severity, Symptom};
use crate::compare::NamedRun;
use crate::fleet::{Family, Scope};
use crate::run::{CellSummary, Summary};

/// Probability that an unchanged machine's figure is flagged in one run, before suspects are
/// measured again.
const CHANCE: f64 = 0.001;
/// Share of disturbed windows above which no figure is trusted.
const MOST_DISTURBED: f64 = 0.5;

/// All cells of one family on one node's memory, or on the whole host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct HealthFigure {
    /// The part of the machine that the figure covers.
    pub scope: Scope,
    /// The kind of figure.
    pub family: Family,
    /// The signed change in percent.
    pub change_percent: f64,
    /// The standard deviation between groups of the baseline's runs, or with fewer than three
    /// groups between its runs, in percent.
    pub spread_percent: f64,
    /// The probability of such a change if the machine were unchanged.
    pub p: f64,
    /// The share of windows that other load disturbed, 0 to 1.
    pub disturbed_share: f64,
    /// The severity of the change.
    pub severity: Severity,
    /// The cells that it covers.
    pub cells: Vec<CellId>,
}

type Key = (Scope, Family, Metric);

/// One run's log medians and shares of disturbed windows, by figure and cell.
type Medians<'a> = BTreeMap<Key, BTreeMap<&'a CellId, (f64, f64)>>;

/// Returns the figures that both sides have, ordered by scope, and those that the candidate plans
/// but one side did not measure.
pub(super) fn figures(
    (baseline, groups): (&[NamedRun], &[Vec<usize>]),
    candidate: &[NamedRun],
    limits: Limits,
) -> (Vec<HealthFigure>, Vec<Symptom>) {
    let cached = baseline.first().and_then(|run| Summary::of(&run.document).cached_bytes());
    let before: Vec<Medians<'_>> = baseline.iter().map(|run| medians(run, cached)).collect();
    let now: Vec<Medians<'_>> = candidate.iter().map(|run| medians(run, cached)).collect();
    let keys: BTreeSet<&Key> = now.iter().flat_map(BTreeMap::keys).collect();
    let planned = candidate.iter().flat_map(|run| &run.document.cells);
    let planned: BTreeSet<Key> = planned.filter_map(|cell| key(&cell.cell, cached)).collect();
    let missing = planned.iter().filter_map(|key| unmeasured(key, &before, keys.contains(key)));
    let missing: Vec<Symptom> = missing.collect();
    // Of too few groups, the variation between runs has to do, and no figure is failing.
    let is_varied = groups.len() >= LEAST_BASELINE_RUNS;
    let single: Vec<Vec<usize>> = (0..baseline.len()).map(|run| vec![run]).collect();
    let units = if is_varied { groups } else { &single };
    let (mut found, mut shifts) = (Vec::new(), Vec::new());
    for key in keys {
        if let Some((figure, shift)) = figure(key, (&before, units), &now) {
            found.push((key, figure));
            shifts.push(shift);
        }
    }
    moderate(&mut shifts);
    let judged = found.into_iter().zip(shifts);
    let judged =
        judged.map(|((key, figure), shift)| judged_by(figure, key, &shift, (limits, is_varied)));
    (judged.collect(), missing)
}

/// Returns a symptom if a planned figure was not measured in all runs of the baseline, or not now.
fn unmeasured(
    (scope, family, metric): &Key,
    before: &[Medians<'_>],
    is_now: bool,
) -> Option<Symptom> {
    let (scope, family) = (scope.clone(), *family);
    let key = (scope.clone(), family, *metric);
    let runs = before.iter().filter(|run| run.contains_key(&key)).count();
    match (runs == before.len(), is_now) {
        (false, _) => Some(Symptom::NotInBaseline { scope, family, runs }),
        (true, false) => Some(Symptom::NotMeasured { scope, family }),
        (true, true) => None,
    }
}

fn judged_by(
    figure: HealthFigure,
    key: &Key,
    shift: &RunShift,
    (limits, is_varied): (Limits, bool),
) -> HealthFigure {
    let is_worse = (shift.effect > 0.0) == (key.2.better() == Direction::LowerIsBetter);
    let p = shift.p_beyond(0.0);
    let percent = figure.change_percent.abs();
    let severity = match () {
        () if !is_worse || p > CHANCE || percent <= limits.degraded_percent => Severity::Healthy,
        () if figure.disturbed_share > MOST_DISTURBED => Severity::Disturbed,
        () if percent <= limits.failing_percent || !is_varied => Severity::Degraded,
        () => Severity::Failing,
    };
    let spread_percent = shift.spread().exp_m1() * 100.0;
    HealthFigure { spread_percent, p, severity, ..figure }
}

/// Returns one figure before it is judged, and its shift; `None` if the baseline lacks it.
fn figure(
    key: &Key,
    (before, units): (&[Medians<'_>], &[Vec<usize>]),
    now: &[Medians<'_>],
) -> Option<(HealthFigure, RunShift)> {
    let cells = now.iter().find_map(|run| run.get(key))?;
    let is_in =
        |run: &&Medians<'_>, id: &CellId| run.get(key).is_some_and(|run| run.contains_key(id));
    let in_all = |id: &&CellId| before.iter().all(|run| is_in(&run, id));
    let cells: Vec<&CellId> = cells.keys().copied().filter(in_all).collect();
    let mean = |run: &Medians<'_>| {
        let of = run.get(key)?;
        let values: Vec<(f64, f64)> = cells.iter().filter_map(|id| of.get(id).copied()).collect();
        let count = values.len() as f64;
        let sum = values.iter().fold((0.0, 0.0), |sum, value| (sum.0 + value.0, sum.1 + value.1));
        (count > 0.0).then_some((sum.0 / count, sum.1 / count))
    };
    let of_unit = |unit: &Vec<usize>| {
        let logs: Vec<f64> =
            unit.iter().filter_map(|run| mean(&before[*run])).map(|(log, _)| log).collect();
        (!logs.is_empty()).then(|| logs.iter().sum::<f64>() / logs.len() as f64)
    };
    let baseline: Vec<f64> = units.iter().filter_map(of_unit).collect();
    // The mildest run counts, because a finding must show in all of them.
    let worse = |(log, _): &(f64, f64)| match key.2.better() {
        Direction::LowerIsBetter => *log,
        Direction::HigherIsBetter => -*log,
    };
    let (log, disturbed_share) =
        now.iter().filter_map(mean).min_by(|a, b| worse(a).total_cmp(&worse(b)))?;
    let shift = RunShift::of(&baseline, &[log])?;
    let figure = HealthFigure {
        scope: key.0.clone(),
        family: key.1,
        change_percent: shift.effect.exp_m1() * 100.0,
        spread_percent: 0.0,
        p: 1.0,
        disturbed_share,
        severity: Severity::Healthy,
        cells: cells.into_iter().cloned().collect(),
    };
    Some((figure, shift))
}

fn medians(run: &NamedRun, cached_bytes: Option<f64>) -> Medians<'_> {
    let mut medians = Medians::new();
    for result in &run.document.cells {
        let Some(key) = key(&result.cell, cached_bytes) else { continue };
        let summary = CellSummary::of(result);
        let Some(figure) = summary.figure(key.2).filter(|figure| figure.median > 0.0) else {
            continue;
        };
        let value = (figure.median.ln(), summary.disturbed_share(key.2));
        medians.entry(key).or_default().insert(&result.cell.id, value);
    }
    medians
}

/// Returns the figure that a cell belongs to, if a health check uses it.
fn key(cell: &Cell, cached_bytes: Option<f64>) -> Option<Key> {
    let is_cached =
        |cell: &LatencyCell| cached_bytes.is_some_and(|cached| cell.size_bytes as f64 <= cached);
    let (family, metric) = match &cell.experiment {
        Experiment::Core(_) => (Family::Core, Metric::CoreClock),
        Experiment::Latency(cell) if is_cached(cell) => (Family::CacheLatency, Metric::Latency),
        Experiment::Latency(_) => (Family::MemoryLatency, Metric::Latency),
        Experiment::Bandwidth(_) => (Family::Bandwidth, Metric::Bandwidth),
        _ => return None,
    };
    let mut nodes = cell.experiment.workers().into_iter().map(|worker| worker.node.0);
    let scope = match nodes.next() {
        Some(node) if nodes.all(|other| other == node) => Scope::MemoryNode(node),
        _ => Scope::Host,
    };
    Some((scope, family, metric))
}
