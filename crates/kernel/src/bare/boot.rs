//! The order in which the machine is brought up.

use alloc::boxed::Box;
use alloc::string::ToString;
use core::arch::global_asm;

use numalab_kernel::boot_info::{BootInfo, BootInfoError};
use numalab_kernel::command::Command;
use numalab_kernel::event::{Boot, Event, NodeRow};
use numalab_kernel::memory_map::{Span, carve, free_spans};
use numalab_kernel::plan::Plan;
use numalab_kernel::tables;
use numalab_membench::Stamp;
use numalab_topology::{Cpu, Finding, Severity};

use super::address::number;
use super::cpus::Cpus;
use super::exit::{Verdict, exit};
use super::memory::{Mapped, Memory};
use super::report::say;
use super::work::Lab;
use super::{apic, arena, interrupts, meter, paging, processor, serial, time, work};

global_asm!(
    include_str!("boot.s"),
    main = sym start,
    exception = sym interrupts::exception,
    wake = sym interrupts::wake,
);

unsafe extern "C" {
    static __kernel_start: u8;
    static __kernel_end: u8;
}

/// The first MiB, which belongs to the firmware and the trampoline.
const LOW: Span = Span { start: 0, end: 1 << 20 };
/// Words of metadata in addition to those of the first plan, because allocating them splits a range
/// in two.
const SLACK_WORDS: usize = 1024;

/// Runs as the first Rust code; `loader` is 1 for PVH, 2 for Multiboot2.
extern "C" fn start(info: u64, loader: u32) -> ! {
    let begun = Stamp::now();
    serial::init();
    // SAFETY: the first and only call, before any cpu has loaded the table.
    unsafe { interrupts::init() };
    interrupts::load();
    processor::enable_vectors();
    // SAFETY: the loader maps the first 4 GiB at their own addresses (`boot.s`), and no other cpu
    // runs; the memory that is read belongs to the loader, and the kernel does not write to it.
    let low = unsafe { Mapped::new([Span { start: 0, end: 4 << 30 }].into_iter()) };
    let read = match loader {
        1 => BootInfo::pvh(&low, info),
        _ => BootInfo::multiboot2(&low, info),
    };
    let info = read.unwrap_or_else(|error: BootInfoError| refuse(&error));
    let command = Command::parse(&info.command_line).unwrap_or_else(|error| refuse(&error));
    let end = info.usable().iter().map(|span| span.end).max().unwrap_or_default();
    // SAFETY: all that is in use so far is the kernel's own and the loader's, below 4 GiB.
    let page_bytes = unsafe { paging::map_all(end) };
    let mapped_bytes = paging::mapped_bytes(end);
    // SAFETY: `map_all` has just mapped these addresses.
    unsafe { meter::find(mapped_bytes) };
    apic::enable();
    let plan = serve_memory(&info, &command, mapped_bytes);
    let rate = time::rate();
    let apic_ids = plan.machine.cpus.iter().filter_map(|cpu| cpu.apic_id);
    let mut cpus = Cpus::new(apic_ids, apic::id(), rate.khz);
    cpus.start();
    let mut lab = Lab::new(plan, command, cpus, rate);
    report_boot(&mut lab, &info, page_bytes, begun);
    let verdict = work::all(&mut lab);
    lab.report.end();
    exit(verdict)
}

