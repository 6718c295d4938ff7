//! The times of system calls.

use numalab_memory_model::machine::SystemCall;
use numalab_memory_model::space::PAGE_BYTES;

use super::{Call, World};

impl World {
    /// Lets the seat's thread take the time of a call that returned this value. If the call copied the
    /// process (`copies`), both it and the child take its time.
    pub(super) fn takes_call(&mut self, seat: usize, call: Option<Call>, value: i64, copies: bool) {
        let fork = copies.then(|| SystemCall::Fork(self.pages_for_child()));
        if let Some(kind) = fork.or_else(|| kind(call, value)) {
            self.in_kernel(seat, |active, shadow| active.calls(kind, shadow));
        }
    }
}

/// Returns the kind of a call; `None` for calls that a program makes without the kernel (vdso(7),
/// which QEMU lacks), and for the preloaded library's call.
fn kind(call: Option<Call>, value: i64) -> Option<SystemCall> {
    match call {
        Some(Call::ClockTime | Call::TimeOfDay | Call::GetCpu | Call::Asks) => None,
        Some(Call::Yield) => Some(SystemCall::Yield),
        Some(Call::Map | Call::Unmap | Call::Protect) => Some(SystemCall::Map),
        Some(Call::Open) if value >= 0 => Some(SystemCall::Open),
        Some(Call::Transfer) => {
            let bytes = u64::try_from(value).unwrap_or(0);
            Some(SystemCall::Move(bytes.div_ceil(PAGE_BYTES)))
        }
        _ => Some(SystemCall::Other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_takes_the_time_of_its_kind_and_of_the_bytes_that_it_moved() {
        assert_eq!(kind(Some(Call::ClockTime), 0), None);
        assert_eq!(kind(Some(Call::Futex), 0), Some(SystemCall::Other));
        assert_eq!(kind(None, 0), Some(SystemCall::Other), "one that is not followed");
        assert_eq!(kind(Some(Call::Yield), 0), Some(SystemCall::Yield));
        assert_eq!(kind(Some(Call::Protect), 0), Some(SystemCall::Map));
        let opened = [3, -2].map(|value| kind(Some(Call::Open), value));
        assert_eq!(
            opened,
            [SystemCall::Open, SystemCall::Other].map(Some),
            "there is no such file"
        );
        let moved = [-1, 0, 1, 4096, 4097].map(|bytes| kind(Some(Call::Transfer), bytes));
        assert_eq!(moved, [0, 0, 1, 1, 2].map(|pages| Some(SystemCall::Move(pages))));
    }
}
