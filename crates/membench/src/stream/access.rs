//! The order in which a stream goes through the lines of its arrays.

use super::StreamError;
use crate::cycle::{BATCH, Permutation};
use crate::line::Line;
use core::fmt;

/// The order of the lines in a pass. Every pass touches every line once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Access {
    /// In address order.
    Sequential,
    /// One line every `stride_bytes`, then those one line further on, and so on.
    Strided {
        /// The distance, a multiple of 64.
        stride_bytes: usize,
    },
    /// In an order computed on the fly, without a table.
    Random {
        /// Selects the order.
        seed: u64,
    },
}

impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Access::Sequential => f.write_str("sequential"),
            Access::Strided { stride_bytes } => write!(f, "stride:{stride_bytes}"),
            Access::Random { .. } => f.write_str("random"),
        }
    }
}

/// An order over `lines` lines that differs from that of their addresses.
#[derive(Clone, Copy, Debug)]
pub enum Scatter {
    Columns { lines: u64, stride: u64 },
    Random(Permutation),
}

impl Scatter {
    /// Returns the order of `access`; `None` if it is that of the addresses.
    pub fn new(access: Access, lines: u64) -> Result<Option<Scatter>, StreamError> {
        match access {
            Access::Sequential => Ok(None),
            Access::Strided { stride_bytes } => {
                if stride_bytes == 0 || !stride_bytes.is_multiple_of(Line::SIZE_BYTES) {
                    return Err(StreamError::BadStride { stride_bytes });
                }
                let stride = (stride_bytes / Line::SIZE_BYTES) as u64;
                Ok(Some(Scatter::Columns { lines, stride: stride.min(lines) }))
            }
            Access::Random { seed } => Ok(Some(Scatter::Random(Permutation::new(lines, seed)))),
        }
    }

    /// Writes the offsets of the lines at `position` and after it into `offsets`, in bytes. The
    /// pass must have at least that number of lines left.
    pub fn offsets(&self, position: u64, offsets: &mut [u64]) {
        let mut batch = [0; BATCH];
        let mut done = 0;
        while done < offsets.len() {
            let first = position + done as u64;
            let count = match self {
                Scatter::Columns { lines, stride } => columns(first, *lines, *stride, &mut batch),
                Scatter::Random(permutation) => permutation.forwards(first, &mut batch),
            };
            for (offset, line) in offsets[done..].iter_mut().zip(&batch[..count]) {
                *offset = line * Line::SIZE_BYTES as u64;
            }
            done += count;
        }
    }
}

/// Returns the lines at `position` and after it, column by column. The first `lines % stride`
/// columns are one line longer than the others.
fn columns(position: u64, lines: u64, stride: u64, out: &mut [u64; BATCH]) -> usize {
    let (height, longer) = (lines / stride, lines % stride);
    let in_longer = longer * (height + 1);
    let (column, row) = if position < in_longer {
        (position / (height + 1), position % (height + 1))
    } else {
        let past = position - in_longer;
        (longer + past / height, past % height)
    };
    let mut line = column + row * stride;
    let mut next_head = column + 1;
    let mut count = 0;
    for (_, out) in (position..lines).zip(out) {
        *out = line;
        count += 1;
        line += stride;
        if line >= lines {
            line = next_head;
            next_head += 1;
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::{vec, vec::Vec};

    fn order(scatter: &Scatter, lines: u64) -> Vec<u64> {
        let mut offsets = vec![0; usize::try_from(lines).unwrap()];
        scatter.offsets(0, &mut offsets);
        offsets.into_iter().map(|offset| offset / 64).collect()
    }

    #[test]
    fn an_order_resumed_midway_continues_unchanged() {
        for access in [Access::Strided { stride_bytes: 448 }, Access::Random { seed: 5 }] {
            let scatter = Scatter::new(access, 1000).unwrap().unwrap();
            let whole = order(&scatter, 1000);
            let mut rest = vec![0; 617];
            scatter.offsets(383, &mut rest);
            assert!(rest.into_iter().map(|offset| offset / 64).eq(whole[383..].iter().copied()));
        }
    }

    proptest! {
        #[test]
        fn every_order_visits_every_line_once(
            lines in 1_u64..3000,
            stride in 1_usize..200,
            seed: u64,
        ) {
            for access in [Access::Strided { stride_bytes: stride * 64 }, Access::Random { seed }] {
                let scatter = Scatter::new(access, lines).unwrap().unwrap();
                let mut visited = order(&scatter, lines);
                visited.sort_unstable();
                prop_assert!(visited.into_iter().eq(0..lines), "{access}");
            }
        }
    }

    #[test]
    fn a_strided_order_goes_through_the_columns() {
        let scatter = Scatter::new(Access::Strided { stride_bytes: 192 }, 8).unwrap().unwrap();
        assert_eq!(order(&scatter, 8), [0, 3, 6, 1, 4, 7, 2, 5]);
    }
}
