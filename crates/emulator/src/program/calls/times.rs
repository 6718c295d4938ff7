//! The times of system calls.

use numalab_memory_model::machine::SystemCall;

use super::super::regions::mappings;
use super::{Call, Pending, World, transfers};

impl World {
    /// Lets the seat's thread take the time of a call that returned this value. If the call copied the
    /// process (`copies`), both it and the child take its time.
    pub(super) fn takes_call(
        &mut self,
        seat: usize,
        pending: Option<Pending>,
        value: i64,
        copies: bool,
    ) {
        let fork = copies.then(|| SystemCall::Fork(self.pages_for_child(), mappings()));
        if let Some(kind) = fork.or_else(|| kind(pending.as_ref(), value)) {
            self.in_kernel(seat, |active, shadow| active.calls(kind, shadow));
        }
        if let (Some(pending), Ok(moved)) = (pending, u64::try_from(value)) {
            self.moves_lines(seat, &pending, moved);
        }
    }
}

/// Returns the kind of a call; `None` for calls that a program makes without the kernel (vdso(7),
/// which QEMU lacks), and for the preloaded library's call.
fn kind(pending: Option<&Pending>, value: i64) -> Option<SystemCall> {
    let Some(pending) = pending else { return Some(SystemCall::Other) };
    match pending.call {
        Call::ClockTime | Call::TimeOfDay | Call::GetCpu | Call::Asks => None,
        Call::Yield => Some(SystemCall::Yield),
        Call::Map | Call::Unmap | Call::Protect => Some(SystemCall::Map),
        Call::Open if value >= 0 => Some(SystemCall::Open),
        Call::Read | Call::ReadAt | Call::Write | Call::WriteAt | Call::Transfer => {
            Some(transfers::takes(pending, u64::try_from(value).unwrap_or(0)))
        }
        _ => Some(SystemCall::Other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_takes_the_time_of_its_kind() {
        let kind = |call, value| {
            let arguments = [0; 6];
            kind(Some(&Pending { call, arguments, moves: None, now_ps: 0, until_ps: None }), value)
        };
        assert_eq!(kind(Call::ClockTime, 0), None);
        assert_eq!(kind(Call::Futex, 0), Some(SystemCall::Other));
        assert_eq!(super::kind(None, 0), Some(SystemCall::Other), "one that is not followed");
        assert_eq!(kind(Call::Yield, 0), Some(SystemCall::Yield));
        assert_eq!(kind(Call::Protect, 0), Some(SystemCall::Map));
        let opened = [3, -2].map(|value| kind(Call::Open, value));
        let expected = [SystemCall::Open, SystemCall::Other].map(Some);
        assert_eq!(opened, expected, "there is no such file");
        let moved = [-1, 0, 4097].map(|bytes| kind(Call::Transfer, bytes));
        assert_eq!(moved, [0, 0, 4097].map(|bytes| Some(SystemCall::Move(bytes))));
    }
}
