//! The virtual PMU: counts and virtual time in memory that the guest can read.
//!
//! The memory is a file that QEMU maps shared; the plugin writes to it through the page cache.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use numalab_marks::pmu::{HEADER, PMU_BYTES, PMU_NODES, PmuCounts, PmuHeader, PmuMode, STRIDE};
use numalab_memory_model::arguments::{Mode, PmuPlace};
use numalab_memory_model::engine::Engine;
use numalab_memory_model::machine::{MOST_NODES, MOST_VCPUS};

const _: () = assert!(PMU_NODES == MOST_NODES && HEADER + MOST_VCPUS * STRIDE <= PMU_BYTES);

#[derive(Debug)]
pub struct Pmu {
    file: File,
    offset: u64,
}

impl Pmu {
    /// Opens the file.
    ///
    /// # Errors
    /// The system's error, or one for a file too short for `vcpus`.
    pub fn open(place: &PmuPlace, vcpus: usize) -> io::Result<Self> {
        let file = File::options().read(true).write(true).open(&place.file)?;
        let needed = place.offset + (HEADER + vcpus * STRIDE) as u64;
        let length = file.metadata()?.len();
        if length < needed {
            let short = format!("{length} bytes long, expected at least {needed}");
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, short));
        }
        Ok(Self { file, offset: place.offset })
    }

    /// Writes the header.
    ///
    /// # Errors
    /// The system's error.
    pub fn describe(&self, engine: &Engine) -> io::Result<()> {
        self.file.write_all_at(&header(engine).to_bytes(), self.offset)
    }

    /// Writes a vCPU's block; its sequence number is odd during the write.
    ///
    /// # Errors
    /// The system's error.
    pub fn publish(&self, engine: &Engine, vcpu: usize) -> io::Result<()> {
        let at = self.offset + (HEADER + vcpu * STRIDE) as u64;
        let mut sequence = [0; 8];
        self.file.read_exact_at(&mut sequence, at)?;
        // Even, even if an earlier write failed and left an odd number.
        let next = (u64::from_le_bytes(sequence) | 1).wrapping_add(1);
        // In this order: a reader that finds the same even number before and after has a whole
        // block.
        self.file.write_all_at(&(next - 1).to_le_bytes(), at)?;
        self.file.write_all_at(&counts(engine, vcpu).to_bytes(), at + 8)?;
        self.file.write_all_at(&next.to_le_bytes(), at)
    }
}

fn header(engine: &Engine) -> PmuHeader {
    let machine = &engine.arguments.machine;
    let small = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    PmuHeader {
        vcpus: small(machine.cpus.len()),
        nodes: small(machine.nodes.len()),
        mode: match engine.arguments.mode {
            Mode::Count => PmuMode::Count,
            Mode::Virtual => PmuMode::Virtual,
            Mode::Sleep => PmuMode::Sleep,
        },
        is_on: engine.gate.is_open(),
    }
}

fn counts(engine: &Engine, vcpu: usize) -> PmuCounts {
    let home = engine.arguments.machine.cpus[vcpu];
    let small = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    let mut counts = PmuCounts {
        time_ns: engine.time_ps(vcpu) / 1000,
        node: small(home),
        phase: small(engine.gate.phase()),
        host_page_bytes: engine.host_page_bytes().unwrap_or(0),
        longest_walk: engine.longest_walk(vcpu),
        ..PmuCounts::default()
    };
    let (mut cost_ps, mut translation_ps) = (0, 0);
    for figures in engine.counters.phases().map(|(_, vcpus)| &vcpus[vcpu]) {
        counts.instructions += figures.instructions.get();
        cost_ps += figures.cost_ps.get();
        translation_ps += figures.translation_ps.get();
        counts.walks += figures.walks.get();
        counts.references += figures.references.get();
        for (target, node) in figures.nodes.iter().enumerate() {
            let remote = usize::from(target != home);
            counts.loads[remote] += node.accesses[0].get();
            counts.stores[remote] += node.accesses[1].get();
            counts.misses[target] += node.misses[0].get() + node.misses[1].get();
        }
    }
    (counts.cost_ns, counts.translation_ns) = (cost_ps / 1000, translation_ps / 1000);
    counts
}
