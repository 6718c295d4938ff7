//! The vector instruction sets for which there are stream kernels.

use core::fmt;

/// A vector instruction set. All variants exist on all machines; [`Isa::is_available`] returns true
/// for those that this cpu has and this operating system has enabled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Isa {
    /// x86-64's baseline: 16-byte vectors.
    Sse2,
    /// 32-byte vectors on x86-64.
    Avx2,
    /// 64-byte vectors on x86-64 (AVX-512 F).
    Avx512,
    /// aarch64's baseline: 16-byte vectors.
    Neon,
    /// Vectors of the cpu's own length on aarch64; available if the crate is built for it (`-C
    /// target-feature=+sve`).
    Sve,
}

impl Isa {
    /// Every instruction set, narrowest first within an architecture.
    pub const ALL: [Isa; 5] = [Isa::Sse2, Isa::Avx2, Isa::Avx512, Isa::Neon, Isa::Sve];

    /// Returns the widest available set.
    pub fn detect() -> Isa {
        arch::detect()
    }

    /// Returns true if this cpu executes the set and the operating system saves its registers.
    pub fn is_available(self) -> bool {
        arch::is_available(self)
    }
}

impl fmt::Display for Isa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Isa::Sse2 => "SSE2",
            Isa::Avx2 => "AVX2",
            Isa::Avx512 => "AVX-512",
            Isa::Neon => "NEON",
            Isa::Sve => "SVE",
        })
    }
}

#[cfg(target_arch = "x86_64")]
mod arch {
    use super::Isa;
    use crate::arch::{cpuid, vector_state};

    pub fn detect() -> Isa {
        // The cpu is queried once: CPUID is slow in a virtual machine.
        let state = vector_state();
        if has_avx512(state) {
            Isa::Avx512
        } else if has_avx2(state) {
            Isa::Avx2
        } else {
            Isa::Sse2
        }
    }

    pub fn is_available(isa: Isa) -> bool {
        match isa {
            Isa::Sse2 => true,
            Isa::Avx2 => has_avx2(vector_state()),
            Isa::Avx512 => has_avx512(vector_state()),
            Isa::Neon | Isa::Sve => false,
        }
    }

    /// Returns true for AVX2: CPUID.7:EBX bit 5; XCR0 bits 1 and 2 are the XMM and YMM state.
    fn has_avx2(state: u64) -> bool {
        state & 0b110 == 0b110 && structured_features() & (1 << 5) != 0
    }

    /// Returns true for AVX512F: CPUID.7:EBX bit 16; XCR0 bits 5 to 7 are the opmask and ZMM state.
    fn has_avx512(state: u64) -> bool {
        state & 0b1110_0110 == 0b1110_0110
            && has_avx2(state)
            && structured_features() & (1 << 16) != 0
    }

    fn structured_features() -> u32 {
        if cpuid(0).eax >= 7 { cpuid(7).ebx } else { 0 }
    }
}

#[cfg(target_arch = "aarch64")]
mod arch {
    use super::Isa;

    pub fn detect() -> Isa {
        if is_available(Isa::Sve) { Isa::Sve } else { Isa::Neon }
    }

    pub fn is_available(isa: Isa) -> bool {
        match isa {
            Isa::Neon => true,
            Isa::Sve => cfg!(target_feature = "sve"),
            Isa::Sse2 | Isa::Avx2 | Isa::Avx512 => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_detected_set_is_available_and_no_wider_one_is() {
        let detected = Isa::detect();
        assert!(detected.is_available());
        assert!(Isa::ALL.iter().all(|&isa| isa <= detected || !isa.is_available()));
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn detection_agrees_with_the_standard_library() {
        assert_eq!(Isa::Avx2.is_available(), std::is_x86_feature_detected!("avx2"));
        assert_eq!(Isa::Avx512.is_available(), std::is_x86_feature_detected!("avx512f"));
        assert!(!Isa::Neon.is_available());
    }

    #[test]
    #[cfg(target_arch = "aarch64")]
    fn neon_is_always_available_and_x86_never() {
        assert!(Isa::Neon.is_available());
        assert!(!Isa::Sse2.is_available());
    }
}
