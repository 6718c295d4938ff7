//! Proof of where memory lies and of what pages it is made.

use std::collections::BTreeMap;

use numalab_record::{Pages, ProofMethod};
use numalab_topology::{NodeId, NodeSet};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::error_class::ErrorClass;
use crate::mapping::{Mapping, Span, is_only_node};
use crate::page_nodes;
use crate::proc::{bytes_per_page_size, numa_maps};
use crate::root::Root;
use crate::system_page::{base_page_bytes, page_size_bytes};

/// The most pages whose node is asked for: all of 256 MiB in pages of 4 KiB, about
/// 10 ms. Of a larger mapping so many are drawn, one from each equal part.
const MOST_PAGES: u64 = 65_536;

/// Pages per system call.
const BATCH_PAGES: usize = 4096;

/// Where a mapping's pages were found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Proof {
    /// How the nodes were found out.
    pub method: ProofMethod,
    /// The mapping's first address.
    pub address: u64,
    /// Bytes that were asked for.
    pub buffer_bytes: u64,
    /// Pages in the mapping.
    pub pages_total: u64,
    /// Pages whose node was looked at; fewer than all in a large mapping.
    pub pages_checked: u64,
    /// Pages found on each node.
    pub pages_per_node: BTreeMap<NodeId, u64>,
    /// Bytes of the mapping behind pages of each size in bytes.
    pub bytes_per_page_size: BTreeMap<u64, u64>,
}

/// Why a placement is not proven.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProofError {
    /// Pages lie on other nodes.
    #[error("{misplaced} of {checked} pages looked at are not on node {expected}: {}", list(.pages_per_node))]
    WrongNode {
        /// The node, or nodes, expected.
        expected: NodeSet,
        /// Pages elsewhere.
        misplaced: u64,
        /// Pages looked at.
        checked: u64,
        /// Pages found on each node.
        pages_per_node: BTreeMap<NodeId, u64>,
    },
    /// The memory is not made of the pages asked for; of transparent huge pages it has none.
    #[error("{pages} asked for, but only {backed_bytes} of {mapped_bytes} bytes are behind pages of {page_bytes} bytes{}", hint(*.pages))]
    WrongPageSize {
        /// The pages asked for.
        pages: Pages,
        /// Their size in bytes.
        page_bytes: u64,
        /// Bytes behind such pages.
        backed_bytes: u64,
        /// Bytes of the mapping.
        mapped_bytes: u64,
    },
    /// Pages were never touched or are swapped out.
    #[error(
        "{absent} of {checked} pages looked at are not in memory: never touched, swapped out, or unmapped"
    )]
    NotTouched {
        /// Pages that are not there.
        absent: u64,
        /// Pages looked at.
        checked: u64,
    },
    /// The kernel tells neither way.
    #[error(
        "the node of memory cannot be proven: move_pages(2) gives {move_pages}, and /proc/self/numa_maps says nothing of it; for a container: --cap-add SYS_NICE or --security-opt seccomp=unconfined"
    )]
    CannotBeProven {
        /// What `move_pages` answered.
        move_pages: Errno,
    },
    /// The page size cannot be read.
    #[error(
        "the page size of memory cannot be proven: /proc/self/smaps has nothing of it ({reason})"
    )]
    NoSmaps {
        /// Why.
        reason: String,
    },
}

impl ProofError {
    /// The class of the error.
    #[must_use]
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::WrongNode { .. } | Self::NotTouched { .. } => ErrorClass::Failed,
            Self::WrongPageSize { .. } | Self::CannotBeProven { .. } | Self::NoSmaps { .. } => {
                ErrorClass::Lacking
            }
        }
    }
}

fn list(pages_per_node: &BTreeMap<NodeId, u64>) -> String {
    let items: Vec<String> =
        pages_per_node.iter().map(|(node, pages)| format!("{pages} on node {node}")).collect();
    items.join(", ")
}

fn hint(pages: Pages) -> &'static str {
    match pages {
        Pages::Transparent => {
            "; allow them (as root): echo madvise > /sys/kernel/mm/transparent_hugepage/enabled; memory may be fragmented: echo 1 > /proc/sys/vm/compact_memory"
        }
        _ => "",
    }
}

