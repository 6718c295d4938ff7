//! Lines of the kernel's results that a workload's patterns match.

use numalab_kernel::event::{Boot, Storm};
use numalab_kernel::results::Results;

pub(super) fn metric_lines(results: &Results, boot: &Boot) -> String {
    let mut text = String::new();
    if !results.runs.is_empty() {
        let sum: f64 = results.runs.iter().map(|run| run.elapsed_s(boot)).sum();
        let count = u32::try_from(results.runs.len()).unwrap_or(u32::MAX);
        text.push_str(&format!("time elapsed: {:.9} s\n", sum / f64::from(count)));
    }
    let storms = |work: &'static str| results.storms.iter().filter(move |s| s.work == work);
    if let Some(storm) = storms("storm").next() {
        text.push_str(&format!("time a frame: {:.3} ns\n", a_frame_ns(storm, boot)));
    }
    if let (Some(few), Some(many)) = (storms("scaling").next(), storms("scaling").next_back()) {
        let rate = |storm: &Storm| as_f64(storm.cpus.len() as u64) / a_frame_ns(storm, boot);
        text.push_str(&format!("speedup: {:.6} times\n", rate(many) / rate(few)));
    }
    for (name, is_local) in [("local", true), ("remote", false)] {
        if let Some(ns) = latency_ns(results, boot, is_local) {
            text.push_str(&format!("latency {name}: {ns:.4} ns\n"));
        }
    }
    let stormed = storms("storm").map(|storm| (storm.local, storm.remote));
    let guests = results.guests.iter().map(|guest| (guest.local, guest.remote));
    for (work, share) in [
        ("storm ", percent_local(stormed)),
        ("guests ", percent_local(guests)),
        ("", local_percent(results)),
    ] {
        if let Some(percent) = share {
            text.push_str(&format!("{work}frames local: {percent:.4} %\n"));
        }
    }
    text
}

/// Returns true if values of this unit depend on times, which have no meaning without a memory
/// system.
pub(super) fn is_of_time(unit: &str) -> bool {
    matches!(unit, "seconds" | "s" | "nanoseconds" | "ns" | "times")
}

/// Returns the percentage of frames on the node of the cpu that requested them.
pub(super) fn local_percent(results: &Results) -> Option<f64> {
    let runs = results.runs.iter().map(|run| (run.local, run.remote));
    let storms = results.storms.iter().map(|storm| (storm.local, storm.remote));
    let guests = results.guests.iter().map(|guest| (guest.local, guest.remote));
    percent_local(runs.chain(storms).chain(guests))
}

fn percent_local(frames: impl Iterator<Item = (u64, u64)>) -> Option<f64> {
    let (local, remote) = frames.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    (local + remote > 0).then(|| 100.0 * as_f64(local) / as_f64(local + remote))
}

pub(super) fn as_f64(count: u64) -> f64 {
    count as f64
}

/// Returns the time per frame on the slowest cpu, in ns.
fn a_frame_ns(storm: &Storm, boot: &Boot) -> f64 {
    let slowest = storm.times_ns(boot).into_iter().fold(0.0, f64::max);
    slowest / as_f64(storm.rounds.max(1))
}

/// Returns the latency of a chase on the cpus' own nodes, or on others, over all warm windows.
fn latency_ns(results: &Results, boot: &Boot, is_local: bool) -> Option<f64> {
    let home = |cpu: u32| results.machine.cpus.get(cpu as usize).and_then(|cpu| cpu.node);
    let windows = results.windows.iter().filter(|window| {
        window.warm && (home(window.cpu).map(|node| node.0) == Some(window.node)) == is_local
    });
    let (ns, loads) = windows.fold((0.0, 0), |(ns, loads), window| {
        let own = if window.own_ns > 0 { as_f64(window.own_ns) } else { boot.ns(window.ticks) };
        (ns + own, loads + window.loads)
    });
    (loads > 0).then(|| ns / as_f64(loads))
}

#[cfg(test)]
mod tests {
    use numalab_topology::{Cpu, CpuId, NodeId};

    use super::*;

    fn storm(work: &str, cpus: &[u32], own_ns: &[u64], local: u64) -> Storm {
        let (cpus, own_ns) = (cpus.to_vec(), own_ns.to_vec());
        let ticks = own_ns.clone();
        Storm { work: work.to_owned(), rounds: 100, local, remote: 50, cpus, ticks, own_ns }
    }

    #[test]
    fn a_storm_is_reported_by_its_slowest_cpu_and_scaling_by_its_speedup() {
        let mut results = Results::default();
        results.storms.push(storm("storm", &[0, 1], &[1000, 3000], 150));
        results.storms.push(storm("scaling", &[0], &[1000], 50));
        results.storms.push(storm("scaling", &[0, 1], &[1000, 1600], 150));
        let text = metric_lines(&results, &Boot::default());
        assert_eq!(
            text,
            "time a frame: 30.000 ns\nspeedup: 1.250000 times\nstorm frames local: 75.0000 %\n\
             frames local: 70.0000 %\n"
        );
    }

    #[test]
    fn latencies_are_of_warm_windows_for_local_and_remote_memory() {
        let mut results = Results::default();
        for number in 0..2 {
            let (id, node) = (CpuId(number), Some(NodeId(number)));
            results.machine.cpus.push(Cpu { id, node, ..Cpu::default() });
        }
        for (cpu, node, warm, own_ns) in
            [(0, 0, false, 9000), (0, 0, true, 100), (1, 1, true, 300), (0, 1, true, 500)]
        {
            results.windows.push(numalab_kernel::event::Window {
                cpu,
                node,
                bytes: 64,
                index: u32::from(warm),
                warm,
                loads: 10,
                ticks: 1,
                own_ns,
                accesses: [0, 0],
            });
        }
        let text = metric_lines(&results, &Boot::default());
        assert_eq!(text, "latency local: 20.0000 ns\nlatency remote: 50.0000 ns\n");
    }

    #[test]
    fn units_identify_values_that_depend_on_times() {
        assert!(["seconds", "ns", "times"].into_iter().all(is_of_time));
        assert!(!is_of_time("percent"));
    }
}
