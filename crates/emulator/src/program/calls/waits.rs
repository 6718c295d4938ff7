//! Decides which calls wait, for which event, and until when at the latest.

use super::super::clocks::{NS_PER_S as NS, nanoseconds};
use super::super::futexes::Futex;
use super::super::syscalls::Call;
use super::super::turns::Leave;
use super::transfers::Moves;
use super::{Program, guest_memory};

/// `TIMER_ABSTIME`.
const ABSOLUTE: u64 = 1;
/// `FUTEX_WAIT_BITSET`, with an absolute timeout, and `FUTEX_CLOCK_REALTIME`.
const WAIT_BITSET: u64 = 9;
const ON_REAL_TIME: u64 = 0x100;
const REAL_TIME: u64 = 0;
const MONOTONIC: u64 = 1;
/// `ETIMEDOUT`, negated.
const TIMED_OUT: i64 = -110;
const MICROSECONDS: i64 = 1_000_000;

impl Program {
    /// Returns the deadline of a call that begins at this time; `None` if it has none.
    pub(super) fn until_ps(&self, call: Call, arguments: &[u64; 6], now_ps: u64) -> Option<u64> {
        let [first, second, third, fourth, fifth, _] = *arguments;
        let span = |address: u64, per_second: i64| {
            // A null pointer means no time limit, even if address 0 is mapped.
            let words = guest_memory::words(address).filter(|_| address != 0)?;
            u64::try_from(nanoseconds(words, per_second)).ok()
        };
        let on_clock = |clock: u64, address: u64| {
            let words = guest_memory::words(address).filter(|_| address != 0)?;
            Some(self.clocks.passed_ns(clock, nanoseconds(words, NS))?.saturating_mul(1000))
        };
        let milliseconds = |value: u64| {
            // An `int`; negative values mean no timeout.
            #[expect(clippy::cast_possible_truncation, reason = "the kernel takes 32 bits")]
            let value = u64::try_from(value as i32).ok()?;
            Some(value * 1_000_000)
        };
        let ns = match call {
            Call::Sleep => span(first, NS)?,
            Call::ClockSleep if second & ABSOLUTE != 0 => {
                // A deadline in the past ends the wait at once; threads never go back in time.
                return on_clock(first, third).map(|at_ps| at_ps.max(now_ps));
            }
            Call::ClockSleep => span(third, NS)?,
            Call::Futex if Futex::of(second) != Futex::Wait => return None,
            Call::Futex if second & 0x7f == WAIT_BITSET => {
                let clock = if second & ON_REAL_TIME == 0 { MONOTONIC } else { REAL_TIME };
                return on_clock(clock, fourth).map(|at_ps| at_ps.max(now_ps));
            }
            Call::Futex => span(fourth, NS)?,
            Call::Poll => milliseconds(third)?,
            Call::EventPoll => milliseconds(fourth)?,
            Call::PollNs => span(third, NS)?,
            Call::Select => span(fifth, MICROSECONDS)?,
            Call::SelectNs => span(fifth, NS)?,
            _ => return None,
        };
        Some(now_ps.saturating_add(ns.saturating_mul(1000)))
    }
}

/// Returns how a call that moves these data, with this deadline, gives the turn away; `None` if the thread
/// keeps its turn.
pub(super) fn how(
    call: Call,
    arguments: &[u64; 6],
    moves: Option<Moves>,
    until_ps: Option<u64>,
) -> Option<Leave> {
    let [first, second, third, ..] = *arguments;
    match call {
        Call::Sleep | Call::ClockSleep => until_ps.map(Leave::Sleeps),
        Call::Futex if Futex::of(second) == Futex::Wait => {
            // A futex with another value returns at once.
            #[expect(clippy::cast_possible_truncation, reason = "a futex has 32 bits")]
            let expected = third as u32;
            (guest_memory::word(first) == Some(expected)).then_some(Leave::Waits)
        }
        Call::Poll | Call::EventPoll => {
            // Without time to wait (0), the call only looks and returns.
            let limit = if call == Call::Poll { third } else { arguments[3] };
            (limit != 0).then_some(Leave::Waits)
        }
        Call::PollNs | Call::Select | Call::SelectNs | Call::Waits | Call::WaitsForChild => {
            Some(Leave::Waits)
        }
        _ => moves.filter(|of| of.may_wait()).map(|_| Leave::Waits),
    }
}