/// Proves that a mapping lies on `expected` and is made of the pages that it was asked
/// to be made of. Its pages must have been touched.
///
/// # Errors
/// [`ProofError::WrongNode`], [`ProofError::WrongPageSize`] and
/// [`ProofError::NotTouched`] if it is not so, [`ProofError::CannotBeProven`] and
/// [`ProofError::NoSmaps`] if the kernel does not tell.
pub fn prove(mapping: &Mapping, expected: NodeId) -> Result<Proof, ProofError> {
    prove_span(mapping.span(), expected)
}

/// [`prove`] for a mapping whose bytes are lent out. A span whose mapping is gone gives
/// an error.
///
/// # Errors
/// As [`prove`].
pub fn prove_span(span: Span, expected: NodeId) -> Result<Proof, ProofError> {
    prove_within(span, &NodeSet::from_iter([expected]))
}

/// [`prove_span`] for memory that may lie on several nodes, such as interleaved memory;
/// no nodes means that it may lie anywhere.
///
/// # Errors
/// As [`prove`].
pub fn prove_within(span: Span, expected: &NodeSet) -> Result<Proof, ProofError> {
    let page_bytes = page_size_bytes(span.pages);
    let mapped_bytes = span.mapped_bytes as u64;
    let bytes_per_page_size = prove_page_size(span, page_bytes)?;
    let pages_total = mapped_bytes.div_ceil(page_bytes);
    let found = match ask_move_pages(span, page_bytes, pages_total) {
        Ok(found) => found,
        Err(errno) => without_move_pages(span, expected, errno)?,
    };
    found.check(expected)?;
    Ok(Proof {
        method: found.method,
        address: span.address as u64,
        buffer_bytes: span.len_bytes as u64,
        pages_total,
        pages_checked: found.checked,
        pages_per_node: found.per_node,
        bytes_per_page_size,
    })
}

fn prove_page_size(span: Span, page_bytes: u64) -> Result<BTreeMap<u64, u64>, ProofError> {
    let mapped_bytes = span.mapped_bytes as u64;
    let text = Root::live()
        .document("proc/self/smaps")
        .map_err(|error| ProofError::NoSmaps { reason: error.to_string() })?;
    let huge_bytes = page_size_bytes(Pages::Transparent);
    let sizes = bytes_per_page_size(&text, span.address as u64, mapped_bytes, huge_bytes)
        .ok_or_else(|| ProofError::NoSmaps {
            reason: format!("no mapping at {:x}", span.address),
        })?;
    let backed_bytes = sizes.get(&page_bytes).copied().unwrap_or(0);
    let resident: u64 = sizes.values().sum();
    if resident < mapped_bytes {
        return Err(ProofError::NotTouched {
            absent: (mapped_bytes - resident).div_ceil(page_bytes),
            checked: mapped_bytes.div_ceil(page_bytes),
        });
    }
    if backed_bytes < least_backed(span.pages, mapped_bytes) {
        return Err(ProofError::WrongPageSize {
            pages: span.pages,
            page_bytes,
            backed_bytes,
            mapped_bytes,
        });
    }
    Ok(sizes)
}

/// Returns the bytes that must be behind pages of the size asked for. The kernel makes transparent
/// huge pages where it finds them free; the proof has the share for whoever judges the result.
fn least_backed(pages: Pages, mapped_bytes: u64) -> u64 {
    if pages == Pages::Transparent { 1 } else { mapped_bytes }
}

/// Where pages were found.
#[derive(Debug)]
struct Found {
    method: ProofMethod,
    checked: u64,
    absent: u64,
    per_node: BTreeMap<NodeId, u64>,
}

