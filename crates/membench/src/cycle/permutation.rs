//! A keyed bijection on `0..size`: a Feistel network in mixed radix, with cycle walking.
//!
//! An element is a row and a column of a table of `rows` x `columns` cells, which has hardly
//! more cells than there are elements. Three rounds add to one half a keyed hash of the
//! other: as many as it takes for a permutation that looks random (Luby and Rackoff, "How to
//! construct pseudorandom permutations", 1988). Where that leads to one of the few cells
//! beyond the last element, it is applied again until it leads back (Black and Rogaway,
//! "Ciphers with arbitrary finite domains", 2002).

/// How many elements a batch has: enough for the compiler to use whole vectors.
pub const BATCH: usize = 64;

/// How far below the square root rows are tried for a table without spare cells.
const ROW_CANDIDATES: u64 = 1024;

/// A permutation of `0..size` which a seed chooses.
#[derive(Clone, Copy, Debug)]
pub struct Permutation {
    size: u64,
    rows: u32,
    columns: u32,
    keys: [u32; 3],
}

impl Permutation {
    /// A permutation of `0..size`; `size` at least 1 and at most 2^60.
    pub fn new(size: u64, seed: u64) -> Permutation {
        let (rows, columns) = table(size);
        Permutation {
            size,
            rows,
            columns,
            keys: keys(seed),
        }
    }

    /// Another permutation of as many elements.
    pub fn with_seed(self, seed: u64) -> Permutation {
        Permutation {
            keys: keys(seed),
            ..self
        }
    }

    /// How many elements there are.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// The element at `position`.
    pub fn forward(&self, position: u64) -> u64 {
        let mut at = position;
        loop {
            let (row, column) = self.split(at);
            let (row, column) = self.encrypt(row, column);
            at = self.cell(row, column);
            if at < self.size {
                return at;
            }
        }
    }

    /// The position of `element`.
    fn backward(&self, element: u64) -> u64 {
        let mut at = element;
        loop {
            let (row, column) = self.split(at);
            let (row, column) = self.decrypt(row, column);
            at = self.cell(row, column);
            if at < self.size {
                return at;
            }
        }
    }

    /// The element at the position after that of `element`, the first one after the last.
    /// This makes all elements one cycle, whatever the keys.
    pub fn successor(&self, element: u64) -> u64 {
        let position = self.backward(element) + 1;
        self.forward(if position == self.size { 0 } else { position })
    }

    /// The elements at `first` and the positions after it: into `elements`, as many as
    /// returned.
    #[inline(always)]
    pub fn forwards(&self, first: u64, elements: &mut [u64; BATCH]) -> usize {
        let count = self.batch(first, elements, |permutation, row, column| {
            let (row, column) = permutation.encrypt(row, column);
            permutation.cell(row, column)
        });
        self.settle(first, &mut elements[..count], Permutation::forward);
        count
    }

    /// The successors of `first` and of the elements after it: into `elements`, as many as
    /// returned.
    #[inline(always)]
    pub fn successors(&self, first: u64, elements: &mut [u64; BATCH]) -> usize {
        let (last_row, last_column) = self.split(self.size - 1);
        let count = self.batch(first, elements, |permutation, row, column| {
            let (row, column) = permutation.decrypt(row, column);
            let spare = (row > last_row) | ((row == last_row) & (column >= last_column));
            let wraps = column + 1 == permutation.columns;
            let (row, column) =
                permutation.encrypt(row + u32::from(wraps), if wraps { 0 } else { column + 1 });
            if spare {
                u64::MAX
            } else {
                permutation.cell(row, column)
            }
        });
        self.settle(first, &mut elements[..count], Permutation::successor);
        count
    }

    /// Fills a batch by `cell_of`, from the rows and columns of `first` and what follows.
    ///
    /// All lanes are always computed, so that the loop has a constant length; those past the
    /// count returned hold nothing of use.
    #[inline(always)]
    fn batch(
        &self,
        first: u64,
        elements: &mut [u64; BATCH],
        cell_of: impl Fn(&Permutation, u32, u32) -> u64,
    ) -> usize {
        let (row, column) = self.split(first);
        let left = usize::try_from(self.size - first)
            .unwrap_or(BATCH)
            .min(BATCH);
        if self.columns.is_power_of_two() {
            let shift = self.columns.trailing_zeros();
            for (lane, element) in (0..).zip(elements.iter_mut()) {
                let column = column + lane;
                *element = cell_of(self, row + (column >> shift), column & (self.columns - 1));
            }
            left
        } else {
            for (lane, element) in (0..).zip(elements.iter_mut()) {
                *element = cell_of(self, row, column + lane);
            }
            left.min((self.columns - column) as usize)
        }
    }

