//! The cpus of threads (sched_setaffinity(2)): those of the emulated machine, of which the host may
//! have fewer.

use std::cell::RefCell;
use std::sync::LazyLock;

use super::super::Program;
use super::super::guest_memory::{self, mask};
use super::super::turns::{Order, Patience, own_tid};

thread_local! {
    /// The address and the original bytes of the program's mask, while the host's mask is in its
    /// place.
    static LENT: RefCell<Option<(u64, Vec<u8>)>> = const { RefCell::new(None) };
}

/// The cpus of QEMU's process.
static HOST: LazyLock<Vec<usize>> = LazyLock::new(|| {
    // SAFETY: a set is a plain array of words, for which zero is valid.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel writes at most the given size to `set`.
    let got = unsafe { libc::sched_getaffinity(0, size_of_val(&set), &raw mut set) };
    // SAFETY: reads a bit of the set, and the numbers are below its size.
    let has = |cpu: &usize| got == 0 && unsafe { libc::CPU_ISSET(*cpu, &set) };
    (0..8 * size_of_val(&set)).filter(has).collect()
});

/// Puts the host's cpus in place of the program's mask while the kernel reads it: the kernel refuses a
/// mask of cpus that only the emulated machine has, and would bind QEMU's own thread. A mask without
/// any of the machine's cpus becomes empty, which the kernel refuses.
pub(super) fn lends_cpus(order: &Order, [_, bytes, address, ..]: &[u64; 6]) {
    let given = guest_memory::mask_bytes(*address, *bytes);
    let is_known = order.schedule.has_any(&guest_memory::bits_of(&given));
    guest_memory::write_mask(*address, given.len(), HOST.iter().copied().filter(|_| is_known));
    LENT.set(Some((*address, given)));
}

/// Puts the program's mask back.
pub(super) fn takes_cpus_back() {
    if let Some((address, given)) = LENT.take() {
        guest_memory::write(address, &given);
    }
}

impl Program {
    /// Overwrites the affinity mask that a thread got with the cpus of the emulated machine.
    pub(super) fn write_cpus(&self, seat: usize, address: u64, bytes: u64) {
        let order = self.turns.order();
        let bytes = usize::try_from(bytes).unwrap_or(0);
        guest_memory::write_mask(address, bytes, order.schedule.allowed(seat));
    }

    /// Restricts a thread of the process to these cpus. The seat's thread holds the turn.
    pub fn set_affinity(&'static self, seat: usize, arguments: [u64; 6]) {
        let [thread, bytes, address, ..] = arguments;
        let Some(world) = self.in_turn(seat) else { return };
        let now_ps = self.leaves(world, seat);
        let mut order = self.turns.order();
        let of = if is_own(thread) { Some(seat) } else { order.seat_of(thread) };
        if let Some(of) = of {
            order.schedule.allows(of, &mask(address, bytes.saturating_mul(8)), now_ps);
        }
        // Other threads may run before this one on its new cpu.
        self.turns.give(&mut order);
        drop(order);
        self.takes_turn(seat, Patience::Endless);
    }
}

/// Returns true if a thread id in a call's arguments means the calling thread.
pub fn is_own(thread: u64) -> bool {
    thread == 0 || i32::try_from(thread) == Ok(own_tid())
}
