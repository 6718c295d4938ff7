//! The records of rank 0: the suite's CSV, and the cells of a run.

use numalab_measure::{MeasureError, RunRecorder};
use numalab_record::{Finished, Launch, Outcome, RankSeat, mean_of};

use super::cells::{self, SharedCell};
use super::files::PartialCsv;
use super::{Begin, Measured, RankResults, Seat, SessionError, SessionPlan, Surroundings, Work};
use crate::team::Team;

/// The records that rank 0 writes, size by size.
pub(super) struct Ledger {
    pub csv: Option<PartialCsv>,
    pub recorder: RunRecorder,
    /// The reason why the results of the first rank that moved do not count.
    pub moved: Option<String>,
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
        Ok(Self { csv, recorder, moved: None, late_ns, precision: plan.precision })
    }

    /// Writes the results of one size: a row, and its cells with their samples. A cell with a rank
    /// that moved fails, and the CSV then has no row for the size.
    pub fn add(
        &mut self,
        size_bytes: u64,
        shared: &[SharedCell],
        mut found: Vec<Measured>,
    ) -> Result<(), SessionError> {
        let mean = |found: &Measured| found.as_ref().ok().map(|found| mean_of(&found.samples));
        let means: Option<Vec<f64>> = found.iter().map(mean).collect();
        if let (Some(csv), Some(means)) = (&mut self.csv, means) {
            csv.row(size_bytes, &means)?;
        }
        for (found, late_ns) in found.iter_mut().zip(&self.late_ns) {
            let samples = found.iter_mut().flat_map(|found| &mut found.samples);
            samples.for_each(|sample| sample.start_ns += late_ns);
        }
        let of_rank = |rank: &usize| match &found[*rank] {
            Ok(found) => Ok(found),
            Err(moved) => Err(format!("rank {rank}: {moved}")),
        };
        for shared in shared {
            match shared.ranks.iter().map(of_rank).collect::<Result<Vec<&RankResults>, String>>() {
                Ok(team) => {
                    let (finished, samples) = cells::finished(shared, &team, self.precision);
                    self.recorder.record(&finished, &samples).map_err(MeasureError::from)?;
                }
                Err(reason) => {
                    self.lose(std::slice::from_ref(shared), &reason)?;
                    self.moved.get_or_insert(reason);
                }
            }
        }
        Ok(())
    }

    /// Records that the cells of one size could not be measured; the CSV has no row for the size.
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

#[cfg(test)]
mod tests {
    use std::fs;

    use numalab_record::{Environment, Kind, Run};
    use numalab_topology::Machine;

    use super::super::cells::tests::{found, seat, streams};
    use super::*;

    fn run() -> Run {
        Run {
            schema: Kind::Run.into(),
            name: "bandwidth".to_owned(),
            label: None,
            version: "1.2.3".to_owned(),
            command: Vec::new(),
            started_unix_ms: 0,
            seed: 0,
            precision: 0.01,
            budget_ns: 0,
            environment: Environment::default(),
            machine: Machine::default(),
            survey: None,
            launch: None,
            plan: Vec::new(),
        }
    }

    #[test]
    fn a_rank_that_moved_loses_its_cell_of_that_size_and_nothing_else() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.csv");
        let seats = [seat("a", 0), seat("a", 1)];
        let mut plan = streams(true);
        plan.sizes_bytes = vec![1 << 20, 2 << 20];
        let all = cells::cells(&seats, &cells::teams(&seats, &plan), &plan);
        let mut recorder = RunRecorder::in_memory(run());
        recorder
            .extend_plan(&all.iter().flatten().map(|of| of.cell.clone()).collect::<Vec<_>>())
            .unwrap();
        let csv = Some(PartialCsv::create(&path, 2).unwrap());
        let late_ns = vec![0, 50];
        let mut ledger = Ledger { csv, recorder, moved: None, late_ns, precision: 0.01 };
        let of_rank = |size: usize, rank: usize| {
            let mut found = found(&seats[rank], [1.0, 2.0]);
            for sample in &mut found.samples {
                sample.cell = all[size][rank].cell.id.clone();
            }
            Ok(found)
        };
        let moved = Err("pinned to cpu 0, but runs on cpu 1".to_owned());
        ledger.add(1 << 20, &all[0], vec![moved, of_rank(0, 1)]).unwrap();
        ledger.add(2 << 20, &all[1], vec![of_rank(1, 0), of_rank(1, 1)]).unwrap();
        let document = ledger.recorder.document();
        let reason = "rank 0: pinned to cpu 0, but runs on cpu 1".to_owned();
        assert_eq!(ledger.moved, Some(reason.clone()));
        assert_eq!(document.cells[0].ended, Some(Outcome::Failed { reason }));
        let counts: Vec<usize> = document.cells.iter().map(|cell| cell.samples.len()).collect();
        assert_eq!(counts, [0, 2, 2, 2]);
        assert_eq!(document.cells[1].samples[0].start_ns, 50);
        let rows = fs::read_to_string(directory.path().join("a.csv.part")).unwrap();
        assert_eq!(rows, "size (MB),0,1\n2,1.50,1.50\n");
    }
}
