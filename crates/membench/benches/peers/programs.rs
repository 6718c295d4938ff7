//! The bandwidth kernels beside other programs, in turn with runs of them.
//!
//! They use 4 KiB pages, so here ours do too.

use crate::machine::{self, Pages};
use crate::sample::Paired;
use crate::streaming;
use numalab_membench::{Access, Clock, Isa, Kernel, Line};
use std::process::Command;

const PAIRS: usize = 5;

/// A program's run, and which kernel of ours does the same.
struct Peer {
    program: &'static str,
    arguments: &'static str,
    kernel: Kernel,
    /// What comes before the rate in its output.
    label: &'static str,
    /// Bytes counted as STREAM does, for each unit of the rate printed.
    unit_bytes: f64,
}

const fn likwid(arguments: &'static str, kernel: Kernel) -> Peer {
    Peer {
        program: "likwid-bench",
        arguments,
        kernel,
        label: "MByte/s:",
        unit_bytes: 1e6,
    }
}

const MEBIBYTE: f64 = 1_048_576.0;

/// The fastest of likwid's variants on a machine with AVX-512 and on one without; `sysbench`
/// and `mbw` as they come. `mbw` counts a copied byte once.
const PEERS: [Peer; 16] = [
    likwid("-t load_avx512 -w S0:256MB:1 -i 40", Kernel::Read),
    likwid("-t load_avx -w S0:256MB:1 -i 40", Kernel::Read),
    likwid("-t store_avx512 -w S0:256MB:1 -i 40", Kernel::Write),
    likwid("-t store_avx -w S0:256MB:1 -i 40", Kernel::Write),
    likwid("-t store_mem_avx512 -w S0:256MB:1 -i 40", Kernel::NtWrite),
    likwid("-t store_mem_avx -w S0:256MB:1 -i 40", Kernel::NtWrite),
    likwid("-t copy_avx512 -w S0:256MB:1 -i 40", Kernel::Copy),
    likwid("-t copy_avx -w S0:256MB:1 -i 40", Kernel::Copy),
    likwid("-t copy_mem_avx512 -w S0:256MB:1 -i 40", Kernel::NtCopy),
    likwid("-t copy_mem_avx -w S0:256MB:1 -i 40", Kernel::NtCopy),
    likwid("-t stream_avx512 -w S0:384MB:1 -i 40", Kernel::Triad),
    likwid("-t stream_avx -w S0:384MB:1 -i 40", Kernel::Triad),
    Peer {
        program: "sysbench",
        arguments: "memory --memory-block-size=128M --memory-total-size=8G \
                    --memory-oper=read --threads=1 run",
        kernel: Kernel::Read,
        label: "transferred (",
        unit_bytes: MEBIBYTE,
    },
    Peer {
        program: "sysbench",
        arguments: "memory --memory-block-size=128M --memory-total-size=8G \
                    --memory-oper=write --threads=1 run",
        kernel: Kernel::Write,
        label: "transferred (",
        unit_bytes: MEBIBYTE,
    },
    Peer {
        program: "mbw",
        arguments: "-q -t1 -n 20 128",
        kernel: Kernel::Copy,
        label: "AVG Method: DUMB Copy:",
        unit_bytes: 2.0 * MEBIBYTE,
    },
    Peer {
        program: "mbw",
        arguments: "-q -t0 -n 20 128",
        kernel: Kernel::NtCopy,
        label: "AVG Method: MEMCPY Copy:",
        unit_bytes: 2.0 * MEBIBYTE,
    },
];

pub fn compare() {
    let clock = machine::clock();
    let memory = machine::memory(3 * streaming::ARRAY_BYTES, Pages::Small);
    println!(
        "## Bandwidth beside other programs, one thread, 4 KiB pages: GB/s as STREAM counts\n"
    );
    println!("| kernel | program | ours | theirs | ratio |");
    println!("|---|---|---|---|---|");
    for peer in &PEERS {
        if let Err(reason) = peer.run() {
            println!(
                "| {} | {} {} | not compared: {reason} | | |",
                peer.kernel,
                peer.program,
                peer.name()
            );
            continue;
        }
        let paired = Paired::take(
            PAIRS,
            || ours(peer.kernel, &clock, memory),
            || peer.run().unwrap_or(f64::NAN),
        );
        let (ours, theirs, ratio) = (paired.ours(2), paired.theirs(2), paired.ratio());
        println!(
            "| {} | {} {} | {ours} | {theirs} | {ratio} |",
            peer.kernel,
            peer.program,
            peer.name()
        );
    }
    println!();
}

/// About as long a run as theirs.
fn ours(kernel: Kernel, clock: &Clock, memory: &mut [Line]) -> f64 {
    let mut stream = streaming::stream(kernel, Access::Sequential, Isa::detect(), memory);
    streaming::rate(clock, || (0..40).map(|_| stream.pass()).sum())
}

impl Peer {
    /// Its variant: the argument that tells runs of one program apart.
    fn name(&self) -> &str {
        let mut words = self.arguments.split_whitespace();
        match self.program {
            "sysbench" => words.find(|word| word.contains("oper")).unwrap_or_default(),
            _ => words.nth(1).unwrap_or_default(),
        }
    }

    /// Runs it once and reads the rate, in GB/s.
    fn run(&self) -> Result<f64, String> {
        let output = Command::new(self.program)
            .args(self.arguments.split_whitespace())
            .output()
            .map_err(|error| format!("{} is missing ({error})", self.program))?;
        let text = String::from_utf8_lossy(&output.stdout);
        let line = text
            .lines()
            .rev()
            .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
        line.filter_map(|line| self.rate_in(&line))
            .next()
            .map(|rate| rate * self.unit_bytes / 1e9)
            .ok_or_else(|| format!("no {:?} in its output", self.label))
    }

    /// The number after the label, whose words may stand apart.
    fn rate_in(&self, line: &str) -> Option<f64> {
        let (start, end) = self.label.rsplit_once(' ').unwrap_or(("", self.label));
        let rest = line
            .strip_prefix(start)
            .or_else(|| line.find(start).map(|at| &line[at..]))?;
        let number = &rest[rest.find(end)? + end.len()..];
        number
            .trim_start()
            .split(|c: char| c != '.' && !c.is_ascii_digit())
            .next()?
            .parse()
            .ok()
    }
}
