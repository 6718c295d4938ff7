//! Who called whom: the calls that a thread is in, told by what its call instructions push.
//!
//! A call stores its return address at the stack's end, and a return loads it. Whoever finds a call's
//! place at or below its own knows that that call is over, so that jumps out of functions and signal
//! handlers need not be followed.

/// Calls that are kept of a thread; deeper ones are forgotten, outermost first.
const MOST_DEEP: usize = 4096;

#[derive(Clone, Copy, Debug)]
struct Call {
    /// Where its return address lies.
    at: u64,
    returns_to: u64,
}

/// The calls that a thread is in.
#[derive(Debug, Default)]
pub struct Calls(Vec<Call>);

impl Calls {
    /// The thread has stored a return address there.
    #[inline]
    pub fn called(&mut self, at: u64, returns_to: u64) {
        self.returned(at);
        if self.0.len() == MOST_DEEP {
            self.0.drain(..MOST_DEEP / 2);
        }
        self.0.push(Call { at, returns_to });
    }

    /// The thread has loaded the return address that lies there.
    #[inline]
    pub fn returned(&mut self, at: u64) {
        while self.0.last().is_some_and(|call| call.at <= at) {
            self.0.pop();
        }
    }

    /// Their return addresses, the innermost first, at most so many.
    pub fn callers(&self, most: usize) -> Vec<u64> {
        self.0.iter().rev().take(most).map(|call| call.returns_to).collect()
    }
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
        let mut calls = Calls::default();
        [(0x900, 1), (0x800, 2), (0x700, 3)].iter().for_each(|(at, to)| calls.called(*at, *to));
        assert_eq!(calls.callers(2), [3, 2]);
        // Both are over.
        calls.called(0x800, 4);
        assert_eq!(calls.callers(9), [4, 1]);
        calls.returned(0x800);
        assert_eq!(calls.callers(9), [1]);
    }

    #[test]
    fn the_outermost_calls_of_a_deep_recursion_are_forgotten() {
        let mut calls = Calls::default();
        for depth in 0..2 * MOST_DEEP as u64 {
            calls.called(u64::MAX - depth * 16, depth);
        }
        assert_eq!(calls.callers(1), [2 * MOST_DEEP as u64 - 1]);
        assert!(calls.callers(usize::MAX).len() <= MOST_DEEP);
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
