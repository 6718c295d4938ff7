//! Bandwidth: kernels that go through memory as fast as the instruction set allows.
#![expect(missing_docs, reason = "fields of errors that their names explain")]

mod access;
mod kernel;
#[macro_use]
mod loops;
#[cfg_attr(target_arch = "x86_64", path = "stream/x86_64.rs")]
#[cfg_attr(target_arch = "aarch64", path = "stream/aarch64.rs")]
mod arch;
mod trial;

pub use access::Access;
pub use kernel::Kernel;

use crate::isa::Isa;
use crate::line::Line;
use access::Scatter;
use core::marker::PhantomData;
use loops::Loops;

/// Minimum number of lines of a memory with a gap between its arrays: smaller memories fit into
/// caches.
const LARGE_LINES: usize = (4 << 20) / Line::SIZE_BYTES;
/// Lines between the arrays of a large memory. Arrays of powers of two have the lines that a kernel
/// accesses together at equal offsets in their huge pages, and thus in different rows of one bank of
/// memory: on a Zen 4 a copy moved 20.6 GB/s, with this gap 27.0 (a triad of 128 MiB each: 17.3 and 24).
const GAP_LINES: usize = (9 << 10) / Line::SIZE_BYTES;

/// The arrays of a kernel. Each may be separate memory of the caller, so that a copy can go from
/// one node to another.
#[derive(Debug)]
pub enum Arrays<'a> {
    /// For kernels that only read or only write.
    One(&'a mut [Line]),
    /// For copies.
    Two {
        /// The array written.
        to: &'a mut [Line],
        /// The array read.
        from: &'a mut [Line],
    },
    /// For the triad.
    Three {
        /// The array written.
        to: &'a mut [Line],
        /// The array read and added.
        left: &'a mut [Line],
        /// The array read and multiplied.
        right: &'a mut [Line],
    },
}

