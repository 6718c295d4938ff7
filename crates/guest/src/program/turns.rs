//! The order in which threads take a machine's cpus.

/// Returns positions of cpus in turn by owner (a node, for example): the first one of each, then
/// the second ones, and so on.
pub fn in_turn<Of: Copy + Ord>(of: &[Of]) -> Vec<usize> {
    let turn = |cpu: usize| of[..cpu].iter().filter(|before| **before == of[cpu]).count();
    let mut order: Vec<usize> = (0..of.len()).collect();
    order.sort_by_key(|cpu| (turn(*cpu), of[*cpu]));
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_take_turns_until_the_larger_one_is_alone() {
        assert_eq!(in_turn(&[0, 0, 0, 1]), [0, 3, 1, 2]);
        assert_eq!(in_turn::<usize>(&[]), [] as [usize; 0]);
    }
}
