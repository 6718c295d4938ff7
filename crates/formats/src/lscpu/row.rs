//! One row of a table, and where it is in the text.

use numalab_topology::{CpuId, NodeId};

use crate::error::ReadError;

pub(super) const FORMAT: &str = "lscpu table";

#[derive(Clone, Copy, Debug)]
pub(super) enum Place {
    /// The line, from 1.
    Line(usize),
    /// The item in the list `cpus` of JSON, from 0.
    Item(usize),
}

impl Place {
    /// Returns an error that quotes `found` and names what was expected.
    pub(super) fn wrong(self, found: &str, expected: &str) -> ReadError {
        let (found, expected) = (found.trim().to_owned(), expected.to_owned());
        match self {
            Self::Line(line) => ReadError::Syntax { format: FORMAT, line, found, expected },
            Self::Item(item) => ReadError::Markup {
                format: FORMAT,
                message: format!("cpus[{item}]: found `{found}`, expected {expected}"),
            },
        }
    }
}

/// One cpu; fields without a value are unknown.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) place: Place,
    pub(super) cpu: CpuId,
    pub(super) node: Option<NodeId>,
    pub(super) socket: Option<u32>,
    /// The drawer and the book of the package, on s390.
    pub(super) frame: [Option<u32>; 2],
    pub(super) cluster: Option<u32>,
    pub(super) core: Option<u32>,
    /// Names of caches in small letters, such as `l1d`, and their numbers.
    pub(super) caches: Vec<(String, u32)>,
    pub(super) is_online: bool,
}
