//! The bandwidth kernels compared with the same loops in C.

use crate::machine::{self, Memory, Pages};
use crate::reference::Reference;
use crate::sample::Paired;
use numalab_membench::{Access, Arrays, Clock, Isa, Kernel, Line, Stamp, Stream};

/// Small enough that a pair is over before the machine changes, and larger than every cache.
pub const ARRAY_BYTES: usize = 128 << 20;
const PAIRS: usize = 160;

pub fn compare(reference: &Reference) {
    let clock = machine::clock();
    let mut memory = Memory::new(3 * ARRAY_BYTES, Pages::Huge);
    let memory = memory.lines();
    println!(
        "## Bandwidth, one thread: GB/s as STREAM counts, arrays of {} MiB\n",
        ARRAY_BYTES >> 20
    );
    println!("| kernel | set | ours | C -O3 -march=native | ratio |");
    println!("|---|---|---|---|---|");
    for isa in Isa::ALL.into_iter().filter(|isa| isa.is_available()) {
        for kernel in Kernel::ALL {
            let theirs = CLoop::new(reference, kernel, memory);
            let mut ours = stream(kernel, Access::Sequential, isa, memory);
            let paired = Paired::take(
                PAIRS,
                || rate(&clock, || ours.pass()),
                || rate(&clock, || theirs.pass()),
            );
            println!(
                "| {kernel} | {isa} | {} | {} | {} |",
                paired.ours(2),
                paired.theirs(2),
                paired.ratio()
            );
        }
    }
    println!("\n| kernel | access | GB/s | sequential | ratio |");
    println!("|---|---|---|---|---|");
    for access in [Access::Strided { stride_bytes: 4096 + 64 }, Access::Random { seed: 1 }] {
        for kernel in Kernel::ALL {
            let memory = std::cell::RefCell::new(&mut *memory);
            let pass = |access| {
                let mut memory = memory.borrow_mut();
                let mut stream = stream(kernel, access, Isa::detect(), &mut memory);
                rate(&clock, || stream.pass())
            };
            let paired = Paired::take(8, || pass(access), || pass(Access::Sequential));
            let (ours, sequential, ratio) = (paired.ours(2), paired.theirs(2), paired.ratio());
            println!("| {kernel} | {access} | {ours} | {sequential} | {ratio} |");
        }
    }
    println!();
}

pub fn stream(kernel: Kernel, access: Access, isa: Isa, memory: &mut [Line]) -> Stream<'_> {
    Stream::new(kernel, access, isa, split(kernel, memory)).expect("an available set")
}

fn split(kernel: Kernel, memory: &mut [Line]) -> Arrays<'_> {
    let used = ARRAY_BYTES / Line::SIZE_BYTES * kernel.arrays();
    Arrays::split(kernel, &mut memory[..used]).expect("enough memory")
}

/// Returns counted bytes per ns, which is GB/s.
pub fn rate(clock: &Clock, pass: impl FnOnce() -> u64) -> f64 {
    let start = Stamp::now();
    let counted = pass();
    counted as f64 / clock.ns(Stamp::now().since(start).expect("a steady clock"))
}

/// A loop of the reference on the arrays that ours works on.
struct CLoop<'r> {
    reference: &'r Reference,
    kernel: Kernel,
    arrays: [*mut f64; 3],
    doubles: usize,
}

impl<'r> CLoop<'r> {
    fn new(reference: &'r Reference, kernel: Kernel, memory: &mut [Line]) -> CLoop<'r> {
        let [first, second, third] = match split(kernel, memory) {
            Arrays::One(only) => [Some(only), None, None],
            Arrays::Two { to, from } => [Some(to), Some(from), None],
            Arrays::Three { to, left, right } => [Some(to), Some(left), Some(right)],
        };
        let doubles = first.as_ref().map_or(0, |lines| lines.len() * Line::SIZE_BYTES / 8);
        let pointer = |lines: Option<&mut [Line]>| {
            lines.map_or(std::ptr::null_mut(), |lines| lines.as_mut_ptr().cast())
        };
        CLoop { reference, kernel, arrays: [first, second, third].map(pointer), doubles }
    }

    fn pass(&self) -> u64 {
        let Self { arrays: [a, b, c], doubles, .. } = *self;
        // SAFETY: the kernel's arrays have that number of doubles each; our loops, which also use
        // them, do not run meanwhile.
        unsafe {
            match self.kernel {
                Kernel::Read => {
                    std::hint::black_box((self.reference.read)(a, doubles));
                }
                Kernel::Write => (self.reference.write)(a, doubles),
                Kernel::NtWrite => (self.reference.nt_write)(a, doubles),
                Kernel::Copy => (self.reference.copy)(a, b, doubles),
                Kernel::NtCopy => (self.reference.nt_copy)(a, b, doubles),
                Kernel::Triad => (self.reference.triad)(a, b, c, doubles),
            }
        }
        self.kernel.counted_bytes(doubles as u64 * 8)
    }
}
