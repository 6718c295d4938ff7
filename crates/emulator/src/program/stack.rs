//! Follows a thread's call stack by the return addresses that its call instructions push.
//!
//! A call stores its return address at the end of the stack, and a return loads it. An older call
//! with a slot at or below a new one's must be over, so that longjmp and signal handlers need not
//! be followed.

/// Calls kept per thread; the outermost of deeper stacks are dropped.
const MOST_DEEP: usize = 4096;

#[derive(Clone, Copy, Debug)]
struct Call {
    /// Address of its return address.
    at: u64,
    returns_to: u64,
}

/// The calls that a thread is in.
#[derive(Debug, Default)]
pub struct Calls(Vec<Call>);

impl Calls {
    /// Records a call that stored its return address at `at`.
    #[inline]
    pub fn called(&mut self, at: u64, returns_to: u64) {
        self.returned(at);
        if self.0.len() == MOST_DEEP {
            // Removes half at a time, so that deep recursion does not move the rest at every call.
            self.0.drain(..MOST_DEEP / 2);
        }
        self.0.push(Call { at, returns_to });
    }

    /// Records a return that loaded the return address at `at`.
    #[inline]
    pub fn returned(&mut self, at: u64) {
        while self.0.last().is_some_and(|call| call.at <= at) {
            self.0.pop();
        }
    }

    /// Returns up to `most` return addresses, innermost first.
    pub fn callers(&self, most: usize) -> Vec<u64> {
        self.0.iter().rev().take(most).map(|call| call.returns_to).collect()
    }
}

/// Returns true for an x86-64 near return: C3 or C2, optionally after F3 (Intel SDM, volume 2).
pub fn is_return(instruction: &[u8]) -> bool {
    matches!(instruction, [0xc3] | [0xc2, ..] | [0xf2 | 0xf3, 0xc3])
}

/// Returns true for an x86-64 near call: E8, or FF /2, after any prefixes (Intel SDM, volume 2).
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
    fn a_call_ends_older_calls_at_or_below_its_slot() {
        let mut calls = Calls::default();
        [(0x900, 1), (0x800, 2), (0x700, 3)].iter().for_each(|(at, to)| calls.called(*at, *to));
        assert_eq!(calls.callers(2), [3, 2]);
        // Both calls are over.
        calls.called(0x800, 4);
        assert_eq!(calls.callers(9), [4, 1]);
        calls.returned(0x800);
        assert_eq!(calls.callers(9), [1]);
    }

    #[test]
    fn drops_the_outermost_calls_of_a_deep_recursion() {
        let mut calls = Calls::default();
        for depth in 0..2 * MOST_DEEP as u64 {
            calls.called(u64::MAX - depth * 16, depth);
        }
        assert_eq!(calls.callers(1), [2 * MOST_DEEP as u64 - 1]);
        assert!(calls.callers(usize::MAX).len() <= MOST_DEEP);
    }

    #[test]
    fn distinguishes_calls_from_jumps_and_returns() {
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