impl Found {
    fn check(&self, expected: &NodeSet) -> Result<(), ProofError> {
        if self.absent > 0 {
            return Err(ProofError::NotTouched { absent: self.absent, checked: self.checked });
        }
        let anywhere = expected.is_empty();
        let elsewhere =
            self.per_node.iter().filter(|(node, _)| !anywhere && !expected.contains(**node));
        let misplaced: u64 = elsewhere.map(|(_, pages)| pages).sum();
        if misplaced > 0 {
            return Err(ProofError::WrongNode {
                expected: expected.clone(),
                misplaced,
                checked: self.checked,
                pages_per_node: self.per_node.clone(),
            });
        }
        Ok(())
    }
}

/// Asks the kernel for the node of all pages, or of a sample of a large mapping.
fn ask_move_pages(span: Span, page_bytes: u64, pages_total: u64) -> Result<Found, Errno> {
    let checked = pages_total.min(MOST_PAGES);
    let mut found =
        Found { method: ProofMethod::MovePages, checked, absent: 0, per_node: BTreeMap::new() };
    let mut addresses = Vec::with_capacity(BATCH_PAGES);
    let mut status = [0_i32; BATCH_PAGES];
    for index in 0..checked {
        let page = sampled_page(index, checked, pages_total);
        let address = span.address as u64 + page * page_bytes;
        addresses.push(usize::try_from(address).unwrap_or(span.address));
        if addresses.len() == BATCH_PAGES || index + 1 == checked {
            page_nodes::own_pages(&addresses, &mut status)?;
            count(&status[..addresses.len()], &mut found);
            addresses.clear();
        }
    }
    Ok(found)
}

fn count(status: &[i32], found: &mut Found) {
    for &status in status {
        match u32::try_from(status) {
            Ok(node) => *found.per_node.entry(NodeId(node)).or_default() += 1,
            Err(_) => found.absent += 1,
        }
    }
}

/// The page that stands for part `index` of `parts` equal ones: a pseudo-random one
/// in it, so that memory interleaved at any stride does not look like one node's. With
/// as many parts as pages it is every page in turn.
fn sampled_page(index: u64, parts: u64, pages: u64) -> u64 {
    let boundary = |index: u64| {
        let position = u128::from(index) * u128::from(pages) / u128::from(parts);
        u64::try_from(position).unwrap_or(pages)
    };
    let (first, end) = (boundary(index), boundary(index + 1));
    // The multiplier is 2^64 divided by the golden ratio, which spreads the upper bits
    // evenly (Knuth, The Art of Computer Programming, section 6.4).
    let spread = index.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    first + spread % (end - first).max(1)
}

/// Pages per node of the mappings that begin within `address` and `address + length`. The
/// unit is the kernel's: base pages, or huge pages of a reserved pool.
fn pages_per_node(text: &str, address: u64, length: u64) -> BTreeMap<NodeId, u64> {
    let mut pages = BTreeMap::new();
    let within = |start: u64| start >= address && start - address < length;
    for mapping in numa_maps(text, base_page_bytes()).filter(|mapping| within(mapping.start)) {
        for (node, count) in mapping.pages_by_node {
            let sum: &mut u64 = pages.entry(node).or_default();
            *sum = sum.saturating_add(count);
        }
    }
    pages
}

/// The ways that are left where `move_pages` is forbidden.
fn without_move_pages(span: Span, expected: &NodeSet, errno: Errno) -> Result<Found, ProofError> {
    let text = Root::live().document("proc/self/numa_maps").unwrap_or_default();
    let (address, length) = (span.address as u64, span.mapped_bytes as u64);
    let per_node = pages_per_node(&text, address, length);
    if !per_node.is_empty() {
        return Ok(Found {
            method: ProofMethod::NumaMaps,
            checked: per_node.values().sum(),
            absent: 0,
            per_node,
        });
    }
    let pages = length.div_ceil(base_page_bytes());
    let only = expected.first().unwrap_or_default();
    if errno == Errno::NOSYS && expected.len() <= 1 && is_only_node(only) {
        return Ok(Found {
            method: ProofMethod::OnlyNode,
            checked: 0,
            absent: 0,
            per_node: BTreeMap::from([(only, pages)]),
        });
    }
    Err(ProofError::CannotBeProven { move_pages: errno })
}

#[cfg(test)]
mod tests;
