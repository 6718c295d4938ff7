//! What rank 0 keeps: the suite's results, and the cells of a run.

use numalab_measure::{MeasureError, RunRecorder};
use numalab_record::{Kind, Metric, RankResult, RankRun, Sample, WindowTime};
use numalab_stats::Sample as Values;

use super::cells::{self, SharedCell};
use super::files::PartialCsv;
use super::{Begin, Found, Seat, SessionError, SessionPlan, Surroundings, Work};
use crate::team::Team;

/// What rank 0 writes down, size by size.
pub(super) struct Ledger {
    pub run: RankRun,
    pub csv: Option<PartialCsv>,
    pub recorder: RunRecorder,
    precision: f64,
}

impl Ledger {
    pub fn begin(
        team: &Team,
        around: Surroundings<'_>,
        plan: &SessionPlan,
        (seats, cells): (Vec<Seat>, &[Vec<SharedCell>]),
        begin: Begin<'_>,
    ) -> Result<Self, SessionError> {
        let mut recorder = begin(team)?;
        let cells: Vec<_> = cells.iter().flatten().map(|shared| shared.cell.clone()).collect();
        recorder.extend_plan(&cells).map_err(MeasureError::from)?;
        let csv = plan.csv.as_ref().map(|csv| PartialCsv::create(csv, team.size())).transpose()?;
        let ranks = seats.into_iter().enumerate().map(|(rank, seat)| result_of(rank, seat));
        let run = run_of(team, around, plan, ranks.collect());
        Ok(Self { run, csv, recorder, precision: plan.precision })
    }

    /// Writes what was found for a size: a row, and its cells with their samples.
    pub fn add(
        &mut self,
        size_bytes: u64,
        shared: &[SharedCell],
        found: &[Found],
    ) -> Result<(), SessionError> {
        for (rank, found) in self.run.ranks.iter_mut().zip(found) {
            add_samples(rank, found);
        }
        let means: Vec<f64> =
            self.run.ranks.iter().filter_map(|rank| rank.mean.last().copied()).collect();
        if let Some(csv) = &mut self.csv {
            csv.row(size_bytes, &means)?;
        }
        for shared in shared {
            let (finished, samples) = cells::finished(shared, found, self.precision);
            self.recorder.record(&finished, &samples).map_err(MeasureError::from)?;
        }
        Ok(())
    }
}

/// A rank that found nothing yet.
fn result_of(rank: usize, seat: Seat) -> RankResult {
    let Seat { host, policy, placement } = seat;
    RankResult {
        rank,
        host,
        cpu: placement.cpu,
        affinity: placement.affinity,
        cpu_node: placement.cpu_node.unwrap_or_default(),
        policy,
        memory_nodes: placement.pages_per_node,
        method: placement.method,
        address: placement.address,
        bytes_per_page_size: placement.bytes_per_page_size,
        mean: Vec::new(),
        median: Vec::new(),
        windows: Vec::new(),
        times: Vec::new(),
        disturbed: Vec::new(),
    }
}

/// Adds a size. The mean is over all loads, or over all rounds of a stream; the median leaves
/// out disturbed windows, unless all are. Neither is a number without windows.
fn add_samples(rank: &mut RankResult, found: &Found) {
    let samples = &found.samples;
    let weight = |sample: &Sample| match sample.metric {
        Metric::Latency => sample.work as f64,
        _ => 1.0,
    };
    let total: f64 = samples.iter().map(weight).sum();
    rank.mean.push(samples.iter().map(|sample| sample.value * weight(sample)).sum::<f64>() / total);
    let values = |clean: bool| -> Vec<f64> {
        let taken = samples.iter().filter(|sample| !clean || sample.disturbed.is_none());
        taken.map(|sample| sample.value).collect()
    };
    let median = Values::new(values(true)).or_else(|_| Values::new(values(false)));
    rank.median.push(median.map_or(f64::NAN, |values| values.median()));
    rank.windows.push(values(false));
    let time = |sample: &Sample| WindowTime {
        start_ns: found.started_ns + sample.start_ns,
        duration_ns: sample.duration_ns,
        work: sample.work,
    };
    rank.times.push(samples.iter().map(time).collect());
    let disturbed = |(index, sample): (usize, &Sample)| Some((index, sample.disturbed.clone()?));
    rank.disturbed.push(samples.iter().enumerate().filter_map(disturbed).collect());
}

fn run_of(
    team: &Team,
    around: Surroundings<'_>,
    plan: &SessionPlan,
    ranks: Vec<RankResult>,
) -> RankRun {
    let (metric, iterations, warmup) = match &plan.work {
        Work::Latency(rules) => (Metric::Latency, rules.iterations, rules.warmup),
        Work::Bandwidth(_) => (Metric::Bandwidth, 0, 0),
    };
    RankRun {
        schema: Kind::Ranks.into(),
        metric,
        unit: metric.unit().to_string(),
        version: plan.version.clone(),
        command: std::env::args().collect(),
        launcher: around.identity.launcher.to_string(),
        meeting: team.describe(),
        seed: plan.seed,
        iterations,
        warmup,
        chain: plan.work.name(),
        pages: plan.pages.name().to_owned(),
        serial: plan.serial,
        sizes_bytes: plan.sizes_bytes.clone(),
        ranks,
    }
}
