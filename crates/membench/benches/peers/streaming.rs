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
    let used = ARRAY_BYTES / Line::SIZE_BYTES * kernel.arrays();
    let arrays = Arrays::split(kernel, &mut memory[..used]).expect("enough memory");
    Stream::new(kernel, access, isa, arrays).expect("an available set")
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
    first: *mut f64,
}

impl<'r> CLoop<'r> {
    fn new(reference: &'r Reference, kernel: Kernel, memory: &mut [Line]) -> CLoop<'r> {
        CLoop { reference, kernel, first: memory.as_mut_ptr().cast() }
    }

    fn pass(&self) -> u64 {
        let doubles = ARRAY_BYTES / 8;
        let (a, b) = (self.first, self.first.wrapping_add(doubles));
        let c = b.wrapping_add(doubles);
        // SAFETY: the memory contains three arrays of that number of doubles; our loops, which also
        // use it, do not run meanwhile.
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
        self.kernel.counted_bytes(ARRAY_BYTES as u64)
    }
}
