//! A keyed bijection on `0..size`: a Feistel network in mixed radix, with cycle walking.
//!
//! An element is a row and a column of a table of `rows` x `columns` cells, which has hardly more
//! cells than there are elements. Each round adds a keyed hash of one half to the other. Four
//! rounds look random to an observer that can query any element (Luby and Rackoff, "How to
//! construct pseudorandom permutations", 1988), but only with halves of many values: in a table of
//! 8 x 8, some steps come twice as often as others, and six rounds are needed. If a round leads to
//! one of the few cells beyond the last element, the network is applied again until it leads back
//! (Black and Rogaway, "Ciphers with arbitrary finite domains", 2002).

use super::round::{add_hash, mix, subtract_hash};

/// Number of elements in a batch: enough for the compiler to use whole vectors.
pub const BATCH: usize = 64;

/// The keys of two rounds: one of the rows and one of the columns.
type RoundPair = [u32; 2];
/// Number of pairs of rounds that are enough for a table of any size.
const PAIRS: usize = 3;
/// Number of pairs of rounds that are enough for [`LARGE`] elements and more.
const PAIRS_IF_LARGE: usize = 2;
const LARGE: u64 = 1 << 16;

/// A permutation of `0..size` selected by a seed.
#[derive(Clone, Copy, Debug)]
pub struct Permutation {
    size: u64,
    rows: u32,
    columns: u32,
    keys: [RoundPair; PAIRS],
    /// Queried once: CPUID is slow in a virtual machine.
    #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
    has_avx2: bool,
}

/// Cells of the table, by row and column: stored separately, so that vectors contain many of one
/// kind.
struct Cells<const N: usize> {
    rows: [u32; N],
    columns: [u32; N],
    /// All ones if there is no such cell.
    lost: [u32; N],
}

impl Default for Cells<BATCH> {
    fn default() -> Self {
        Cells { rows: [0; BATCH], columns: [0; BATCH], lost: [0; BATCH] }
    }
}

impl Permutation {
    /// Creates a permutation of `0..size`; `size` is at least 1 and at most 2^60.
    pub fn new(size: u64, seed: u64) -> Permutation {
        let (rows, columns) = table(size);
        Permutation {
            size,
            rows,
            columns,
            keys: keys(seed),
            #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
            // Miri has no CPUID.
            has_avx2: !cfg!(miri) && crate::isa::Isa::Avx2.is_available(),
        }
    }

    /// Returns another permutation of the same number of elements.
    pub fn with_seed(self, seed: u64) -> Permutation {
        Permutation { keys: keys(seed), ..self }
    }

    /// Returns the number of elements.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Returns the element at `position`.
    pub fn forward(&self, position: u64) -> u64 {
        let mut at = position;
        loop {
            let mut cells = self.split_one(at);
            self.encrypt(&mut cells);
            at = self.cell(cells.rows[0], cells.columns[0]);
            if at < self.size {
                return at;
            }
        }
    }

    /// Returns the position of `element`.
    fn backward(&self, element: u64) -> u64 {
        let mut at = element;
        loop {
            let mut cells = self.split_one(at);
            self.decrypt(&mut cells);
            at = self.cell(cells.rows[0], cells.columns[0]);
            if at < self.size {
                return at;
            }
        }
    }

    /// Returns the element at the position after that of `element`, or the first one after the
    /// last. This makes all elements one cycle, whatever the keys.
    pub fn successor(&self, element: u64) -> u64 {
        let position = self.backward(element) + 1;
        self.forward(if position == self.size { 0 } else { position })
    }

    /// Writes the elements at `first` and the positions after it into `elements`, and returns their
    /// number.
    pub fn forwards(&self, first: u64, elements: &mut [u64; BATCH]) -> usize {
        #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
        if self.has_avx2 {
            // SAFETY: the cpu has AVX2, as `new` has checked.
            return unsafe { self.forwards_with_avx2(first, elements) };
        }
        self.forwards_in_vectors(first, elements)
    }

