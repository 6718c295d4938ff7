//! What a program did to its memory, for the report: the parts of `numalab_record::ProgramMemory`.

use std::sync::atomic::Ordering::Relaxed;

use serde::Serialize;

use numalab_memory_model::engine::Engine;
use numalab_memory_model::machine::Machine;

use super::accesses::Done;
use super::code::{CodePlace, Objects};
use super::contention::{Contended, Party};
use super::page_use::LINE_BYTES;
use super::pages::{Alike, Sharing, Sum};
use super::regions::{FirstTouches, Region};
use super::{Program, lock};

/// Lines that are told of.
const MOST_LINES: usize = 64;
/// Of a region's accesses, its hot pages take this part.
const HOT_PERCENT: u64 = 90;

/// The program's part of a report.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    process: u32,
    /// What it went on as.
    #[serde(skip_serializing_if = "Option::is_none")]
    became: Option<String>,
    elapsed_ns: u64,
    threads: Vec<Thread>,
    regions: Vec<Used>,
    contended_lines: Vec<Line>,
    /// Bytes of the pages that are there at the end, by node.
    bytes: Vec<Bytes>,
    /// Accesses to pages for which the machine had no memory left.
    unplaced: u64,
}

/// A seat of the model that threads ran on.
#[derive(Clone, Debug, Serialize)]
struct Thread {
    thread: usize,
    cpu_node: u32,
    busy_ns: u64,
}

#[derive(Clone, Debug, Serialize)]
struct Bytes {
    node: u32,
    bytes: u64,
}

/// A region that was accessed.
#[derive(Clone, Debug, Serialize)]
struct Used {
    start: u64,
    end: u64,
    name: String,
    made_at: Vec<CodePlace>,
    first_touches: Vec<Touches>,
    hot_pages: u64,
    pages: Vec<PagesAlike>,
    accesses: Vec<From>,
}

#[derive(Clone, Debug, Serialize)]
struct Touches {
    thread: usize,
    cpu_node: u32,
    pages: u64,
    at: Vec<CodePlace>,
}

#[derive(Clone, Debug, Serialize)]
struct PagesAlike {
    memory_node: u32,
    main_node: u32,
    sharing: Sharing,
    pages: u64,
    accesses: u64,
    waits: Vec<NodeWaits>,
}

#[derive(Clone, Debug, Serialize)]
struct NodeWaits {
    cpu_node: u32,
    memory_ns: u64,
}

/// What a thread did to a region's pages on a node.
#[derive(Clone, Debug, Serialize)]
struct From {
    thread: usize,
    cpu_node: u32,
    memory_node: u32,
    loads: u64,
    stores: u64,
    misses: u64,
    waited_ns: u64,
    memory_ns: u64,
    queue_ns: u64,
}

#[derive(Clone, Debug, Serialize)]
struct Line {
    address: u64,
    region: String,
    changes: u64,
    threads: Vec<LineUser>,
}

#[derive(Clone, Debug, Serialize)]
struct LineUser {
    thread: usize,
    cpu_node: u32,
    loads: u64,
    stores: u64,
    loaded_bytes: u64,
    stored_bytes: u64,
    waited_ns: u64,
    at: Vec<CodePlace>,
}

impl Summary {
    /// As far as the program has come.
    pub fn new(program: &Program, engine: &Engine) -> Self {
        let machine = &engine.arguments.machine;
        let objects = Objects::read();
        let threads = (0..machine.cpus.len()).filter_map(|place| {
            let busy_ps = engine.busy_ps(place);
            // Those that still run have a time too.
            (busy_ps > 0).then(|| {
                program.clock.now_ps(place, busy_ps);
                Thread { thread: place, cpu_node: home(machine, place), busy_ns: busy_ps / 1000 }
            })
        });
        let threads: Vec<Thread> = threads.collect();
        let bytes = lock(&program.space).bytes_by_node();
        let bytes = machine.nodes.iter().zip(bytes);
        Self {
            process: std::process::id(),
            became: lock(&program.becomes).clone(),
            elapsed_ns: program.clock.elapsed_ps() / 1000,
            threads,
            regions: regions(program, machine, &objects),
            contended_lines: lines(program, machine, &objects),
            bytes: bytes.map(|(node, bytes)| Bytes { node: node.id, bytes }).collect(),
            unplaced: program.unplaced.load(Relaxed),
        }
    }
}

fn home(machine: &Machine, place: usize) -> u32 {
    machine.nodes[machine.cpus[place]].id
}

fn regions(program: &Program, machine: &Machine, objects: &Objects) -> Vec<Used> {
    let (alike, heat) = {
        let pages = lock(&program.pages);
        (pages.alike(), pages.heat())
    };
    let of_region = |number: usize, region: &Region| Used {
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

fn touches(of: &FirstTouches, machine: &Machine, objects: &Objects) -> Touches {
    Touches {
        thread: of.place,
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
        sharing: alike.sharing,
        pages: sum.pages,
        accesses: sum.accesses,
        waits: waits
            .map(|(node, ps)| NodeWaits { cpu_node: node.id, memory_ns: ps / 1000 })
            .collect(),
    }
}

fn accesses(program: &Program, machine: &Machine, region: usize) -> Vec<From> {
    let nodes = machine.nodes.len();
    let of = |place: usize, node: usize| {
        let done = program.accesses[place].of(region * nodes + node);
        (done.loads + done.stores > 0).then(|| from(machine, place, node, done))
    };
    let places = 0..program.accesses.len();
    places.flat_map(|place| (0..nodes).filter_map(move |node| of(place, node))).collect()
}

fn from(machine: &Machine, place: usize, node: usize, done: Done) -> From {
    From {
        thread: place,
        cpu_node: home(machine, place),
        memory_node: machine.nodes[node].id,
        loads: done.loads,
        stores: done.stores,
        misses: done.misses,
        waited_ns: done.waited_ps / 1000,
        memory_ns: done.memory_ps / 1000,
        queue_ns: done.queue_ps / 1000,
    }
}

fn lines(program: &Program, machine: &Machine, objects: &Objects) -> Vec<Line> {
    let contention = lock(&program.contention);
    let regions = lock(&program.regions);
    let line = |(number, line): (u64, &Contended)| Line {
        address: number * LINE_BYTES,
        region: regions.all()[line.region].name.clone(),
        changes: line.changes,
        threads: line.parties.iter().map(|party| user(party, machine, objects)).collect(),
    };
    contention.worst(MOST_LINES).into_iter().map(line).collect()
}

fn user(party: &Party, machine: &Machine, objects: &Objects) -> LineUser {
    LineUser {
        thread: party.place,
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