/// Returns true if this return value means that the call timed out.
pub(super) fn timed_out(call: Call, value: i64) -> bool {
    match call {
        Call::Futex => value == TIMED_OUT,
        Call::Poll | Call::PollNs | Call::Select | Call::SelectNs | Call::EventPoll => value == 0,
        _ => false,
    }
}

/// Returns true for a call that always ends at its deadline.
pub(super) fn sleeps(call: Call) -> bool {
    matches!(call, Call::Sleep | Call::ClockSleep)
}

#[cfg(test)]
mod tests {
    use super::super::super::schedule::Schedule;
    use super::*;
    use crate::target::Target;

    fn program() -> Program {
        Program::new(Schedule::new(&[0], &[0]), Target::of("x86_64").unwrap()).unwrap()
    }

    /// Returns the address of a time in the kernel's layout.
    fn time(words: [i64; 2]) -> u64 {
        Box::leak(Box::new(words)).as_ptr() as u64
    }

    const NOW_PS: u64 = 5_000;
    const MS_PS: u64 = 1_000_000_000;

    #[test]
    fn a_call_times_out_on_the_programs_clocks() {
        let program = program();
        let until = |call, arguments: [u64; 6]| program.until_ps(call, &arguments, NOW_PS);
        let two_ms = time([0, 2_000_000]);
        assert_eq!(until(Call::Sleep, [two_ms, 0, 0, 0, 0, 0]), Some(NOW_PS + 2 * MS_PS));
        assert_eq!(until(Call::ClockSleep, [1, 0, two_ms, 0, 0, 0]), Some(NOW_PS + 2 * MS_PS));
        assert_eq!(until(Call::Poll, [0, 0, 3, 0, 0, 0]), Some(NOW_PS + 3 * MS_PS));
        assert_eq!(until(Call::EventPoll, [0, 0, 0, u64::from(u32::MAX), 0, 0]), None, "-1");
        assert_eq!(
            until(Call::Select, [0, 0, 0, 0, time([0, 2_000]), 0]),
            Some(NOW_PS + 2 * MS_PS)
        );
        assert_eq!(until(Call::Select, [0; 6]), None, "no limit");
        let shows_ns = program.clocks.shows_ns(MONOTONIC, 7_000_000, Default::default()).unwrap();
        let at = time(super::super::super::clocks::seconds(shows_ns, NS));
        let absolute = until(Call::Futex, [0, WAIT_BITSET, 0, at, 0, 0]);
        assert_eq!(absolute, Some(7 * MS_PS));
        assert_eq!(until(Call::ClockSleep, [1, ABSOLUTE, at, 0, 0, 0]), Some(7 * MS_PS));
        assert_eq!(until(Call::Futex, [0, 1, 0, at, 0, 0]), None, "it wakes");
    }

    #[test]
    fn calls_that_wait_for_others_give_their_turn_away() {
        let value = 7_u32;
        let word = std::ptr::from_ref(&value) as u64;
        let waits =
            |call, arguments: [u64; 6]| how(call, &arguments, Moves::of(call, &arguments), Some(9));
        assert_eq!(waits(Call::Futex, [word, 0x80, 7, 0, 0, 0]), Some(Leave::Waits));
        assert_eq!(waits(Call::Futex, [word, 0x80, 8, 0, 0, 0]), None, "it returns at once");
        assert_eq!(waits(Call::Sleep, [0; 6]), Some(Leave::Sleeps(9)));
        assert_eq!(waits(Call::Poll, [0; 6]), None, "it only looks");
        let (reader, _writer) = std::io::pipe().unwrap();
        let descriptor = u64::try_from(std::os::fd::AsRawFd::as_raw_fd(&reader)).unwrap();
        assert_eq!(waits(Call::Read, [descriptor, 0, 0, 0, 0, 0]), Some(Leave::Waits));
    }
}
