//! Who called whom: the calls that a thread is in, told by what its call instructions push.
//!
//! A call stores its return address at the stack's end, and a return loads it. Whoever finds a call's
//! place at or below its own knows that that call is over, so that jumps out of functions and signal
//! handlers need not be followed.

use std::cell::RefCell;

/// Calls that are kept of a thread; deeper ones are forgotten, outermost first.
const MOST_DEEP: usize = 4096;

thread_local! {
    static CALLS: RefCell<Vec<Call>> = const { RefCell::new(Vec::new()) };
}

#[derive(Clone, Copy, Debug)]
struct Call {
    /// Where its return address lies.
    at: u64,
    returns_to: u64,
}

/// The thread that calls us has stored a return address there.
#[inline]
pub fn called(at: u64, returns_to: u64) {
    CALLS.with_borrow_mut(|calls| {
        while calls.last().is_some_and(|call| call.at <= at) {
            calls.pop();
        }
        if calls.len() == MOST_DEEP {
            calls.drain(..MOST_DEEP / 2);
        }
        calls.push(Call { at, returns_to });
    });
}

/// The thread that calls us has loaded the return address that lies there.
#[inline]
pub fn returned(at: u64) {
    CALLS.with_borrow_mut(|calls| {
        while calls.last().is_some_and(|call| call.at <= at) {
            calls.pop();
        }
    });
}

/// Return addresses of the calls that this thread is in, the innermost first, at most so many.
pub fn callers(most: usize) -> Vec<u64> {
    CALLS.with_borrow(|calls| calls.iter().rev().take(most).map(|call| call.returns_to).collect())
}

/// Whether an instruction of x86-64 is a near return: C3 or C2, perhaps behind F3 (Intel SDM,
/// volume 2).
pub fn is_return(instruction: &[u8]) -> bool {
    matches!(instruction, [0xc3] | [0xc2, ..] | [0xf2 | 0xf3, 0xc3])
}

/// Whether an instruction of x86-64 is a near call: E8, or FF /2, behind its prefixes (Intel SDM,
/// volume 2).
pub fn is_call(instruction: &[u8]) -> bool {
    let prefix =
        |byte: &u8| matches!(byte, 0x2e | 0x36 | 0x3e | 0x40..=0x4f | 0x64..=0x67 | 0xf2 | 0xf3);
    let code = instruction.iter().position(|byte| !prefix(byte));
    match code.map(|at| &instruction[at..]) {
        Some([0xe8, ..]) => true,
        Some([0xff, mode, ..]) => mode >> 3 & 7 == 2,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_ends_those_that_were_made_at_or_below_its_place() {
        called(0x900, 1);
        called(0x800, 2);
        called(0x700, 3);
        assert_eq!(callers(2), [3, 2]);
        // Both are over.
        called(0x800, 4);
        assert_eq!(callers(9), [4, 1]);
        returned(0x800);
        assert_eq!(callers(9), [1]);
    }

    #[test]
    fn the_outermost_calls_of_a_deep_recursion_are_forgotten() {
        for depth in 0..2 * MOST_DEEP as u64 {
            called(u64::MAX - depth * 16, depth);
        }
        assert_eq!(callers(1), [2 * MOST_DEEP as u64 - 1]);
        assert!(callers(usize::MAX).len() <= MOST_DEEP);
    }

    #[test]
    fn calls_are_told_from_jumps_and_returns() {
        let calls: [&[u8]; 5] = [
            &[0xe8, 1, 2, 3, 4],
            &[0xff, 0xd0],
            &[0xff, 0x15, 1, 2, 3, 4],
            &[0x41, 0xff, 0xd3],
            &[0x3e, 0xff, 0xd0],
        ];
        assert!(calls.into_iter().all(is_call));
        let others: [&[u8]; 5] = [&[0xe9, 1, 2, 3, 4], &[0xff, 0xe0], &[0xc3], &[0xff, 0x30], &[]];
        assert!(!others.into_iter().any(is_call));
        assert!(is_return(&[0xc3]) && is_return(&[0xf3, 0xc3]) && !is_return(&[0xcb]));
    }
}
