//! The records of rank 0: the suite's CSV, and the cells of a run.

use numalab_measure::{MeasureError, RunRecorder};
use numalab_record::{Finished, Launch, Outcome, RankSeat, mean_of};

use super::cells::{self, SharedCell};
use super::files::PartialCsv;
use super::{Begin, Found, Seat, SessionError, SessionPlan, Surroundings, Work};
use crate::team::Team;

/// The records that rank 0 writes, size by size.
pub(super) struct Ledger {
    pub csv: Option<PartialCsv>,
    pub recorder: RunRecorder,
    /// The start of each rank in nanoseconds after that of the first rank on its host.
    late_ns: Vec<u64>,
    precision: f64,
}

impl Ledger {
    pub fn begin(
        team: &Team,
        around: Surroundings<'_>,
        plan: &SessionPlan,
        (seats, teams, cells): (&[Seat], Vec<Vec<usize>>, &[Vec<SharedCell>]),
        begin: Begin<'_>,
    ) -> Result<Self, SessionError> {
        let mut recorder = begin(team, launch_of(team, around, plan, (seats, teams)))?;
        let cells: Vec<_> = cells.iter().flatten().map(|shared| shared.cell.clone()).collect();
        recorder.extend_plan(&cells).map_err(MeasureError::from)?;
        let csv = plan.csv.as_ref().map(|csv| PartialCsv::create(csv, team.size())).transpose()?;
        let late_ns = seats.iter().map(|seat| late_ns(seat, seats)).collect();
        Ok(Self { csv, recorder, late_ns, precision: plan.precision })
    }

    /// Writes the results of one size: a row, and its cells with their samples.
    pub fn add(
        &mut self,
        size_bytes: u64,
        shared: &[SharedCell],
        mut found: Vec<Found>,
    ) -> Result<(), SessionError> {
        let means: Vec<f64> = found.iter().map(|found| mean_of(&found.samples)).collect();
        if let Some(csv) = &mut self.csv {
            csv.row(size_bytes, &means)?;
        }
        for (found, late_ns) in found.iter_mut().zip(&self.late_ns) {
            found.samples.iter_mut().for_each(|sample| sample.start_ns += late_ns);
        }
        for shared in shared {
            let (finished, samples) = cells::finished(shared, &found, self.precision);
            self.recorder.record(&finished, &samples).map_err(MeasureError::from)?;
        }
        Ok(())
    }

    /// Records that the cells of one size could not be measured; the CSV has no row for it.
    pub fn lose(&mut self, shared: &[SharedCell], reason: &str) -> Result<(), SessionError> {
        for shared in shared {
            let finished = Finished {
                cell: shared.cell.id.clone(),
                outcome: Outcome::Failed { reason: reason.to_owned() },
                placements: Vec::new(),
            };
            self.recorder.record(&finished, &[]).map_err(MeasureError::from)?;
        }
        Ok(())
    }
}

/// Returns the delay of a rank's start after the first one of its host, so that the windows of both
/// share one clock.
fn late_ns(seat: &Seat, seats: &[Seat]) -> u64 {
    let here = seats.iter().filter(|other| other.host == seat.host);
    let first = here.map(|other| other.started_ns).min();
    first.map_or(0, |first| seat.started_ns - first)
}

fn launch_of(
    team: &Team,
    around: Surroundings<'_>,
    plan: &SessionPlan,
    (seats, teams): (&[Seat], Vec<Vec<usize>>),
) -> Launch {
    let (iterations, warmup) = match &plan.work {
        Work::Latency(rules) => (rules.iterations, rules.warmup),
        Work::Bandwidth(_) => (0, 0),
    };
    let seat = |seat: &Seat| RankSeat { host: seat.host.clone(), policy: seat.policy.clone() };
    Launch {
        launcher: around.identity.launcher.to_string(),
        meeting: team.describe(),
        serial: plan.serial,
        iterations,
        warmup,
        ranks: seats.iter().map(seat).collect(),
        teams,
    }
}
