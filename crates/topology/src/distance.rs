//! Distances between nodes.

use alloc::vec::Vec;

/// The distance of a node to itself (ACPI 6.5, section 5.2.17): every other
/// distance is relative to it, so 20 means twice the cost of local memory.
pub const LOCAL_DISTANCE: u8 = 10;

/// The value in place of a distance if a node cannot reach the other's memory (ACPI 6.5, section
/// 5.2.17); it does not measure a cost.
pub const UNREACHABLE_DISTANCE: u8 = 255;

/// A square matrix of distances (0 to 255) by dense node index, as the firmware gives them; entries
/// can be unknown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "serde", serde(transparent))]
pub struct Distances {
    rows: Vec<Vec<Option<u8>>>,
}

/// Reasons why rows do not form a distance matrix.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DistanceError {
    /// The length of a row differs from the number of rows.
    #[error("row {row} of the distance matrix has {found} values, expected {expected}")]
    NotSquare {
        /// The row's index.
        row: usize,
        /// Number of values in that row.
        found: usize,
        /// Number of rows in the matrix.
        expected: usize,
    },
}

impl Distances {
    /// Creates a matrix for `nodes` nodes with all distances unknown.
    pub fn unknown(nodes: usize) -> Self {
        Self { rows: (0..nodes).map(|_| (0..nodes).map(|_| None).collect()).collect() }
    }

    /// Creates a matrix in which every node is [`LOCAL_DISTANCE`] from itself and `remote` from
    /// every other.
    pub fn uniform(nodes: usize, remote: u8) -> Self {
        let row = |from| {
            (0..nodes).map(|to| Some(if from == to { LOCAL_DISTANCE } else { remote })).collect()
        };
        Self { rows: (0..nodes).map(row).collect() }
    }

    /// Creates the matrix with these rows: `rows[from][to]`.
    ///
    /// # Errors
    /// [`DistanceError::NotSquare`] if a row's length differs from the number of rows.
    pub fn from_rows(rows: &[Vec<u8>]) -> Result<Self, DistanceError> {
        let expected = rows.len();
        for (row, values) in rows.iter().enumerate() {
            if values.len() != expected {
                return Err(DistanceError::NotSquare { row, found: values.len(), expected });
            }
        }
        Ok(Self { rows: rows.iter().map(|row| row.iter().copied().map(Some).collect()).collect() })
    }

    /// Returns true if two nodes are known to be no further from each other than each is from
    /// itself.
    pub fn is_local(&self, one: usize, other: usize) -> bool {
        [(one, other), (other, one)].iter().all(|&(a, b)| self.get(a, b) == Some(LOCAL_DISTANCE))
    }

    /// Returns the number of nodes.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Returns true if the matrix covers no nodes.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Returns the distance between two dense node indices, if known.
    pub fn get(&self, from: usize, to: usize) -> Option<u8> {
        *self.rows.get(from)?.get(to)?
    }

    /// Records a distance; indices outside the matrix are ignored.
    pub fn set(&mut self, from: usize, to: usize, distance: u8) {
        if let Some(entry) = self.rows.get_mut(from).and_then(|row| row.get_mut(to)) {
            *entry = Some(distance);
        }
    }

    /// Returns the matrix of only these dense node indices, in this order; empty for an empty
    /// matrix.
    pub fn among(&self, nodes: &[usize]) -> Self {
        if self.is_empty() {
            return Self::default();
        }
        let row = |from: &usize| nodes.iter().map(|to| self.get(*from, *to)).collect();
        Self { rows: nodes.iter().map(row).collect() }
    }

    /// Returns true if every entry is known.
    pub fn is_complete(&self) -> bool {
        self.rows.iter().flatten().all(Option::is_some)
    }

    /// Returns the distinct known values, smallest first.
    pub fn values(&self) -> Vec<u8> {
        let mut values: Vec<u8> = self.rows.iter().flatten().copied().flatten().collect();
        values.sort_unstable();
        values.dedup();
        values
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;

    #[test]
    fn a_row_has_the_distances_from_its_node_to_the_others() {
        let rows = [vec![10, 17, 21], vec![19, 10, 22], vec![23, 24, 10]];
        let table = Distances::from_rows(&rows).unwrap();
        assert_eq!(
            (table.get(0, 1), table.get(1, 0), table.get(2, 0)),
            (Some(17), Some(19), Some(23))
        );
        let among = table.among(&[2, 0]);
        assert_eq!((among.len(), among.get(0, 1), among.get(1, 0)), (2, Some(23), Some(21)));
    }
}
