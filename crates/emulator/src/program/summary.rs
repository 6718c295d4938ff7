//! What a program did to its memory, for the report.

use std::sync::atomic::Ordering::Relaxed;

use numalab_memory_model::arguments::Beside;
use numalab_memory_model::engine::Engine;
use numalab_memory_model::machine::Machine;
use numalab_memory_model::space::Placement;
use numalab_record::{
    self as record, ContendedLine, Elsewhere, LineUser, NodeWaits, PagesAlike, Placed,
    ProgramMemory, ProgramThread, RegionAccesses,
};

use super::accesses::Done;
use super::code::Objects;
use super::contention::{Contended, Party};
use super::page_use::LINE_BYTES;
use super::pages::{Alike, Sum};
use super::regions::{FirstTouches, Region};
use super::{Program, lock};

/// Lines that are told of.
const MOST_LINES: usize = 64;
/// Of a region's accesses, its hot pages take this part.
const HOT_PERCENT: u64 = 90;

/// What the program did as far as it has come.
pub fn program_memory(program: &Program, engine: &Engine) -> ProgramMemory {
    let machine = &engine.arguments.machine;
    let objects = Objects::read();
    let threads = (0..machine.cpus.len()).filter_map(|place| {
        let busy_ps = engine.busy_ps(place);
        // Those that still run have a time too.
        (busy_ps > 0).then(|| {
            program.clock.now_ps(place, busy_ps);
            ProgramThread {
                thread: number(place),
                cpu_node: home(machine, place),
                busy_ns: busy_ps / 1000,
                elsewhere: elsewhere(&program.beside, &engine.later_ps(place)),
            }
        })
    });
    let threads: Vec<_> = threads.collect();
    ProgramMemory {
        process: std::process::id(),
        became: lock(&program.becomes).clone(),
        elapsed_ns: program.clock.elapsed_ps() / 1000,
        threads,
        regions: regions(program, machine, &objects),
        contended_lines: lines(program, machine, &objects),
        unplaced: program.unplaced.load(Relaxed),
        ..ProgramMemory::default()
    }
}

/// What a thread would wait beyond what it did.
fn elsewhere(beside: &[Beside], later_ps: &[i64]) -> Vec<Elsewhere> {
    let told = beside.iter().zip(later_ps).filter_map(|(beside, ps)| {
        let placed = match beside {
            Beside::Placed(Placement::Bind(nodes)) => Placed::Bound(*nodes.first()?),
            Beside::Placed(Placement::Interleave(turns)) => Placed::Interleaved(turns.clone()),
            Beside::Placed(Placement::Local | Placement::Preferred(_)) => return None,
            Beside::Huge => Placed::Huge,
            Beside::Packed => Placed::Packed,
        };
        Some(Elsewhere { placed, longer_ns: ps / 1000 })
    });
    told.collect()
}

/// A thread's number in the report: its place.
fn number(place: usize) -> u32 {
    u32::try_from(place).unwrap_or(u32::MAX)
}

fn home(machine: &Machine, place: usize) -> u32 {
    machine.nodes[machine.cpus[place]].id
}

fn regions(program: &Program, machine: &Machine, objects: &Objects) -> Vec<record::Region> {
    let (alike, heat) = {
        let pages = lock(&program.pages);
        (pages.alike(), pages.heat())
    };
    let of_region = |number: usize, region: &Region| record::Region {
        start: region.start,
        end: region.end,
        name: region.name.clone(),
        made_at: objects.places(None, &region.made_by),
        first_touches: region.touches.iter().map(|of| touches(of, machine, objects)).collect(),
        hot_pages: heat.get(&number).map_or(0, |heat| hot(heat)),
        pages: alike
            .iter()
            .filter(|(alike, _)| alike.region == number)
            .map(|(alike, sum)| pages_alike(alike, sum, machine))
            .collect(),
        accesses: accesses(program, machine, number),
        ..record::Region::default()
    };
    let known = lock(&program.regions);
    let used = known.all().iter().enumerate().map(|(number, region)| of_region(number, region));
    used.filter(|used| !used.accesses.is_empty()).collect()
}

