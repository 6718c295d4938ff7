//! Frames allocated, touched and freed by every cpu at once.

use alloc::format;
use alloc::vec::Vec;

use numalab_kernel::event::{Event, Storm};
use numalab_membench::{Barrier, Random};

use super::test_numa::NODES;
use super::{Failure, Lab, cpu_index};
use crate::bare::address::{index, numbers};
use crate::bare::memory::Run;
use crate::bare::meter::{self, Moment, Span};

const ROUNDS: u64 = 100_000;
/// Number of frames that each cpu holds at a time.
const WINDOW: usize = 256;

struct StormResult {
    span: Span,
    held: [u64; NODES],
    failure: Option<Failure>,
}

/// Runs once on every cpu that takes part.
#[inline(never)]
pub fn run(lab: &mut Lab) -> Result<(), Failure> {
    let cpus = lab.chosen();
    on(lab, "storm", &cpus)
}

/// Runs on 1, 2, 4, ... and all cpus, of all nodes in turn.
#[inline(never)]
pub fn scaling(lab: &mut Lab) -> Result<(), Failure> {
    let all = lab.chosen();
    let mut count = 1;
    loop {
        let cpus = lab.dealt(&all, count);
        on(lab, "scaling", &cpus)?;
        if count >= all.len() {
            return Ok(());
        }
        count = (count * 2).min(all.len());
    }
}

fn on(lab: &mut Lab, work: &str, cpus: &[usize]) -> Result<(), Failure> {
    let barrier = Barrier::new(u32::try_from(cpus.len()).unwrap_or(u32::MAX));
    let rounds = lab.command.count.unwrap_or(ROUNDS);
    let found = {
        let lab: &Lab = lab;
        lab.cpus.collect(cpus, &|place| cpu(lab, place, rounds, &barrier))
    };
    if let Some(failure) = found.iter().find_map(|found| found.failure.clone()) {
        return Err(failure);
    }
    let local = found.iter().zip(cpus).map(|(found, &cpu)| found.held[lab.node_of(cpu)]);
    let local: u64 = local.sum();
    let all: u64 = found.iter().flat_map(|found| found.held).sum();
    let spans: Vec<Span> = found.iter().map(|found| found.span).collect();
    lab.report.send(&Event::Storm(Storm {
        work: work.into(),
        rounds,
        local,
        remote: all - local,
        cpus: numbers(cpus),
        ticks: meter::ticks(&spans),
        own_ns: meter::own_ns(&spans),
    }));
    Ok(())
}

/// Allocates and writes frames on one cpu, and frees a random held frame for each.
fn cpu(lab: &Lab, place: usize, rounds: u64, barrier: &Barrier) -> StormResult {
    let (memory, cpu, policy) = (lab.memory(), cpu_index(place), lab.policy());
    let mut random = Random::new(lab.command.seed, place as u64);
    let mut window = [const { None::<Run> }; WINDOW];
    let mut held = [0; NODES];
    // No cpu aborts this barrier.
    let _ = barrier.wait();
    let start = Moment::now(place);
    let mut failure = None;
    for round in 0..rounds {
        let slot = &mut window[index(random.below(WINDOW as u64))];
        if let Some(frame) = slot.take()
            && let Err(error) = frame.free(memory, cpu)
        {
            failure = Some(format!("cpu {place}: {error}"));
            break;
        }
        let mut frame = match Run::new(memory, cpu, 1, policy) {
            Ok(frame) => frame,
            Err(error) => {
                failure = Some(format!("cpu {place}: {error}"));
                break;
            }
        };
        held[usize::from(frame.node().0)] += 1;
        if let Some(line) = frame.lines().first_mut() {
            line.words_mut()[0] = round;
        }
        *slot = Some(frame);
    }
    let span = Moment::now(place).since(&start);
    for frame in window.into_iter().flatten() {
        if let Err(error) = frame.free(memory, cpu) {
            failure.get_or_insert_with(|| format!("cpu {place}: {error}"));
        }
    }
    StormResult { span, held, failure }
}
