//! The virtual PMU: counts and virtual time in memory that a guest's program can read.
//!
//! The memory is a file that QEMU maps shared, written here through the page cache.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use numalab_memory_model::arguments::{Mode, PmuPlace};
use numalab_memory_model::engine::Engine;

/// First bytes of the page.
pub const MAGIC: [u8; 8] = *b"NUMAPMU1";
/// Version of the layout.
pub const VERSION: u32 = 1;
/// Bytes of the header.
pub const HEADER: usize = 64;
/// Bytes of a vCPU's block.
pub const STRIDE: usize = 256;
/// Place of the counts by node in a block.
const BY_NODE: usize = 128;

/// The page.
#[derive(Debug)]
pub struct Pmu {
    file: File,
    offset: u64,
}

impl Pmu {
    /// Opens the page's file.
    ///
    /// # Errors
    /// What the system says; also if the file is too short for so many vCPUs.
    pub fn open(place: &PmuPlace, vcpus: usize) -> io::Result<Self> {
        let file = File::options().read(true).write(true).open(&place.file)?;
        let needed = place.offset + (HEADER + vcpus * STRIDE) as u64;
        let length = file.metadata()?.len();
        if length < needed {
            let short = format!("is {length} bytes long, {needed} are needed");
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, short));
        }
        Ok(Self { file, offset: place.offset })
    }

    /// Writes the header.
    ///
    /// # Errors
    /// What the system says.
    pub fn describe(&self, engine: &Engine) -> io::Result<()> {
        self.file.write_all_at(&header(engine), self.offset)
    }

    /// Writes a vCPU's block, its sequence number odd in between.
    ///
    /// # Errors
    /// What the system says.
    pub fn publish(&self, engine: &Engine, vcpu: usize) -> io::Result<()> {
        let at = self.offset + (HEADER + vcpu * STRIDE) as u64;
        let mut sequence = [0; 8];
        self.file.read_exact_at(&mut sequence, at)?;
        let next = (u64::from_le_bytes(sequence) | 1).wrapping_add(1);
        self.file.write_all_at(&(next - 1).to_le_bytes(), at)?;
        self.file.write_all_at(&block(engine, vcpu)[8..], at + 8)?;
        self.file.write_all_at(&next.to_le_bytes(), at)
    }
}

fn header(engine: &Engine) -> [u8; HEADER] {
    let machine = &engine.arguments.machine;
    let mode = match engine.arguments.mode {
        Mode::Count => 0,
        Mode::Virtual => 1,
        Mode::Sleep => 2,
    };
    let small = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    let words = [
        VERSION,
        small(machine.cpus.len()),
        small(machine.nodes.len()),
        small(STRIDE),
        mode,
        u32::from(engine.gate.is_open()),
    ];
    let mut header = [0; HEADER];
    header[..8].copy_from_slice(&MAGIC);
    for (place, word) in header[8..].chunks_exact_mut(4).zip(words) {
        place.copy_from_slice(&word.to_le_bytes());
    }
    header
}

/// A vCPU's block; the sequence number at its head is left 0.
fn block(engine: &Engine, vcpu: usize) -> [u8; STRIDE] {
    let home = engine.arguments.machine.cpus[vcpu];
    let mut words = [0_u64; STRIDE / 8];
    let all = engine.counters.phases().map(|(_, vcpus)| &vcpus[vcpu]);
    for figures in all {
        words[2] += figures.instructions.get();
        words[3] += figures.cost_ps.get();
        for (target, node) in figures.nodes.iter().enumerate() {
            let remote = usize::from(target != home);
            words[4 + remote] += node.accesses[0].get();
            words[6 + remote] += node.accesses[1].get();
            words[8 + remote] += node.misses[0].get() + node.misses[1].get();
            words[BY_NODE / 8 + target] += node.all();
        }
    }
    words[1] = engine.time_ps(vcpu) / 1000;
    words[3] /= 1000;
    words[10] = home as u64 | (engine.gate.phase() as u64) << 32;
    let mut block = [0; STRIDE];
    for (place, word) in block.chunks_exact_mut(8).zip(words) {
        place.copy_from_slice(&word.to_le_bytes());
    }
    block
}