/// Plans the machine and passes its memory to the frame allocator.
fn serve_memory(info: &BootInfo, command: &Command, mapped_bytes: u64) -> &'static Plan {
    // Page 0 is no longer mapped.
    let mapped = |span: Span| Span { start: span.start.max(4096), end: span.end };
    let spans = info.readable(mapped_bytes).chain([LOW]).map(mapped);
    // SAFETY: `start` mapped all below `mapped_bytes` at their own addresses, which `readable` stays
    // below, and no other cpu runs; the memory read is the firmware's, and the kernel does not
    // write to it.
    let firmware = unsafe { Mapped::new(spans) };
    let found = tables::find(&firmware, info.rsdp);
    let kernel = Span {
        start: (&raw const __kernel_start).addr() as u64,
        end: (&raw const __kernel_end).addr() as u64,
    };
    let mut free = free_spans(&info.usable(), &[LOW, kernel]);
    let plan = |free: &[Span]| {
        let plan = Plan::new(&found, free, apic::id(), &command.numa);
        plan.unwrap_or_else(|error| refuse(&error))
    };
    let first = plan(&free);
    let words_needed = first.served(&first.fallback_slices()).metadata_words();
    let words_needed = words_needed.unwrap_or_else(|error| refuse(&error)) + SLACK_WORDS;
    let Some(metadata) = carve(&mut free, words_needed as u64 * 8) else {
        refuse(&"no room for the frame allocator's metadata");
    };
    let plan: &'static Plan = Box::leak(Box::new(plan(&free)));
    let machine = plan.served(plan.fallback_slices().leak());
    // SAFETY: the plan distributes memory that the loader calls usable, without the first MiB and
    // the kernel's own (`free_spans`), and `start` mapped it; `carve` cut the metadata, whole blocks
    // of 2 MiB, off it before.
    if let Err(error) = unsafe { Memory::start(machine, &metadata) } {
        refuse(&error);
    }
    plan
}

fn report_boot(lab: &mut Lab, info: &BootInfo, page_bytes: u64, begun: Stamp) {
    let (plan, rate) = (lab.plan, lab.rate);
    let cpus = plan.machine.cpus.len();
    let started = (0..cpus).filter(|&place| lab.cpus.has_started(place)).count();
    lab.report.send(&Event::Boot(Boot {
        version: env!("CARGO_PKG_VERSION").to_string(),
        loader: info.loader.name().to_string(),
        command: info.command_line.clone(),
        tsc_khz: rate.khz,
        clock: rate.source.to_string(),
        boot_ticks: Stamp::now().since(begun).map_or(0, |ticks| ticks.0),
        apic: if apic::is_x2apic() { "x2apic" } else { "xapic" }.to_string(),
        page_bytes,
        arena_bytes: arena::used_bytes() as u64,
        cpus: number(cpus),
        started: number(started),
        nodes: number(plan.machine.nodes.len()),
        seed: lab.command.seed,
        memory_bytes: plan.machine.memory_bytes(),
        emulated: meter::is_emulated(),
    }));
    let nodes = plan.machine.nodes.len();
    for (place, node) in plan.machine.nodes.iter().enumerate() {
        lab.report.send(&Event::Node(NodeRow {
            node: node.clone(),
            distances: plan.distances[place * nodes..][..nodes].to_vec(),
            order: plan.fallback[place].iter().map(|node| node.0.into()).collect(),
        }));
    }
    for (place, cpu) in plan.machine.cpus.iter().enumerate() {
        let online = lab.cpus.has_started(place);
        lab.report.send(&Event::Cpu(Cpu { online, ..cpu.clone() }));
        if !online {
            let place = alloc::format!("cpu {place}, APIC id {}", cpu.apic_id.unwrap_or_default());
            let message = "did not start: continuing without it";
            let dead = Finding::new(Severity::Warning, "cpu-dead", place, message);
            lab.report.send(&Event::Finding(dead));
        }
    }
    for range in &plan.machine.ranges {
        lab.report.send(&Event::Range(range.clone()));
    }
    for finding in &plan.findings {
        lab.report.send(&Event::Finding(finding.clone()));
    }
    if rate.source == "assumed" {
        let message = "no timer has a constant rate: 1 GHz is assumed, so times are unreliable";
        let (severity, place) = (Severity::Warning, "time stamp counter");
        lab.report.send(&Event::Finding(Finding::new(severity, "clock-unknown", place, message)));
    }
}

/// Stops before any work.
fn refuse(reason: &dyn core::fmt::Display) -> ! {
    say(format_args!("REFUSED: {reason}"));
    exit(Verdict::Refused)
}
