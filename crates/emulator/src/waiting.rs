//! Instructions with which a guest only waits.

/// Time of a waiting instruction while nothing is counted, in ns. On real machines PAUSE takes tens
/// of ns and a port read about a thousand. At 1 ns, as all instructions take in virtual time, a
/// kernel that waits 10 ms for a cpu to come up would loop a million times, and QEMU switches to
/// every other vCPU each time.
pub const WAITED_NS: i64 = 1000;

/// Returns true for PAUSE, or IN of a byte, word or doubleword from port DX or an immediate one
/// (Intel SDM, volume 2).
pub fn is_wait(instruction: &[u8]) -> bool {
    match instruction {
        [0xf3, 0x90] | [0xec | 0xed] | [0xe4 | 0xe5, _] => true,
        [0x66, rest @ ..] => matches!(rest, [0xed] | [0xe5, _]),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distinguishes_waiting_instructions_from_similar_ones() {
        let pause = [0xf3, 0x90];
        for wait in [&pause[..], &[0xec], &[0xed], &[0xe4, 0x61], &[0xe5, 0x61], &[0x66, 0xed]] {
            assert!(is_wait(wait), "{wait:x?}");
        }
        let nop = [0x66, 0x90];
        for other in [&nop[..], &[0xee], &[0xe6, 0x61], &[0x66, 0xec], &[0xec, 0], &[0x66], &[]] {
            assert!(!is_wait(other), "{other:x?}");
        }
    }
}
