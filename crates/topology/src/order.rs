//! Lists put in order by little code. `sort_by_key` takes 3 KiB for every kind of list, which a
//! kernel that is to be small cannot afford: here places are sorted, by code that all lists share.

use alloc::vec;
use alloc::vec::Vec;
use core::cmp::Ordering;

/// Puts a list in order of its keys; equal ones stay as they were. Compares about twice as often
/// as `sort_by_key`, in any order of the list.
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

/// For each of `count` places the one where its element belongs: a heap sort of the places.
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

/// Lets the place at `root` down to where none below it comes later; of equal elements the
/// later place does.
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
        fn a_list_is_in_the_order_that_a_stable_sort_gives(list: Vec<(u8, u8)>) {
            let (mut ours, mut theirs) = (list.clone(), list);
            super::by_key(&mut ours, |pair| pair.0);
            theirs.sort_by_key(|pair| pair.0);
            prop_assert_eq!(ours, theirs);
        }
    }
}
