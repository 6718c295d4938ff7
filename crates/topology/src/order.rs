//! Lists put in order.

use alloc::vec;
use alloc::vec::Vec;
use core::cmp::Ordering;

/// Puts a list in order of its keys; equal ones stay as they were. It is `sort_by_key`, but that
/// is 3 KiB of code for every kind of list, which a kernel that is to be small cannot afford:
/// here places are sorted, by code that all lists share. It compares as few times; the words
/// that it moves, a quarter of the list's length squared if that is in no order, are soon moved
/// for the thousands of cpus that a machine can have.
pub(crate) fn by_key<T, K: Ord>(list: &mut [T], key: impl Fn(&T) -> K) {
    let mut targets = targets(list.len(), &|one, other| key(&list[one]).cmp(&key(&list[other])));
    for place in 0..targets.len() {
        while targets[place] != place {
            let target = targets[place];
            list.swap(place, target);
            targets.swap(place, target);
        }
    }
}

/// For each of `count` places the one where its element belongs.
fn targets(count: usize, order: &dyn Fn(usize, usize) -> Ordering) -> Vec<usize> {
    let mut places: Vec<usize> = Vec::with_capacity(count);
    for place in 0..count {
        let before = places.partition_point(|&other| order(other, place).is_le());
        places.insert(before, place);
    }
    let mut targets = vec![0; count];
    for (target, place) in places.into_iter().enumerate() {
        targets[place] = target;
    }
    targets
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_list_is_in_the_order_that_a_stable_sort_gives(list: Vec<(u8, u8)>) {
            let (mut ours, mut theirs) = (list.clone(), list);
            super::by_key(&mut ours, |pair| pair.0);
            theirs.sort_by_key(|pair| pair.0);
            prop_assert_eq!(ours, theirs);
        }
    }
}
