//! Turns observations into a profile.

use std::time::Duration;

use numalab_host::{Interrupt, Root, base_page_bytes};
use numalab_record::ProgramMemory;
use numalab_record::profile::{
    CannotSee, FaultsSeen, OtherProcess, Profile, ProfileSource, SourceName, Target,
};
use numalab_topology::Machine;

use crate::choose::SourceChoice;
use crate::damon::Damon;
use crate::error::ProfileError;
use crate::pages::MOST_PAGES;
use crate::program::Program;
use crate::session::{self, Seen, Source, Watched};
use crate::summary::program_memory;

/// Watches a program with the best of these sources that works: to its end, for a time, or until
/// the user interrupts. A command that is still running then is ended, together with the processes
/// that it leaves behind, which this process adopts.
pub fn watch(
    machine: &Machine,
    watched: Watched<'_>,
    choice: SourceChoice,
    limit: Option<Duration>,
    interrupt: &Interrupt,
) -> Result<Profile, ProfileError> {
    let SourceChoice { sources, mut passed_over } = choice;
    let target = match watched {
        Watched::Command(words) => Target::Command(words.to_vec()),
        Watched::Process(process) => Target::Process {
            process,
            command: Root::live().arguments(process).unwrap_or_default(),
        },
    };
    let seen = session::watch(machine, watched, &sources, limit, interrupt)?;
    passed_over.extend(seen.passed_over.iter().cloned());
    Ok(profile(target, seen, passed_over))
}

fn profile(
    target: Target,
    seen: Seen,
    passed_over: Vec<numalab_record::profile::PassedOver>,
) -> Profile {
    let (begun_ns, ended_ns) = seen.times_ns;
    let cannot_see = cannot_see(&seen);
    let source = source(&seen);
    let is_samples = source.name() == SourceName::Samples;
    let faults = seen.has_faults.then_some(FaultsSeen {
        lost: if is_samples { 0 } else { seen.lost.0 },
        ..seen.follower.faults
    });
    let nodes = seen.follower.nodes.all.clone();
    let mut programs = seen.follower.past;
    programs.extend(seen.follower.living.into_values());
    let again = programs.iter().map(|program| program.faults_again).sum();
    let faults = faults.map(|faults| FaultsSeen { again, ..faults });
    programs.sort_by_key(|program| program.begun_ns);
    let mut processes: Vec<OtherProcess> = programs.iter().map(process).collect();
    let most = processes.iter().max_by_key(|of| (of.accesses, of.touched_pages, of.busy_ns));
    let name = most.map_or_else(String::new, |of| of.name.clone());
    processes.retain(|_| programs.len() > 1);
    let named = programs.iter().flat_map(|program| program.threads.all());
    let thread_names = named.filter_map(|(of, seen)| Some((of, seen.name.clone()?))).collect();
    Profile {
        target,
        watched_ns: ended_ns - begun_ns,
        ended: seen.ended,
        left: seen.left,
        source,
        faults,
        cannot_see,
        passed_over,
        nodes,
        latency_ns: Vec::new(),
        name,
        program: together(programs, ended_ns),
        thread_names,
        others: Vec::new(),
        processes,
    }
}

/// Joins the programs into one that begins when the first of them began.
fn together(programs: Vec<Program>, ended_ns: u64) -> ProgramMemory {
    let page_bytes = base_page_bytes();
    let begun_ns = programs.first().map_or(0, |program| program.begun_ns);
    let memory = programs.into_iter().map(|program| {
        let later_ns = program.begun_ns - begun_ns;
        let mut memory = program_memory(program, ended_ns, page_bytes);
        memory.elapsed_ns += later_ns;
        memory.timeline.iter_mut().for_each(|stretch| stretch.end_ns += later_ns);
        memory
    });
    ProgramMemory::joined(memory.collect())
}

fn process(program: &Program) -> OtherProcess {
    let (accesses, remote) = program.accesses();
    OtherProcess {
        process: program.process,
        name: program.name.clone(),
        busy_ns: program.threads.busy_ns(),
        accesses,
        remote,
        touched_pages: program.touches.values().sum(),
    }
}

fn source(seen: &Seen) -> ProfileSource {
    match &seen.source {
        Source::Samples(unit) => ProfileSource::Samples {
            unit: unit.kind,
            events: unit.events.iter().map(numalab_host::perf::MemoryEvent::description).collect(),
            taken: seen.follower.samples,
            lost: seen.lost.0,
            throttled: seen.lost.1,
        },
        Source::Faults { balancing } => ProfileSource::Faults { balancing: *balancing },
        Source::Damon(damon) => {
            ProfileSource::Damon { sample_us: Damon::SAMPLE_US, rounds: damon.rounds }
        }
        Source::Referenced(referenced) => ProfileSource::Referenced {
            rounds: referenced.rounds,
            interval_ns: referenced.interval_ns(),
            soft_dirty: referenced.soft_dirty,
        },
    }
}

/// Returns the facts that this source cannot see, and those that turned out to be invisible.
fn cannot_see(seen: &Seen) -> Vec<CannotSee> {
    let by_source = match &seen.source {
        Source::Samples(unit) => {
            let fastest = unit.events.iter().filter_map(|event| event.least_latency_cycles);
            let fast = fastest.max().map(|cycles| CannotSee::FastLoads { cycles });
            fast.into_iter().collect()
        }
        Source::Faults { balancing: true } => {
            vec![CannotSee::HowOften, CannotSee::LoadsFromStores]
        }
        Source::Faults { balancing: false } => {
            vec![CannotSee::LaterAccesses, CannotSee::LoadsFromStores]
        }
        Source::Damon(_) => {
            vec![CannotSee::HowOften, CannotSee::LoadsFromStores, CannotSee::Threads]
        }
        Source::Referenced(referenced) => {
            let loads = (!referenced.soft_dirty).then_some(CannotSee::LoadsFromStores);
            let always = [CannotSee::HowOften, CannotSee::Threads];
            always.into_iter().chain(loads).collect::<Vec<_>>()
        }
    };
    let touches = if seen.has_faults {
        CannotSee::CallsWithoutFramePointers
    } else {
        CannotSee::FirstTouches
    };
    let programs = || seen.follower.past.iter().chain(seen.follower.living.values());
    let is_cut = programs().any(|program| program.pages.is_cut);
    let cut = is_cut.then_some(CannotSee::PagesBeyond { most: MOST_PAGES as u64 });
    let is_divided = programs().any(|program| program.is_divided);
    let divided = is_divided.then_some(CannotSee::SharesOfMappings);
    let always = [CannotSee::Waiting, CannotSee::HeapSites, touches];
    let found = seen.follower.cannot_see.iter().cloned();
    by_source.into_iter().chain(always).chain(divided).chain(cut).chain(found).collect()
}

#[cfg(test)]
mod tests;
