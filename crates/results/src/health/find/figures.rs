//! The figures of a health check against those of its baseline.

use std::collections::{BTreeMap, BTreeSet};

use numalab_record::{Cell, CellId, Experiment, Metric};
use numalab_stats::{Direction, RunShift, moderate};
use serde::{Deserialize, Serialize};

use super::{Limits, Severity};
use crate::compare::NamedRun;
use crate::fleet::{Family, Scope};
use crate::run::CellSummary;

/// The chance that a figure of a machine that is as it was is found worse: in one run, before
/// what is suspected is measured again.
const CHANCE: f64 = 0.001;
/// Where other load disturbed more of the windows than this, nothing is claimed for sure.
const MOST_DISTURBED: f64 = 0.5;

/// All cells of one family on one node's memory, or of the whole host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HealthFigure {
    /// Whose figures.
    pub scope: Scope,
    /// What they tell about.
    pub family: Family,
    /// Their change in percent, by its sign.
    pub change_percent: f64,
    /// How one run of the machine differs from another, one standard deviation in percent.
    pub spread_percent: f64,
    /// The chance of such a change if the machine were as it was.
    pub p: f64,
    /// The share of the windows that other load disturbed, 0 to 1.
    pub disturbed_share: f64,
    /// How it is to be taken.
    pub severity: Severity,
    /// The cells that were joined.
    pub cells: Vec<CellId>,
}

type Key = (Scope, Family, Metric);

/// The medians of one run, in logarithms, with the share of disturbed windows.
type Medians<'a> = BTreeMap<Key, BTreeMap<&'a CellId, (f64, f64)>>;

/// The figures that both sides have, in the order of their scopes.
pub(super) fn figures(
    baseline: &[NamedRun],
    candidate: &[NamedRun],
    limits: Limits,
) -> Vec<HealthFigure> {
    let before: Vec<Medians<'_>> = baseline.iter().map(medians).collect();
    let now: Vec<Medians<'_>> = candidate.iter().map(medians).collect();
    let keys: BTreeSet<&Key> = now.iter().flat_map(BTreeMap::keys).collect();
    let (mut found, mut shifts) = (Vec::new(), Vec::new());
    for key in keys {
        if let Some((figure, shift)) = figure(key, &before, &now) {
            found.push((key, figure));
            shifts.push(shift);
        }
    }
    moderate(&mut shifts);
    let judged = found.into_iter().zip(shifts);
    judged.map(|((key, figure), shift)| judged_by(figure, key, &shift, limits)).collect()
}

fn judged_by(figure: HealthFigure, key: &Key, shift: &RunShift, limits: Limits) -> HealthFigure {
    let is_worse = (shift.effect > 0.0) == (key.2.better() == Direction::LowerIsBetter);
    let p = shift.p_beyond(0.0);
    let percent = figure.change_percent.abs();
    let severity = match () {
        () if !is_worse || p > CHANCE || percent <= limits.degraded_percent => Severity::Healthy,
        () if figure.disturbed_share > MOST_DISTURBED => Severity::Disturbed,
        () if percent <= limits.failing_percent => Severity::Degraded,
        () => Severity::Failing,
    };
    let spread_percent = shift.spread().exp_m1() * 100.0;
    HealthFigure { spread_percent, p, severity, ..figure }
}

/// One figure before it is judged, and its shift; `None` where the baseline lacks it.
fn figure(
    key: &Key,
    before: &[Medians<'_>],
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
    let baseline: Vec<f64> = before.iter().filter_map(mean).map(|(log, _)| log).collect();
    // The mildest run: what is claimed must show in all of them.
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

fn medians(run: &NamedRun) -> Medians<'_> {
    let mut medians = Medians::new();
    for result in &run.document.cells {
        let Some(key) = key(&result.cell) else { continue };
        let summary = CellSummary::of(result);
        let Some(figure) = summary.figure(key.2).filter(|figure| figure.median > 0.0) else {
            continue;
        };
        let value = (figure.median.ln(), summary.disturbed_share(key.2));
        medians.entry(key).or_default().insert(&result.cell.id, value);
    }
    medians
}

/// What a cell tells about, where a health check asks it.
fn key(cell: &Cell) -> Option<Key> {
    let (family, metric) = match cell.experiment {
        Experiment::Core(_) => (Family::Core, Metric::CoreClock),
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
