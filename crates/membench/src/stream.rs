//! Bandwidth: kernels which go through memory as fast as the instruction set allows.

mod access;
mod kernel;
#[macro_use]
mod loops;
#[cfg_attr(target_arch = "x86_64", path = "stream/x86_64.rs")]
#[cfg_attr(target_arch = "aarch64", path = "stream/aarch64.rs")]
mod arch;

pub use access::Access;
pub use kernel::Kernel;

use crate::isa::Isa;
use crate::line::Line;
use access::Scatter;
use core::marker::PhantomData;
use loops::Loops;

/// The arrays which a kernel works on. Each may be the caller's own memory, so that a copy
/// can go from one node to another.
#[derive(Debug)]
pub enum Arrays<'a> {
    /// For kernels that only read or only write.
    One(&'a mut [Line]),
    /// For copies.
    Two {
        /// What is written.
        to: &'a mut [Line],
        /// What is read.
        from: &'a mut [Line],
    },
    /// For the triad.
    Three {
        /// What is written.
        to: &'a mut [Line],
        /// What is read and added.
        left: &'a mut [Line],
        /// What is read and multiplied.
        right: &'a mut [Line],
    },
}

impl<'a> Arrays<'a> {
    /// Divides one memory into as many equal arrays as `kernel` needs. One or two lines may
    /// be left over.
    ///
    /// # Errors
    /// [`StreamError::Empty`] if there is not one line for each array.
    pub fn split(kernel: Kernel, lines: &'a mut [Line]) -> Result<Arrays<'a>, StreamError> {
        let length = lines.len() / kernel.arrays();
        if length == 0 {
            return Err(StreamError::Empty { kernel });
        }
        let (first, rest) = lines.split_at_mut(length);
        Ok(match kernel.arrays() {
            1 => Arrays::One(first),
            2 => Arrays::Two { to: first, from: &mut rest[..length] },
            _ => {
                let (left, rest) = rest.split_at_mut(length);
                Arrays::Three { to: first, left, right: &mut rest[..length] }
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

/// A kernel at work on its arrays, line by line.
#[derive(Debug)]
pub struct Stream<'a> {
    kernel: Kernel,
    loops: Loops,
    pointers: Pointers,
    lines: usize,
    /// The next line to be accessed, counted in the order of the pass.
    position: usize,
    scatter: Option<Scatter>,
    arrays: PhantomData<&'a mut [Line]>,
}

// SAFETY: the pointers are exclusive borrows, which may be sent as `&mut [Line]` may.
unsafe impl Send for Stream<'_> {}

impl<'a> Stream<'a> {
    /// A stream at the start of a pass.
    ///
    /// # Errors
    /// [`StreamError::UnavailableIsa`] if the machine lacks `isa`;
    /// [`StreamError::WrongArrays`] unless `arrays` are as many as the kernel needs and
    /// equally long; [`StreamError::Empty`] if they have no lines;
    /// [`StreamError::BadStride`] unless a stride is a multiple of 64.
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
            // Never accessed by a kernel of fewer arrays, which is checked below.
            None => Ok(to.cast_const()),
            Some(_) => Err(StreamError::WrongArrays { kernel, given }),
        };
        let pointers = Pointers { to, left: other(left)?, right: other(right)? };
        if given != kernel.arrays() {
            return Err(StreamError::WrongArrays { kernel, given });
        }
        let scatter = Scatter::new(access, lines as u64)?;
        Ok(Stream { kernel, loops, pointers, lines, position: 0, scatter, arrays: PhantomData })
    }

    /// The kernel at work.
    #[must_use]
    pub fn kernel(&self) -> Kernel {
        self.kernel
    }

    /// The size of one of its arrays.
    #[must_use]
    pub fn array_bytes(&self) -> usize {
        self.lines * Line::SIZE_BYTES
    }

    /// Accesses as many lines as each array has: every one of them once. Returns the bytes
    /// counted, as [`Kernel::counted_bytes`] does.
    pub fn pass(&mut self) -> u64 {
        self.advance(self.lines)
    }

    /// Accesses the next `lines` lines of the pass, beginning it again when it ends. Returns
    /// the bytes counted.
    pub fn advance(&mut self, lines: usize) -> u64 {
        let bytes = self.go_on(lines);
        self.finish();
        bytes
    }

    /// The same without waiting for stores past the caches.
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

    /// Waits until stores past the caches are on their way.
    pub(crate) fn finish(&self) {
        arch::finish(self.kernel);
    }

    /// Accesses `count` lines, which must not go beyond the end of the pass.
    fn run(&self, count: usize) {
        let Some(scatter) = &self.scatter else {
            // SAFETY: `position + count` is at most `lines`, the length of every array.
            let arrays = unsafe { self.pointers.at(self.position) };
            // SAFETY: from `position` on every array has `count` lines more, and `new` has seen that the
            // kernel has the arrays that it goes through, the first one for writing.
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

/// How many lines' offsets are computed ahead: so many that computing them in between leaves
/// few gaps in the accesses, so few that they stay in the first cache.
const OFFSETS: usize = 512;

/// The first lines of a kernel's arrays. Those it has no use for point to the first array.
#[derive(Clone, Copy, Debug)]
struct Pointers {
    to: *mut Line,
    left: *const Line,
    right: *const Line,
}

impl Pointers {
    /// The arrays from line `index` on.
    ///
    /// # Safety
    /// `index` must be at most the length of the arrays.
    unsafe fn at(self, index: usize) -> Pointers {
        // SAFETY: all arrays have the same length, within or at the end of which `index` lies.
        unsafe {
            Pointers {
                to: self.to.add(index),
                left: self.left.add(index),
                right: self.right.add(index),
            }
        }
    }
}

/// A stream that cannot be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StreamError {
    /// The cpu or the operating system lacks the instruction set.
    #[error("{isa} is not available on this machine")]
    UnavailableIsa {
        /// The instruction set asked for.
        isa: Isa,
    },
    /// The arrays do not suit the kernel.
    #[error("{given} arrays for {kernel}; expected {} of equal length", kernel.arrays())]
    WrongArrays {
        /// The kernel asked for.
        kernel: Kernel,
        /// How many arrays were given.
        given: usize,
    },
    /// There is no line to work on.
    #[error("no memory for {kernel}; expected at least one line for each of its arrays")]
    Empty {
        /// The kernel asked for.
        kernel: Kernel,
    },
    /// The stride is no multiple of the line.
    #[error("a stride of {stride_bytes} bytes; expected a multiple of 64")]
    BadStride {
        /// The stride asked for.
        stride_bytes: usize,
    },
}