    /// Writes the successors of `first` and of the elements after it into `elements`, and returns
    /// their number.
    pub fn successors(&self, first: u64, elements: &mut [u64; BATCH]) -> usize {
        #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
        if self.has_avx2 {
            // SAFETY: the cpu has AVX2, as `new` has checked.
            return unsafe { self.successors_with_avx2(first, elements) };
        }
        self.successors_in_vectors(first, elements)
    }

    /// Does the same as `forwards_in_vectors`, compiled for AVX2: SSE2 lacks half of the
    /// instructions it needs.
    #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
    #[target_feature(enable = "avx2")]
    fn forwards_with_avx2(&self, first: u64, elements: &mut [u64; BATCH]) -> usize {
        self.forwards_in_vectors(first, elements)
    }

    /// Does the same as `successors_in_vectors`, compiled for AVX2.
    #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
    #[target_feature(enable = "avx2")]
    fn successors_with_avx2(&self, first: u64, elements: &mut [u64; BATCH]) -> usize {
        self.successors_in_vectors(first, elements)
    }

    #[inline(always)]
    fn forwards_in_vectors(&self, first: u64, elements: &mut [u64; BATCH]) -> usize {
        let mut cells = Cells::default();
        let count = self.split_batch(first, &mut cells);
        self.encrypt(&mut cells);
        self.join_batch(&cells, elements);
        self.settle(first, &mut elements[..count], Permutation::forward);
        count
    }

    #[inline(always)]
    fn successors_in_vectors(&self, first: u64, elements: &mut [u64; BATCH]) -> usize {
        let mut cells = Cells::default();
        let count = self.split_batch(first, &mut cells);
        self.decrypt(&mut cells);
        self.advance(&mut cells);
        self.encrypt(&mut cells);
        self.join_batch(&cells, elements);
        self.settle(first, &mut elements[..count], Permutation::successor);
        count
    }

    /// Splits `first` and the positions after it into rows and columns; returns the number that are
    /// in range. The other lanes are also computed, so that all loops have a constant length, and
    /// their content is meaningless.
    #[inline(always)]
    fn split_batch(&self, first: u64, cells: &mut Cells<BATCH>) -> usize {
        let (row, column) = self.split(first);
        let left = usize::try_from(self.size - first).unwrap_or(BATCH).min(BATCH);
        if self.columns.is_power_of_two() {
            let shift = self.columns.trailing_zeros();
            for (lane, at) in (column..).zip(0..BATCH) {
                cells.rows[at] = row + (lane >> shift);
                cells.columns[at] = lane & (self.columns - 1);
            }
            left
        } else {
            for (lane, at) in (column..).zip(0..BATCH) {
                cells.rows[at] = row;
                cells.columns[at] = lane;
            }
            left.min((self.columns - column) as usize)
        }
    }

    /// Advances each position to the next one. Positions without a next one, and spare cells, are
    /// moved out of range.
    #[inline(always)]
    fn advance(&self, cells: &mut Cells<BATCH>) {
        let (last_row, last_column) = self.split(self.size - 1);
        for at in 0..BATCH {
            let (row, column) = (cells.rows[at], cells.columns[at]);
            let spare = (row > last_row) | ((row == last_row) & (column >= last_column));
            let wraps = column + 1 == self.columns;
            cells.rows[at] = row + u32::from(wraps);
            cells.columns[at] = if wraps { 0 } else { column + 1 };
            cells.lost[at] = if spare { u32::MAX } else { 0 };
        }
    }

    #[inline(always)]
    fn join_batch(&self, cells: &Cells<BATCH>, elements: &mut [u64; BATCH]) {
        for (element, at) in elements.iter_mut().zip(0..BATCH) {
            // A row of all ones gives a cell far beyond the last.
            *element = self.cell(cells.rows[at] | cells.lost[at], cells.columns[at]);
        }
    }

    /// Recomputes, one by one, the elements that the batch left beyond the last element.
    #[inline(always)]
    fn settle(&self, first: u64, elements: &mut [u64], one: fn(&Permutation, u64) -> u64) {
        for (index, element) in (first..).zip(elements) {
            if *element >= self.size {
                *element = one(self, index);
            }
        }
    }

    #[inline(always)]
    fn rounds(&self) -> &[RoundPair] {
        if self.size < LARGE { &self.keys } else { &self.keys[..PAIRS_IF_LARGE] }
    }

