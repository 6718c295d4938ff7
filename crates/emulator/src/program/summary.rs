//! Summarizes what a program did to its memory, for the report.

mod heat;

use std::collections::{BTreeMap, HashMap};

use numalab_memory_model::arguments::Alternative;
use numalab_memory_model::counters::{Figure, VcpuFigures};
use numalab_memory_model::machine::Machine;
use numalab_memory_model::space::Placement;
use numalab_record::{
    self as record, AccessWaits, ContendedLine, Elsewhere, KernelTime, LineUser, NodeWaits,
    PagesAlike, Placed, ProgramMemory, ProgramThread, RegionAccesses, Stretch, StretchAccesses,
};

use super::Program;
use super::account::Done;
use super::code::Objects;
use super::contention::{Contended, Party};
use super::exec;
use super::page_use::LINE_BYTES;
use super::pages::{Alike, Sum};
use super::regions::{FirstTouches, Region};
use super::thread::Thread;
use super::world::World;

/// Maximum number of lines reported.
const MOST_LINES: usize = 64;

/// Returns what the program has done so far, or `None` if it has not begun. Called when none of its
/// threads runs any more, or by the holder of the turn.
pub fn program_memory(program: &Program) -> Option<ProgramMemory> {
    program.seen().map(summarised_world)
}

fn summarised_world(world: &World) -> ProgramMemory {
    let objects = Objects::read();
    let threads = world.threads.iter().enumerate().filter(|(_, thread)| thread.busy_ps() > 0);
    let threads = threads.map(|(seat, thread)| ProgramThread {
        thread: number(seat),
        cpu_node: home(world, seat),
        busy_ns: thread.busy_ps() / 1000,
        elsewhere: elsewhere(&world.engine.arguments.alternatives, &thread.shadow.later_ps()),
    });
    let regions = regions(world, &objects);
    let machine = &world.engine.arguments.machine;
    ProgramMemory {
        process: std::process::id(),
        program: exec::running(),
        became: world.becomes.clone(),
        elapsed_ns: world.elapsed_ps() / 1000,
        threads: threads.collect(),
        timeline: stretches(world, &regions),
        regions: regions.into_values().collect(),
        contended_lines: lines(world, &objects),
        unplaced: world.unplaced,
        page_faults: machine.faults.map(|_| kernel_time(world, |of| [&of.faults, &of.faults_ps])),
        system_calls: machine.calls.map(|_| kernel_time(world, |of| [&of.calls, &of.calls_ps])),
    }
}

/// Returns the sum of two figures of all cpus: a number and a time in ps.
fn kernel_time(world: &World, figures: impl Fn(&VcpuFigures) -> [&Figure; 2]) -> KernelTime {
    let phases = world.engine.counters.phases();
    phases.flat_map(|(_, vcpus)| vcpus).map(figures).fold(KernelTime::default(), |sum, of| {
        let [count, ps] = of.map(Figure::get);
        KernelTime { count: sum.count + count, time_ns: sum.time_ns + ps / 1000 }
    })
}

/// Returns the time line, with positions for regions.
fn stretches(world: &World, regions: &BTreeMap<usize, record::Region>) -> Vec<Stretch> {
    let positions: HashMap<usize, usize> =
        regions.keys().enumerate().map(|(position, number)| (*number, position)).collect();
    let numbered = |stretch: &Stretch| {
        let regions = stretch
            .regions
            .iter()
            .filter_map(|of| Some(StretchAccesses { region: *positions.get(&of.region)?, ..*of }));
        Stretch { regions: regions.collect(), ..*stretch }
    };
    world.time_line.stretches().iter().map(numbered).collect()
}

/// Returns a thread's additional waits under each other placement.
fn elsewhere(alternatives: &[Alternative], later_ps: &[i64]) -> Vec<Elsewhere> {
    let waits = alternatives.iter().zip(later_ps).filter_map(|(alternative, ps)| {
        let placed = match alternative {
            Alternative::Placed(Placement::Bind(nodes)) => Placed::Bound(*nodes.first()?),
            Alternative::Placed(Placement::Interleave(turns)) => Placed::Interleaved(turns.clone()),
            Alternative::Placed(Placement::Local | Placement::Preferred(_)) => return None,
            Alternative::Huge => Placed::Huge,
            Alternative::Packed => Placed::Packed,
            Alternative::Users => Placed::Users,
        };
        Some(Elsewhere { placed, longer_ns: ps / 1000 })
    });
    waits.collect()
}

