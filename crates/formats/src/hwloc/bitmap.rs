//! Sets in hwloc's notation: `0x000000ff,,0x00000003`, 32 bits each, highest first, with an empty
//! word for zero.

use numalab_topology::{Id, IdSet, MAX_ID};

/// Parses a set; `None` if the text is not a set, is infinite (`0xf...f`) or has ids above
/// [`MAX_ID`].
pub(super) fn read<I: Id>(text: &str) -> Option<IdSet<I>> {
    let mut set = IdSet::new();
    for (word, digits) in (0u32..).zip(text.trim().rsplit(',')) {
        let digits = digits.trim().trim_start_matches("0x");
        if digits.is_empty() {
            continue;
        }
        let bits = u32::from_str_radix(digits, 16).ok()?;
        for bit in (0..32).filter(|bit| bits >> bit & 1 == 1) {
            let id = word.checked_mul(32)?.checked_add(bit).filter(|&id| id <= MAX_ID)?;
            set.extend([I::from_number(id)]);
        }
    }
    Some(set)
}

pub(super) fn write<I: Id>(set: &IdSet<I>) -> String {
    let words = set.mask_words();
    let lowest_first = words.iter().enumerate().map(|(index, word)| match (index, word) {
        (0, 0) => "0x0".to_owned(),
        (_, 0) => String::new(),
        (_, word) => format!("0x{word:08x}"),
    });
    let mut text: Vec<String> = lowest_first.collect();
    text.reverse();
    text.join(",")
}

#[cfg(test)]
mod tests {
    use numalab_topology::{CpuId, CpuSet};
    use proptest::prelude::*;

    use super::{read, write};

    #[test]
    fn empty_words_and_short_forms_are_read() {
        let set: CpuSet = read("0x000000ff,,0x00000003").unwrap();
        assert_eq!(set.to_string(), "0,1,64-71");
        assert_eq!(read::<CpuId>("0x0").unwrap().to_string(), "");
        assert_eq!(read::<CpuId>("0xffff0000,0x0").unwrap().to_string(), "48-63");
    }

    #[test]
    fn infinite_and_oversized_sets_are_refused() {
        assert_eq!(read::<CpuId>("0xf...f"), None);
        assert_eq!(read::<CpuId>("0x1ffffffff"), None);
        assert_eq!(read::<CpuId>(&format!("0x1{}", ",".repeat(2048))), None);
    }

    proptest! {
        #[test]
        fn sets_round_trip(numbers in proptest::collection::btree_set(0u32..4000, 0..50)) {
            let set: CpuSet = numbers.into_iter().map(CpuId).collect();
            prop_assert_eq!(read(&write(&set)), Some(set));
        }
    }
}
