//! Display of a dump as text: a character for each block of 2 MiB, 64 to a line.

use core::fmt::{self, Display, Formatter, Write};

use super::read::{BlockState, Dump, DumpBlock, DumpPool};
use crate::ids::{FRAME_BYTES, Frame};

const LINE: usize = 64;

impl Display for Dump<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let (nodes, cpus) = (self.nodes(), self.cpus().count());
        writeln!(f, "heap: {nodes} nodes, {cpus} cpus; a character is 2 MiB")?;
        writeln!(
            f,
            ". free  1-9 tenths taken  # taken  r reserved by a cpu  c in a cpu's cache  - offline"
        )?;
        let mut blocks = self.blocks().peekable();
        for (region, pool) in self.pools().enumerate() {
            let mine = self.blocks().filter(|block| block.region == region);
            write_heading(f, &pool, mine)?;
            let mut column = 0;
            while let Some(block) = blocks.next_if(|block| block.region == region) {
                if column == 0 {
                    write!(f, "  {:>#14x} ", block.first.addr())?;
                }
                f.write_char(letter(&block))?;
                column = (column + 1) % LINE;
                if column == 0 {
                    writeln!(f)?;
                }
            }
            if column != 0 {
                writeln!(f)?;
            }
        }
        self.write_caches(f)
    }
}

impl Dump<'_> {
    fn write_caches(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let caches = self.cpus().zip(self.magazines()).zip(self.whole_blocks()).enumerate();
        for (cpu, ((node, (base, mask)), whole)) in caches {
            if mask == 0 && whole.is_none() {
                continue;
            }
            write!(f, "cpu {cpu} on node {} caches", node.0)?;
            if mask != 0 {
                write!(f, " {} frames of row {}", mask.count_ones(), Address(base))?;
            }
            if let Some(whole) = whole {
                write!(f, " block {}", Address(whole))?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}

fn write_heading(
    f: &mut Formatter<'_>,
    pool: &DumpPool,
    blocks: impl Iterator<Item = DumpBlock>,
) -> fmt::Result {
    let (free, whole) = blocks.fold((0, 0), |(free, whole), block| {
        let here = block.free_frames();
        (free + here, whole + u64::from(here == 512))
    });
    let frames = pool.end.number() - pool.start.number();
    writeln!(
        f,
        "node {} zone {}: {} - {}, {frames} frames, {free} free, {whole} blocks wholly free",
        pool.node.0,
        pool.zone.0,
        Address(pool.start),
        Address(pool.end),
    )
}

/// A frame's address, printed in hexadecimal.
struct Address(Frame);

impl Display for Address {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", u128::from(self.0.number()) * u128::from(FRAME_BYTES))
    }
}

fn letter(block: &DumpBlock) -> char {
    let taken = block.managed.saturating_sub(block.free_frames());
    match block.state {
        BlockState::Offline => '-',
        BlockState::Cached => 'c',
        BlockState::Reserved => 'r',
        BlockState::Shared if taken == 0 => '.',
        BlockState::Shared if block.free_frames() == 0 => '#',
        BlockState::Shared => {
            let tenth = (taken * 10 / block.managed).clamp(1, 9);
            char::from(b'0' + tenth.to_le_bytes()[0])
        }
    }
}