    #[inline(always)]
    fn encrypt<const N: usize>(&self, cells: &mut Cells<N>) {
        for keys in self.rounds() {
            add_hash(&mut cells.rows, &cells.columns, keys[0], self.rows);
            add_hash(&mut cells.columns, &cells.rows, keys[1], self.columns);
        }
    }

    #[inline(always)]
    fn decrypt<const N: usize>(&self, cells: &mut Cells<N>) {
        for keys in self.rounds().iter().rev() {
            subtract_hash(&mut cells.columns, &cells.rows, keys[1], self.columns);
            subtract_hash(&mut cells.rows, &cells.columns, keys[0], self.rows);
        }
    }

    fn split_one(&self, cell: u64) -> Cells<1> {
        let (row, column) = self.split(cell);
        Cells { rows: [row], columns: [column], lost: [0] }
    }

    #[inline(always)]
    fn cell(&self, row: u32, column: u32) -> u64 {
        u64::from(row) * u64::from(self.columns) + u64::from(column)
    }

    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "rows and columns are below 2^31")]
    fn split(&self, cell: u64) -> (u32, u32) {
        let columns = u64::from(self.columns);
        ((cell / columns) as u32, (cell % columns) as u32)
    }
}

/// Returns rows and columns of a table for `size` elements: at most 2.25 times as wide as high,
/// with the fewest spare cells. There are none if `size` is a power of two, or has another suitable
/// divisor.
#[expect(clippy::cast_possible_truncation, reason = "the square root of 2^60 is 2^30")]
fn table(size: u64) -> (u32, u32) {
    let root = size.isqrt();
    let least = (root - root / 3).max(1);
    let spare = |rows: u64| rows * size.div_ceil(rows) - size;
    let rows = (least..=root).rev().min_by_key(|&rows| spare(rows)).unwrap_or(1);
    (rows as u32, size.div_ceil(rows) as u32)
}

#[expect(clippy::cast_possible_truncation, reason = "both halves of each draw are used")]
fn keys(seed: u64) -> [RoundPair; PAIRS] {
    [1, 2, 3].map(|pair| {
        let drawn = mix(seed.wrapping_add(pair));
        [drawn as u32, (drawn >> 32) as u32]
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::vec;

    proptest! {
        #[test]
        fn forward_is_a_bijection_and_backward_undoes_it(size in 1_u64..5000, seed: u64) {
            let permutation = Permutation::new(size, seed);
            let mut seen = vec![false; usize::try_from(size).unwrap()];
            for position in 0..size {
                let element = permutation.forward(position);
                prop_assert!(!core::mem::replace(&mut seen[usize::try_from(element).unwrap()], true));
                prop_assert_eq!(permutation.backward(element), position);
            }
        }

        #[test]
        fn a_batch_agrees_with_one_by_one(size in 1_u64..1 << 34, seed: u64, at: u64) {
            let permutation = Permutation::new(size, seed);
            let first = at % size;
            let mut batch = [0; BATCH];
            let count = permutation.successors(first, &mut batch);
            prop_assert!(count >= 1);
            for (element, &next) in (first..).zip(&batch[..count]) {
                prop_assert_eq!(next, permutation.successor(element));
            }
            let count = permutation.forwards(first, &mut batch);
            prop_assert!(count >= 1);
            for (position, &element) in (first..).zip(&batch[..count]) {
                prop_assert_eq!(element, permutation.forward(position));
            }
        }

        #[test]
        fn a_table_has_enough_cells_and_few_spare_ones(size in 1_u64..1 << 34) {
            let (rows, columns) = table(size);
            let cells = u64::from(rows) * u64::from(columns);
            prop_assert!(cells >= size);
            prop_assert!(cells - size < u64::from(rows));
            prop_assert!(rows <= columns);
        }
    }

    #[test]
    fn a_power_of_two_never_walks() {
        for exponent in 0..36 {
            let (rows, columns) = table(1 << exponent);
            assert_eq!(u64::from(rows) * u64::from(columns), 1 << exponent);
            assert!(columns.is_power_of_two());
        }
    }
}
