//! Sorting of lists with little code. `sort_by_key` takes 3 KiB of code for every type of list,
//! which is too much for a small kernel: here positions are sorted, by code that all lists share.

use alloc::vec;
use alloc::vec::Vec;
use core::cmp::Ordering;

/// Sorts a list by key; equal elements keep their order. It makes about twice the comparisons of
/// `sort_by_key`, whatever the order of the list.
pub fn by_key<T, K: Ord>(list: &mut [T], key: impl Fn(&T) -> K) {
    let mut targets = targets(list.len(), &|one, other| key(&list[one]).cmp(&key(&list[other])));
    for place in 0..targets.len() {
        while targets[place] != place {
            let target = targets[place];
            list.swap(place, target);
            targets.swap(place, target);
        }
    }
}

/// Returns, for each of `count` positions, the one where its element belongs, by a heap sort of the
/// positions.
fn targets(count: usize, order: &dyn Fn(usize, usize) -> Ordering) -> Vec<usize> {
    let mut places: Vec<usize> = (0..count).collect();
    for root in (0..count / 2).rev() {
        sift_down(&mut places, root, order);
    }
    for end in (1..count).rev() {
        places.swap(0, end);
        sift_down(&mut places[..end], 0, order);
    }
    let mut targets = vec![0; count];
    for (target, place) in places.into_iter().enumerate() {
        targets[place] = target;
    }
    targets
}

/// Moves the position at `root` down until none below it comes later; among equal elements the
/// later position comes later.
fn sift_down(places: &mut [usize], mut root: usize, order: &dyn Fn(usize, usize) -> Ordering) {
    let is_before = |one: usize, other: usize| order(one, other).then(one.cmp(&other)).is_lt();
    loop {
        let mut latest = root;
        for child in [2 * root + 1, 2 * root + 2] {
            if child < places.len() && is_before(places[latest], places[child]) {
                latest = child;
            }
        }
        if latest == root {
            return;
        }
        places.swap(root, latest);
        root = latest;
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_list_is_sorted_as_by_a_stable_sort(list: Vec<(u8, u8)>) {
            let (mut ours, mut theirs) = (list.clone(), list);
            super::by_key(&mut ours, |pair| pair.0);
            theirs.sort_by_key(|pair| pair.0);
            prop_assert_eq!(ours, theirs);
        }
    }
}
