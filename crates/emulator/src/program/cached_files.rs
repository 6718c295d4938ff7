//! Files that are read and written by calls: their pages are in the machine's memory and pass through the
//! caches like a program's own.

use numalab_memory_model::counters::Kind;
use numalab_memory_model::space::PAGE_BYTES;

use super::world::World;

/// The first number of a page of a file: at half of all addresses, beyond those of a program.
pub const FILES_AT: u64 = (1 << 63) / PAGE_BYTES;
/// The distance of files in these numbers.
const FILE_PAGES: u64 = 0x9e37_79b9;

/// A part of a file that a call moves.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    pub inode: u64,
    /// Its place in the file, and in the program's memory.
    pub at: u64,
    pub address: u64,
    pub bytes: u64,
    /// True if it is moved to the file.
    pub writes: bool,
}

impl World {
    /// Lets the lines that a call copied pass the caches: those of the file, and those of the program.
    /// The call takes longer by those from memory.
    pub fn moves_part(&mut self, seat: usize, part: Part) {
        let Part { inode, at, address, bytes, writes } = part;
        let caches = self.engine.arguments.machine.caches.iter().map(|cache| cache.size_bytes);
        // Twice the pages that the caches hold: what is read after them evicts any of a larger file.
        let pages = 2 * caches.max().unwrap_or(0) / PAGE_BYTES;
        if pages == 0 {
            return;
        }
        let first = self.files.number(inode).wrapping_mul(FILE_PAGES);
        let file = |at: u64| {
            let page = first.wrapping_add(at / PAGE_BYTES) % pages;
            (FILES_AT + page) * PAGE_BYTES + at % PAGE_BYTES
        };
        let [of_file, of_program] =
            if writes { [Kind::Store, Kind::Load] } else { [Kind::Load, Kind::Store] };
        let mut done = 0;
        while done < bytes {
            let (from, to) = (file(at + done), address + done);
            let left = [from, to].map(|at| PAGE_BYTES - at % PAGE_BYTES);
            let piece = left.into_iter().fold(bytes - done, u64::min);
            self.touch_lines(seat, from, piece, of_file);
            // Its first use by the kernel is a fault like any other one, later.
            if self.space.node_of(to / PAGE_BYTES).is_some() {
                self.touch_lines(seat, to, piece, of_program);
            }
            done += piece;
        }
    }

    /// Accesses lines of one page for the kernel.
    fn touch_lines(&mut self, seat: usize, address: u64, bytes: u64, kind: Kind) {
        let number = address / PAGE_BYTES;
        let home = self.threads[seat].home;
        let Some(page) = self.space.touch(number, home, None, false) else { return };
        let within = address % PAGE_BYTES;
        let lines = within..within + bytes;
        self.in_kernel(seat, |active, shadow| {
            active.copies_lines(page, number, lines, kind, shadow);
        });
    }
}
