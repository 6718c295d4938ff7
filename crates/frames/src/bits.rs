//! Runs of set bits in words; a set bit means free.

/// Returns the bits of a row from `from` up to, but not including, `to` (0 to 64).
#[inline(always)]
pub(crate) const fn span(from: u64, to: u64) -> u64 {
    if from >= to {
        return 0;
    }
    (!0 >> (64 - (to - from))) << from
}

/// Returns the lowest `count` set bits of a word.
pub(crate) const fn lowest(word: u64, count: u64) -> u64 {
    let mut rest = word;
    let mut left = count;
    while left > 0 && rest != 0 {
        rest &= rest - 1;
        left -= 1;
    }
    word & !rest
}

/// Returns the first start, a multiple of `align`, of `frames` (1 to 64) consecutive set bits in a
/// word.
pub(crate) const fn run_in_word(word: u64, frames: u64, align: u64) -> Option<u64> {
    let mut starts = word;
    let mut have = 1;
    while have < frames {
        let step = if have < frames - have { have } else { frames - have };
        starts &= starts >> step;
        have += step;
    }
    starts &= aligned_bits(align);
    if starts == 0 { None } else { Some(starts.trailing_zeros() as u64) }
}

/// Returns the bits at multiples of `align`, a power of two.
const fn aligned_bits(align: u64) -> u64 {
    match align {
        1 => !0,
        2 => 0x5555_5555_5555_5555,
        4 => 0x1111_1111_1111_1111,
        8 => 0x0101_0101_0101_0101,
        16 => 0x0001_0001_0001_0001,
        32 => 0x0000_0001_0000_0001,
        _ => 1,
    }
}

/// Returns the first start, a multiple of `align` (a power of two), of `frames` consecutive set
/// bits in a bitmap that `row` reads word by word, within the bits from `from` to `to`.
pub(crate) fn run_in_rows(
    row: impl Fn(u64) -> u64,
    from: u64,
    to: u64,
    frames: u64,
    align: u64,
) -> Option<u64> {
    let mut at = from;
    loop {
        let start = next_bit(&row, at, to, true)?.next_multiple_of(align);
        if start >= to || to - start < frames {
            return None;
        }
        match next_bit(&row, start, start + frames, false) {
            None => return Some(start),
            Some(taken) => at = taken + 1,
        }
    }
}

/// Returns the first bit from `from` and below `to` that is set (or, not `set`, clear).
pub(crate) fn next_bit(row: &impl Fn(u64) -> u64, from: u64, to: u64, set: bool) -> Option<u64> {
    let mut at = from;
    while at < to {
        let word = if set { row(at / 64) } else { !row(at / 64) };
        let ahead = word >> (at % 64);
        if ahead != 0 {
            let found = at + u64::from(ahead.trailing_zeros());
            return (found < to).then_some(found);
        }
        at = (at / 64 + 1) * 64;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::vec::Vec;

    fn slow_run(bits: &[bool], frames: usize, align: usize) -> Option<u64> {
        (0..bits.len())
            .step_by(align)
            .find(|&s| s + frames <= bits.len() && bits[s..s + frames].iter().all(|&b| b))
            .map(|s| s as u64)
    }

    proptest! {
        #[test]
        fn a_run_is_found_where_a_slow_search_finds_it(
            words in prop::array::uniform4(prop_oneof![any::<u64>(), Just(0), Just(u64::MAX)]),
            holes in prop::collection::vec(0_usize..256, 0..4),
            frames in 1_u64..130,
            align in 0_u32..7,
        ) {
            let mut words = words;
            for hole in holes {
                words[hole / 64] &= !(1 << (hole % 64));
            }
            let bits: Vec<bool> = (0..256).map(|b| words[b / 64] >> (b % 64) & 1 == 1).collect();
            let align = 1_u64 << align;
            let slow = slow_run(&bits, usize::try_from(frames)?, usize::try_from(align)?);
            let row = |r: u64| words[usize::try_from(r).unwrap()];
            prop_assert_eq!(run_in_rows(row, 0, 256, frames, align), slow);
            if frames <= 64 {
                let slow = slow_run(&bits[..64], usize::try_from(frames)?, usize::try_from(align)?);
                prop_assert_eq!(run_in_word(words[0], frames, align), slow);
            }
        }

        #[test]
        fn the_lowest_bits_are_taken_first(word in any::<u64>(), count in 0_u64..65) {
            let low = lowest(word, count);
            prop_assert_eq!(low & !word, 0);
            prop_assert_eq!(u64::from(low.count_ones()), count.min(u64::from(word.count_ones())));
            let rest = word & !low;
            prop_assert!(rest == 0 || low == 0 || rest.trailing_zeros() > 63 - low.leading_zeros());
        }
    }

    #[test]
    fn a_span_has_the_given_ends() {
        assert_eq!(span(0, 64), !0);
        assert_eq!(span(3, 5), 0b11000);
        assert_eq!(span(5, 5), 0);
        assert_eq!(span(63, 64), 1 << 63);
    }
}
