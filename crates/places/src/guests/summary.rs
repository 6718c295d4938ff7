//! Combines the guests' outputs of a workload into one sample: their sum, its evenness, and the
//! location of their memory.

use std::collections::BTreeMap;

use numalab_record::study::{Disturbance, GuestPlace, Observation, Quantity, Reading};
use numalab_stats::Direction;
use numalab_workload::{Ending, Finished, Workload};

use super::emulated::{JobMemory, job_memory};
use super::outcome::{GuestOutcome, JobOutcome, Outcome, fairness};

/// Returns the sample of a workload, which was job number `job`, from 0.
pub(super) fn sample(outcome: &Outcome, workload: &Workload, job: usize) -> Observation {
    let mut taken = Observation {
        disturbances: outcome.disturbances.get(&job).cloned().into_iter().collect(),
        ..Observation::default()
    };
    let mut values: BTreeMap<Quantity, Vec<(String, f64)>> = BTreeMap::new();
    for guest in &outcome.guests {
        match readings(guest, workload, job) {
            Ok(readings) => {
                for reading in readings {
                    let of_guest = (guest.name.clone(), reading.value);
                    values.entry(reading.quantity).or_default().push(of_guest);
                }
            }
            Err(reason) => {
                taken.disturbances.push(Disturbance::Guest { guest: guest.name.clone(), reason });
            }
        }
        taken.evidence.extend(guest.evidence.iter().cloned());
        taken.guests.push(place(guest));
    }
    for (quantity, of_guests) in values {
        add(&mut taken, quantity, &of_guests);
    }
    let lost = outcome.guests.iter().filter(|guest| guest.lost.is_some()).count();
    taken.counters.insert("lost guests".to_owned(), lost as f64);
    taken.counters.extend(together(outcome, job).map(|share| ("together %".to_owned(), share)));
    if let Some(share) = outcome.local_share() {
        taken.readings.push(percent("local-memory", 100.0 * share));
    }
    if let Some(report) = &outcome.memory_report {
        match job_memory(report, job + 1) {
            Ok(memory) => add_memory(&mut taken, &memory),
            Err(error) => {
                taken.disturbances.push(Disturbance::EmulatorReport { reason: error.to_string() });
            }
        }
    }
    taken
}

fn readings(
    guest: &GuestOutcome,
    workload: &Workload,
    job: usize,
) -> Result<Vec<Reading>, Option<String>> {
    let done = guest.jobs.get(&job).ok_or_else(|| guest.lost.clone())?;
    let finished = Finished {
        ending: Ending::Exited(i32::from(done.exit)),
        stdout: &done.output,
        stderr: "",
        elapsed_s: seconds(done),
    };
    workload.read(&finished).map_err(|error| Some(error.to_string()))
}

/// Adds a quantity of all guests: throughputs are summed, times and latencies averaged.
fn add(taken: &mut Observation, quantity: Quantity, of_guests: &[(String, f64)]) {
    let values: Vec<f64> = of_guests.iter().map(|(_, value)| *value).collect();
    let sum: f64 = values.iter().sum();
    let value = match quantity.better {
        Direction::HigherIsBetter => sum,
        Direction::LowerIsBetter => sum / values.len() as f64,
    };
    if let Some(even) = fairness(&values) {
        taken.counters.insert(format!("{} fairness %", quantity.metric), 100.0 * even);
    }
    for (guest, value) in of_guests {
        taken.counters.insert(format!("{} {guest}", quantity.metric), *value);
    }
    taken.readings.push(Reading { quantity, value });
}

fn add_memory(taken: &mut Observation, memory: &JobMemory) {
    taken.readings.extend(
        memory.remote_share().map(|share| percent("local-accesses", 100.0 * (1.0 - share))),
    );
    taken
        .readings
        .extend(memory.expected_speed().map(|speed| percent("expected-speed", 100.0 * speed)));
    for (name, value) in [
        ("instructions", memory.instructions),
        ("cpus' time s", memory.time_ns / 1e9),
        ("memory cost s", memory.cost_ns / 1e9),
        ("cost of distance s", memory.distance_ns / 1e9),
        ("cost of load s", memory.load_ns / 1e9),
        ("remote accesses", memory.remote_misses),
        ("misses", memory.misses),
    ] {
        taken.counters.insert(name.to_owned(), value);
    }
}

fn percent(metric: &str, value: f64) -> Reading {
    Quantity::higher(metric, "%").at(value)
}