    /// Computes again, one by one, what the batch left beyond the last element.
    #[inline(always)]
    fn settle(&self, first: u64, elements: &mut [u64], one: fn(&Permutation, u64) -> u64) {
        for (index, element) in (first..).zip(elements) {
            if *element >= self.size {
                *element = one(self, index);
            }
        }
    }

    #[inline(always)]
    fn encrypt(&self, row: u32, column: u32) -> (u32, u32) {
        let row = add(row, hash(column, self.keys[0], self.rows), self.rows);
        let column = add(column, hash(row, self.keys[1], self.columns), self.columns);
        let row = add(row, hash(column, self.keys[2], self.rows), self.rows);
        (row, column)
    }

    #[inline(always)]
    fn decrypt(&self, row: u32, column: u32) -> (u32, u32) {
        let row = subtract(row, hash(column, self.keys[2], self.rows), self.rows);
        let column = subtract(column, hash(row, self.keys[1], self.columns), self.columns);
        let row = subtract(row, hash(column, self.keys[0], self.rows), self.rows);
        (row, column)
    }

    #[inline(always)]
    fn cell(&self, row: u32, column: u32) -> u64 {
        u64::from(row) * u64::from(self.columns) + u64::from(column)
    }

    #[inline(always)]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "rows and columns are below 2^31"
    )]
    fn split(&self, cell: u64) -> (u32, u32) {
        let columns = u64::from(self.columns);
        ((cell / columns) as u32, (cell % columns) as u32)
    }
}

/// Rows and columns of a table for `size` elements: nearly square, with the fewest spare
/// cells, none if `size` has a divisor near its square root.
#[expect(
    clippy::cast_possible_truncation,
    reason = "the square root of 2^60 is 2^30"
)]
fn table(size: u64) -> (u32, u32) {
    let root = size.isqrt();
    let least = root.saturating_sub((root / 8).min(ROW_CANDIDATES)).max(1);
    let spare = |rows: u64| rows * size.div_ceil(rows) - size;
    let rows = (least..=root)
        .rev()
        .min_by_key(|&rows| spare(rows))
        .unwrap_or(1);
    (rows as u32, size.div_ceil(rows) as u32)
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "32 bits of each draw are wanted"
)]
fn keys(seed: u64) -> [u32; 3] {
    [1, 2, 3].map(|round| mix(seed.wrapping_add(round)) as u32)
}

/// Spreads every bit of `value` over the result (`SplitMix64`'s finaliser: Steele, Lea and
/// Flood, "Fast splittable pseudorandom number generators", 2014).
pub fn mix(value: u64) -> u64 {
    let value = value.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let value = (value ^ value >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let value = (value ^ value >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    value ^ value >> 31
}

/// A number below `bound` that depends on every bit of `half` and `key`: two odd multipliers
/// with a shift between them, then the top bits (Lemire, "Fast random integer generation in
/// an interval", 2019).
#[inline(always)]
#[expect(
    clippy::cast_possible_truncation,
    reason = "below bound, which has 32 bits"
)]
fn hash(half: u32, key: u32, bound: u32) -> u32 {
    let value = (half ^ key).wrapping_mul(0x9E37_79B1);
    let value = (value ^ value >> 15).wrapping_mul(0x85EB_CA77);
    ((u64::from(value) * u64::from(bound)) >> 32) as u32
}

/// `value + by` modulo `modulus`; both below it, and it at most 2^31. Without a branch: the
/// sum less the modulus is huge where it would be negative.
#[inline(always)]
fn add(value: u32, by: u32, modulus: u32) -> u32 {
    let sum = value.wrapping_add(by);
    sum.min(sum.wrapping_sub(modulus))
}

/// `value - by` modulo `modulus`, in the same way.
#[inline(always)]
fn subtract(value: u32, by: u32, modulus: u32) -> u32 {
    let difference = value.wrapping_sub(by);
    difference.min(difference.wrapping_add(modulus))
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
        fn a_batch_agrees_with_one_by_one(size in 1_u64..1 << 40, seed: u64, at: u64) {
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
        fn a_table_has_room_and_hardly_more(size in 1_u64..1 << 60) {
            let (rows, columns) = table(size);
            let cells = u64::from(rows) * u64::from(columns);
            prop_assert!(cells >= size);
            prop_assert!(cells - size < u64::from(rows));
            prop_assert!(rows <= columns);
        }
    }

    #[test]
    fn a_whole_number_of_mebibytes_never_walks() {
        for mebibytes in 1..2000_u64 {
            let lines = mebibytes << 14;
            let (rows, columns) = table(lines);
            assert_eq!(
                u64::from(rows) * u64::from(columns),
                lines,
                "{mebibytes} MiB"
            );
        }
    }
}