/// Returns a seat's number in the report.
fn number(seat: usize) -> u32 {
    u32::try_from(seat).unwrap_or(u32::MAX)
}

/// Returns the node of a seat's cpu.
fn home(world: &World, seat: usize) -> u32 {
    let machine = &world.engine.arguments.machine;
    let seated = (seat < world.threads.len()).then(|| &world.threads[seat]);
    machine.nodes[seated.map_or(0, |thread| thread.home)].id
}

/// Returns the regions that were accessed, by number.
fn regions(world: &World, objects: &Objects) -> BTreeMap<usize, record::Region> {
    let (alike, pages) = (world.pages.alike(), world.pages.by_region());
    let (machine, none) = (&world.engine.arguments.machine, BTreeMap::new());
    let of_region = |number: usize, region: &Region| {
        let pages = pages.get(&number).unwrap_or(&none);
        record::Region {
            start: region.start,
            end: region.end,
            name: region.name.clone(),
            made_at: objects.places(None, &region.made_by),
            first_touches: region.touches.iter().map(|of| touches(of, world, objects)).collect(),
            hot_pages: heat::hot_pages(pages),
            pages: alike
                .iter()
                .filter(|(alike, _)| alike.region == number)
                .map(|(alike, sum)| pages_alike(alike, sum, machine))
                .collect(),
            accesses: accesses(world, number),
            resident: heat::resident(pages, machine),
            parts: heat::parts((region.start, region.end), pages, machine),
            accessed_at: Vec::new(),
            shared: region.shared,
        }
    };
    let all = world.regions.all().iter().enumerate();
    let used = all.map(|(number, region)| (number, of_region(number, region)));
    used.filter(|(_, used)| !used.accesses.is_empty()).collect()
}

fn touches(of: &FirstTouches, world: &World, objects: &Objects) -> record::FirstTouches {
    record::FirstTouches {
        thread: number(of.seat),
        cpu_node: home(world, of.seat),
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

fn accesses(world: &World, region: usize) -> Vec<RegionAccesses> {
    let nodes = world.engine.arguments.machine.nodes.len();
    let of = |(seat, thread): (usize, &Thread), node: usize| {
        let done = thread.account.of(region * nodes + node);
        (done.accesses != [0; 2]).then(|| from(world, seat, node, done))
    };
    let threads = world.threads.iter().enumerate();
    threads.flat_map(|thread| (0..nodes).filter_map(move |node| of(thread, node))).collect()
}

fn from(world: &World, seat: usize, node: usize, done: Done) -> RegionAccesses {
    let [loads, stores] = done.accesses;
    RegionAccesses {
        thread: number(seat),
        cpu_node: home(world, seat),
        memory_node: world.engine.arguments.machine.nodes[node].id,
        loads: Some(loads),
        stores: Some(stores),
        misses: Some(done.misses),
        waits: Some(AccessWaits {
            waited_ns: done.waited_ps / 1000,
            memory_ns: done.memory_ps / 1000,
            queue_ns: done.queue_ps / 1000,
            cached_ns: done.cached_ps / 1000,
            near_ns: done.near_ps / 1000,
            far_ns: done.far_ps / 1000,
            uncached: done.uncached,
        }),
        ..RegionAccesses::default()
    }
}

fn lines(world: &World, objects: &Objects) -> Vec<ContendedLine> {
    let line = |(number, line): (u64, &Contended)| ContendedLine {
        address: number * LINE_BYTES,
        region: world.regions.all()[line.region].name.clone(),
        changes: line.changes,
        threads: users(line, world, objects),
    };
    world.contention.worst(MOST_LINES).into_iter().map(line).collect()
}

fn users(line: &Contended, world: &World, objects: &Objects) -> Vec<LineUser> {
    let parties = line.parties.iter().zip(line.bytes());
    parties.map(|(party, bytes)| user(party, bytes, world, objects)).collect()
}

fn user(party: &Party, bytes: [u64; 2], world: &World, objects: &Objects) -> LineUser {
    LineUser {
        thread: number(party.seat),
        cpu_node: home(world, party.seat),
        loads: party.accesses[0],
        stores: party.accesses[1],
        loaded_bytes: bytes[0],
        stored_bytes: bytes[1],
        waited_ns: party.waited_ps / 1000,
        at: objects.places(Some(party.instruction), &party.callers),
    }
}