impl<'a> Arrays<'a> {
    /// Divides one memory into equal arrays for `kernel`. One or two lines may be left over, and
    /// gaps between the arrays of a large memory.
    ///
    /// # Errors
    /// [`StreamError::Empty`] if there is not one line for each array.
    pub fn split(kernel: Kernel, lines: &'a mut [Line]) -> Result<Arrays<'a>, StreamError> {
        let gap = if lines.len() >= LARGE_LINES { GAP_LINES } else { 0 };
        let length = (lines.len() - gap * (kernel.arrays() - 1)) / kernel.arrays();
        if length == 0 {
            return Err(StreamError::Empty { kernel });
        }
        let (first, rest) = lines.split_at_mut(length);
        Ok(match kernel.arrays() {
            1 => Arrays::One(first),
            2 => Arrays::Two { to: first, from: &mut rest[gap..][..length] },
            _ => {
                let (left, rest) = rest[gap..].split_at_mut(length);
                Arrays::Three { to: first, left, right: &mut rest[gap..][..length] }
            }
        })
    }

    fn slices(self) -> (usize, [Option<&'a mut [Line]>; 3]) {
        match self {
            Arrays::One(only) => (1, [Some(only), None, None]),
            Arrays::Two { to, from } => (2, [Some(to), Some(from), None]),
            Arrays::Three { to, left, right } => (3, [Some(to), Some(left), Some(right)]),
        }
    }
}

/// A kernel working on its arrays, line by line.
#[derive(Debug)]
pub struct Stream<'a> {
    kernel: Kernel,
    isa: Isa,
    loops: Loops,
    pointers: Pointers,
    lines: usize,
    /// The next line to be accessed, counted in the order of the pass.
    position: usize,
    scatter: Option<Scatter>,
    arrays: PhantomData<&'a mut [Line]>,
}

// SAFETY: the pointers are exclusive borrows, which may be sent like `&mut [Line]`.
unsafe impl Send for Stream<'_> {}

impl<'a> Stream<'a> {
    /// Creates a stream at the start of a pass.
    ///
    /// # Errors
    /// [`StreamError::UnavailableIsa`] if the machine lacks `isa`; [`StreamError::WrongArrays`]
    /// unless `arrays` have the number that the kernel needs and equal lengths;
    /// [`StreamError::Empty`] if they have no lines; [`StreamError::BadStride`] unless a stride is
    /// a multiple of 64.
    pub fn new(
        kernel: Kernel,
        access: Access,
        isa: Isa,
        arrays: Arrays<'a>,
    ) -> Result<Stream<'a>, StreamError> {
        let loops = arch::loops(kernel, isa).ok_or(StreamError::UnavailableIsa { isa })?;
        let (given, [to, left, right]) = arrays.slices();
        let Some(to) = to.filter(|to| !to.is_empty()) else {
            return Err(StreamError::Empty { kernel });
        };
        let lines = to.len();
        let to = to.as_mut_ptr();
        let other = |array: Option<&'a mut [Line]>| match array {
            Some(array) if array.len() == lines => Ok(array.as_ptr()),
            // Never accessed by a kernel with fewer arrays, which is checked below.
            None => Ok(to.cast_const()),
            Some(_) => Err(StreamError::WrongArrays { kernel, given }),
        };
        let pointers = Pointers { to, left: other(left)?, right: other(right)? };
        if given != kernel.arrays() {
            return Err(StreamError::WrongArrays { kernel, given });
        }
        let scatter = Scatter::new(access, lines as u64)?;
        Ok(Stream {
            kernel,
            isa,
            loops,
            pointers,
            lines,
            position: 0,
            scatter,
            arrays: PhantomData,
        })
    }

    /// Returns the kernel.
    pub fn kernel(&self) -> Kernel {
        self.kernel
    }

    /// Returns the instruction set.
    pub fn isa(&self) -> Isa {
        self.isa
    }

    /// Continues in another instruction set.
    ///
    /// # Errors
    /// [`StreamError::UnavailableIsa`] if the machine lacks it.
    pub fn set_isa(&mut self, isa: Isa) -> Result<(), StreamError> {
        self.loops = arch::loops(self.kernel, isa).ok_or(StreamError::UnavailableIsa { isa })?;
        self.isa = isa;
        Ok(())
    }

    /// Returns the size of one of its arrays.
    pub fn array_bytes(&self) -> usize {
        self.lines * Line::SIZE_BYTES
    }

    /// Accesses every line of each array once. Returns the bytes counted, as
    /// [`Kernel::counted_bytes`] does.
    pub fn pass(&mut self) -> u64 {
        self.advance(self.lines)
    }

    /// Accesses the next `lines` lines of the pass, and begins another pass when it ends. Returns
    /// the bytes counted.
    pub fn advance(&mut self, lines: usize) -> u64 {
        let bytes = self.go_on(lines);
        self.finish();
        bytes
    }

    /// Advances like [`Self::advance`], but does not wait for stores that bypass the caches.
    pub(crate) fn go_on(&mut self, lines: usize) -> u64 {
        let mut left = lines;
        while left > 0 {
            let count = left.min(self.lines - self.position);
            self.run(count);
            self.position += count;
            if self.position == self.lines {
                self.position = 0;
            }
            left -= count;
        }
        self.kernel.counted_bytes((lines * Line::SIZE_BYTES) as u64)
    }

    /// Waits until stores that bypass the caches have been issued to memory.
    pub(crate) fn finish(&self) {
        arch::finish(self.kernel);
    }

    /// Accesses `count` lines, which must not go beyond the end of the pass.
    fn run(&self, count: usize) {
        let Some(scatter) = &self.scatter else {
            // SAFETY: `position + count` is at most `lines`, the length of every array.
            let arrays = unsafe { self.pointers.at(self.position) };
            // SAFETY: from `position` on every array has `count` lines more, and `new` has checked
            // that the kernel has the arrays that it goes through, the first one for writing.
            unsafe { self.loops.sequential(arrays, count) };
            return;
        };
        let mut offsets = [0; OFFSETS];
        let mut done = 0;
        while done < count {
            let wanted = OFFSETS.min(count - done);
            scatter.offsets((self.position + done) as u64, &mut offsets[..wanted]);
            // SAFETY: the offsets are those of lines below `lines`, the length of every array.
            unsafe { self.loops.scattered(self.pointers, &offsets[..wanted]) };
            done += wanted;
        }
    }
}

/// The number of offsets computed ahead: large enough that computing them leaves few gaps in the
/// accesses, small enough that they stay in the first cache.
const OFFSETS: usize = 512;

/// The first lines of a kernel's arrays. Unused ones point to the first array.
#[derive(Clone, Copy, Debug)]
struct Pointers {
    to: *mut Line,
    left: *const Line,
    right: *const Line,
}

impl Pointers {
    /// Returns the arrays from line `index` on.
    ///
    /// # Safety
    /// `index` must be at most the length of the arrays.
    unsafe fn at(self, index: usize) -> Pointers {
        // SAFETY: all arrays have the same length, and `index` is within it or at its end.
        unsafe {
            Pointers {
                to: self.to.add(index),
                left: self.left.add(index),
                right: self.right.add(index),
            }
        }
    }
}

/// Reasons why a stream cannot be created.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StreamError {
    /// The cpu or the operating system lacks the instruction set.
    #[error("{isa} is not available on this machine")]
    UnavailableIsa { isa: Isa },
    /// The arrays do not suit the kernel.
    #[error("{given} arrays for {kernel}; expected {} of equal length", kernel.arrays())]
    WrongArrays { kernel: Kernel, given: usize },
    /// There is no line to work on.
    #[error("no memory for {kernel}; expected at least one line for each of its arrays")]
    Empty { kernel: Kernel },
    /// The stride is not a multiple of the line.
    #[error("a stride of {stride_bytes} bytes; expected a multiple of 64")]
    BadStride { stride_bytes: usize },
}
