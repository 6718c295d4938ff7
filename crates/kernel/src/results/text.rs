//! Results as text for people, as they arrive.

use std::fmt::Write;
use std::format;
use std::string::String;

use super::Results;
use crate::event::{Boot, Event};

impl Results {
    /// Returns the text that a result adds; latencies and bandwidths are printed together at the
    /// end.
    pub fn text_of(&self, event: &Event) -> String {
        let unnamed = Boot::default();
        let boot = self.boot.as_ref().unwrap_or(&unnamed);
        match event {
            Event::Boot(boot) => boot_text(boot),
            Event::Finding(finding) => format!("{finding}\n"),
            // In the form of the original project's script.
            Event::Run(run) => {
                format!("Run #{}:\nTime elapsed: {:.3} s\n", run.index + 1, run.elapsed_s(boot))
            }
            Event::Storm(storm) => {
                let times = storm.times_ns(boot);
                let each = |ns: &f64| ns / storm.rounds.max(1) as f64;
                let slowest = times.iter().map(each).fold(0.0, f64::max);
                let share = share(storm.local, storm.remote);
                let cpus = storm.cpus.len();
                format!("{}: {cpus} cpus, {slowest:.0} ns per frame, {share}\n", storm.work)
            }
            Event::Guest(guest) => format!(
                "guest {} on node {}: {}, frames by node {:?}\n",
                guest.guest,
                guest.node,
                share(guest.local, guest.remote),
                guest.held
            ),
            Event::Fill(fill) => format!(
                "cpu {}: {} pieces of order {} from node {}, {} still free on nearer nodes\n",
                fill.cpu, fill.pieces, fill.order, fill.node, fill.left_nearer
            ),
            Event::Refill(refill) => format!(
                "exhausted: {} frames free when refused, {} of {} after all were freed\n",
                refill.refused_at, refill.after, refill.before
            ),
            Event::Failure { work, message } => format!("{work} failed: {message}\n"),
            // Tables and figures of the page, printed when all are there.
            Event::Node(_)
            | Event::Cpu(_)
            | Event::Range(_)
            | Event::Window(_)
            | Event::Stream(_)
            | Event::Heap(_) => String::new(),
        }
    }

    /// Returns the text at the end of all runs of `test_numa`: the average time, and the nodes of
    /// the frames.
    pub fn average(&self) -> String {
        let Some(boot) = self.boot.as_ref().filter(|_| !self.runs.is_empty()) else {
            return String::new();
        };
        let count = self.runs.len();
        let sum: f64 = self.runs.iter().map(|run| run.elapsed_s(boot)).sum();
        let local = self.runs.iter().map(|run| run.local).sum();
        let remote = self.runs.iter().map(|run| run.remote).sum();
        let mut text = String::new();
        let average = sum / count as f64;
        let _ = writeln!(text, "Average Time elapsed over {count} runs: {average:.3} s");
        let _ = writeln!(text, "Frames: {}", share(local, remote));
        let accesses = self.runs.iter().flat_map(|run| &run.read_accesses);
        let [near, far] = accesses.fold([0, 0], |sum, one| [sum[0] + one[0], sum[1] + one[1]]);
        if near + far > 0 {
            let _ = writeln!(text, "Reads, by the emulator's count: {}", share(near, far));
        }
        text
    }
}

fn boot_text(boot: &Boot) -> String {
    let Boot { version, loader, apic, cpus, started, nodes, .. } = boot;
    let size = match boot.page_bytes {
        0x4000_0000 => "1 GiB",
        _ => "2 MiB",
    };
    let gib = boot.memory_bytes as f64 / f64::from(1 << 30);
    let ms = boot.ns(boot.boot_ticks) / 1e6;
    format!(
        "numalab-kernel {version} by {loader}: {started} of {cpus} cpus ({apic}), {nodes} nodes, \
         {gib:.2} GiB free, mapped by pages of {size}, up in {ms:.0} ms\n"
    )
}

fn share(local: u64, remote: u64) -> String {
    let all = local + remote;
    let percent = 100.0 * local as f64 / all.max(1) as f64;
    format!("{percent:.1} % local ({local} of {all})")
}