/// Returns the share of the longest run in which all guests ran, in percent.
fn together(outcome: &Outcome, job: usize) -> Option<f64> {
    let done: Vec<&JobOutcome> =
        outcome.guests.iter().filter_map(|guest| guest.jobs.get(&job)).collect();
    let first_end = done.iter().map(|done| done.end_ns).min()?;
    let last_begin = done.iter().map(|done| done.begin_ns).max()?;
    let longest = done.iter().map(|done| seconds(done)).fold(0.0, f64::max);
    let common = first_end.saturating_sub(last_begin) as f64 / 1e9;
    (longest > 0.0).then(|| 100.0 * common / longest)
}

fn seconds(done: &JobOutcome) -> f64 {
    done.end_ns.saturating_sub(done.begin_ns) as f64 / 1e9
}

fn place(guest: &GuestOutcome) -> GuestPlace {
    let of_nodes = guest.memory.iter().map(|(node, amount)| (Some(*node), *amount));
    let memory = of_nodes.chain([(None, guest.elsewhere)]).filter(|(_, amount)| *amount > 0);
    GuestPlace {
        guest: guest.name.clone(),
        home: guest.home,
        memory: memory.collect(),
        cpus: guest.cpus.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use numalab_record::study::{Load, LoadedMachine};
    use numalab_workload::WorkloadSpec;

    fn dbench() -> Workload {
        WorkloadSpec::of_tool("dbench").resolve().unwrap()
    }

    fn guest(name: &str, throughput: &str, home: u32, begin_ns: u64) -> GuestOutcome {
        let output =
            format!("Throughput {throughput} MB/sec  1 clients  1 procs  max_latency=5.0 ms\n");
        let done = JobOutcome { output, begin_ns, end_ns: 10_000_000_000, exit: 0 };
        GuestOutcome {
            name: name.to_owned(),
            home: Some(home),
            memory: BTreeMap::from([(0, 10)]),
            jobs: BTreeMap::from([(0, done)]),
            ..GuestOutcome::default()
        }
    }

    fn value(taken: &Observation, metric: &str) -> Option<f64> {
        let found = taken.readings.iter().find(|reading| reading.quantity.metric == metric);
        found.map(|reading| reading.value)
    }

    #[test]
    fn throughputs_add_up_with_their_fairness_and_locality() {
        let guests = vec![guest("g01", "3.0", 0, 0), guest("g02", "1.0", 1, 5_000_000_000)];
        let taken = sample(&Outcome { guests, ..Outcome::default() }, &dbench(), 0);
        assert_eq!(value(&taken, "throughput"), Some(4.0));
        assert_eq!(value(&taken, "local-memory"), Some(50.0));
        assert_eq!(taken.counters["throughput g02"], 1.0);
        assert_eq!(taken.counters["throughput fairness %"], 80.0);
        assert_eq!(taken.counters["together %"], 50.0);
        assert_eq!(taken.disturbances, []);
    }

    #[test]
    fn a_lost_guest_is_a_sample_with_a_reason() {
        let mut lost = guest("g02", "1.0", 0, 0);
        lost.jobs.clear();
        lost.lost = Some("the domain crashed".to_owned());
        let guests = vec![guest("g01", "3.0", 0, 0), lost];
        let taken = sample(&Outcome { guests, ..Outcome::default() }, &dbench(), 0);
        let reason = Some("the domain crashed".to_owned());
        assert_eq!(taken.disturbances, [Disturbance::Guest { guest: "g02".to_owned(), reason }]);
        assert_eq!(taken.counters["lost guests"], 1.0);
        assert_eq!(value(&taken, "throughput"), Some(3.0));
    }

    #[test]
    fn a_disturbance_belongs_to_the_sample_of_its_job_only() {
        let guests = vec![guest("g01", "3.0", 0, 0)];
        let load = Load::Foreign { foreign_ms: 9, of_ms: 20 };
        let disturbance = Disturbance::Load { on: LoadedMachine::Host, load };
        let outcome = |job| Outcome {
            guests: guests.clone(),
            disturbances: BTreeMap::from([(job, disturbance.clone())]),
            ..Outcome::default()
        };
        let taken = sample(&outcome(0), &dbench(), 0);
        assert_eq!(taken.disturbances, std::slice::from_ref(&disturbance));
        assert_eq!(value(&taken, "throughput"), Some(3.0));
        assert_eq!(sample(&outcome(1), &dbench(), 0).disturbances, []);
    }

    #[test]
    fn memory_is_reported_by_node_with_the_guests_home_node() {
        let mut of = guest("g01", "1", 2, 0);
        of.memory = BTreeMap::from([(0, 0), (1, 7), (2, 5)]);
        of.elsewhere = 3;
        let place = place(&of);
        assert_eq!((place.guest.as_str(), place.home), ("g01", Some(2)));
        assert_eq!(place.memory, [(Some(1), 7), (Some(2), 5), (None, 3)]);
    }
}