/// The fewest pages that take most of the accesses.
fn hot(heat: &[u64]) -> u64 {
    let all: u64 = heat.iter().sum();
    let mut sum = 0;
    let cold = |accesses: &&u64| {
        let before = sum;
        sum += **accesses;
        before * 100 < all * HOT_PERCENT
    };
    heat.iter().take_while(cold).count() as u64
}

fn touches(of: &FirstTouches, machine: &Machine, objects: &Objects) -> record::FirstTouches {
    record::FirstTouches {
        thread: number(of.place),
        cpu_node: home(machine, of.place),
        pages: of.pages,
        at: objects.places(Some(of.instruction), &of.callers),
    }
}

fn pages_alike(alike: &Alike, sum: &Sum, machine: &Machine) -> PagesAlike {
    let waits = machine.nodes.iter().zip(sum.memory_ps).filter(|(_, ps)| *ps > 0);
    PagesAlike {
        memory_node: machine.nodes[alike.node].id,
        main_node: machine.nodes[alike.main_node].id,
        bound: alike.bound,
        sharing: alike.sharing,
        pages: sum.pages,
        accesses: sum.accesses,
        waits: waits
            .map(|(node, ps)| NodeWaits { cpu_node: node.id, memory_ns: ps / 1000 })
            .collect(),
    }
}

fn accesses(program: &Program, machine: &Machine, region: usize) -> Vec<RegionAccesses> {
    let nodes = machine.nodes.len();
    let of = |place: usize, node: usize| {
        let done = program.accesses[place].of(region * nodes + node);
        (done.loads + done.stores > 0).then(|| from(machine, place, node, done))
    };
    let places = 0..program.accesses.len();
    places.flat_map(|place| (0..nodes).filter_map(move |node| of(place, node))).collect()
}

fn from(machine: &Machine, place: usize, node: usize, done: Done) -> RegionAccesses {
    RegionAccesses {
        thread: number(place),
        cpu_node: home(machine, place),
        memory_node: machine.nodes[node].id,
        loads: done.loads,
        stores: done.stores,
        misses: done.misses,
        waited_ns: done.waited_ps / 1000,
        memory_ns: done.memory_ps / 1000,
        queue_ns: done.queue_ps / 1000,
        cached_ns: done.cached_ps / 1000,
        near_ns: done.near_ps / 1000,
        far_ns: done.far_ps / 1000,
        uncached: done.uncached,
        ..RegionAccesses::default()
    }
}

fn lines(program: &Program, machine: &Machine, objects: &Objects) -> Vec<ContendedLine> {
    let contention = lock(&program.contention);
    let regions = lock(&program.regions);
    let line = |(number, line): (u64, &Contended)| ContendedLine {
        address: number * LINE_BYTES,
        region: regions.all()[line.region].name.clone(),
        changes: line.changes,
        threads: line.parties.iter().map(|party| user(party, machine, objects)).collect(),
    };
    contention.worst(MOST_LINES).into_iter().map(line).collect()
}

fn user(party: &Party, machine: &Machine, objects: &Objects) -> LineUser {
    LineUser {
        thread: number(party.place),
        cpu_node: home(machine, party.place),
        loads: party.accesses[0],
        stores: party.accesses[1],
        loaded_bytes: party.bytes[0],
        stored_bytes: party.bytes[1],
        waited_ns: party.waited_ps / 1000,
        at: objects.places(Some(party.instruction), &party.callers),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hot_pages_are_the_fewest_that_take_most_accesses() {
        assert_eq!(hot(&[900, 50, 30, 20]), 1);
        assert_eq!(hot(&[500, 300, 150, 50]), 3);
        assert_eq!(hot(&[]), 0);
    }
}
