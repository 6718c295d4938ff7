//! Short lists put in order. The standard library's sorts are made for long ones, and take 3 KiB
//! of code for each kind of list: too much for a kernel that is to be small.

/// Puts a list in order of its keys; equal ones stay as they were. Takes time in proportion to
/// the square of the list's length, unless it is nearly in order.
pub fn by_key<T, K: Ord>(list: &mut [T], key: impl Fn(&T) -> K) {
    for end in 1..list.len() {
        let mut place = end;
        while place > 0 && key(&list[place - 1]) > key(&list[place]) {
            list.swap(place - 1, place);
            place -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use std::vec::Vec;

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
