//! Proves on which nodes memory is and which pages it consists of.

use std::collections::BTreeMap;

use numalab_record::{Pages, ProofMethod};
use numalab_topology::{NodeId, NodeSet};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::error_class::{Classed, ErrorClass};
use crate::mapping::{Mapping, Span, is_only_node};
use crate::page_nodes;
use crate::proc::{bytes_per_page_size, numa_maps};
use crate::root::Root;
use crate::system_page::{base_page_bytes, page_size_bytes, transparent_huge_page_mode};

/// Largest number of pages that are queried: all of 256 MiB in pages of 4 KiB, which takes about 10
/// ms. From a larger mapping this number is sampled, one from each equal part.
const MOST_PAGES: u64 = 65_536;

/// Pages per system call.
const BATCH_PAGES: usize = 4096;

/// The pages found in a mapping.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Proof {
    /// The source of the nodes.
    pub method: ProofMethod,
    /// The mapping's first address.
    pub address: u64,
    /// Bytes requested.
    pub buffer_bytes: u64,
    pub pages_total: u64,
    /// Pages that were queried; a sample in a large mapping.
    pub pages_checked: u64,
    pub pages_per_node: BTreeMap<NodeId, u64>,
    pub bytes_per_page_size: BTreeMap<u64, u64>,
}

impl Proof {
    /// Checks that memory with any mix of page sizes has at least one page of this kind.
    ///
    /// # Errors
    /// [`ProofError::WrongPageSize`] if it has none.
    pub fn has_pages(&self, pages: Pages) -> Result<(), ProofError> {
        let page_bytes = page_size_bytes(pages);
        let backed_bytes = self.bytes_per_page_size.get(&page_bytes).copied().unwrap_or(0);
        if backed_bytes > 0 {
            return Ok(());
        }
        let mapped_bytes = self.bytes_per_page_size.values().sum();
        Err(ProofError::WrongPageSize { pages, page_bytes, backed_bytes, mapped_bytes })
    }
}

/// Reason why a placement is not proven.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProofError {
    #[error("{misplaced} of {checked} pages checked are not on node {expected}: {}", list(.pages_per_node))]
    WrongNode {
        expected: NodeSet,
        /// Pages on other nodes.
        misplaced: u64,
        /// Pages queried.
        checked: u64,
        pages_per_node: BTreeMap<NodeId, u64>,
    },
    /// The memory does not consist of the pages requested; for transparent huge pages, the kernel
    /// provides none to any memory.
    #[error("{pages} requested, but only {backed_bytes} of {mapped_bytes} bytes are in pages \
             of {page_bytes} bytes{}", hint(*.pages))]
    WrongPageSize { pages: Pages, page_bytes: u64, backed_bytes: u64, mapped_bytes: u64 },
    #[error(
        "{absent} of {checked} pages checked are not resident: never touched, swapped out, or \
         unmapped"
    )]
    NotTouched {
        /// Pages that are not in memory.
        absent: u64,
        /// Pages queried.
        checked: u64,
    },
    #[error(
        "the node of memory cannot be proven: move_pages(2) gives {move_pages}, and \
         /proc/self/numa_maps does not list it; for a container: --cap-add SYS_NICE or \
         --security-opt seccomp=unconfined"
    )]
    CannotBeProven {
        /// The error of `move_pages`.
        move_pages: Errno,
    },
    #[error(
        "the page size of memory cannot be proven: /proc/self/smaps does not list it ({reason}); for \
         a container: mount /proc (mount -t proc proc /proc)"
    )]
    NoSmaps { reason: String },
}

impl Classed for ProofError {
    fn class(&self) -> ErrorClass {
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
        Pages::Sized(_) => "",
    }
}

/// Proves that a mapping is on the node `expected` and consists of the pages requested. Its pages
/// must have been touched.
///
/// # Errors
/// [`ProofError::WrongNode`], [`ProofError::WrongPageSize`] and [`ProofError::NotTouched`] if that
/// is not so, [`ProofError::CannotBeProven`] and [`ProofError::NoSmaps`] if the kernel does not
/// report it.
pub fn prove(mapping: &Mapping, expected: NodeId) -> Result<Proof, ProofError> {
    prove_span(mapping.span(), expected)
}

/// Proves a mapping like [`prove`] while its bytes are borrowed. A span of a mapping that has been
/// unmapped is an error.
///
/// # Errors
/// As [`prove`].
pub fn prove_span(span: Span, expected: NodeId) -> Result<Proof, ProofError> {
    prove_within(span, &NodeSet::from_iter([expected]))
}

/// Proves memory that may be on several nodes, such as interleaved memory; an empty set allows any
/// node.
///
/// # Errors
/// As [`prove`].
pub fn prove_within(span: Span, expected: &NodeSet) -> Result<Proof, ProofError> {
    let page_bytes = page_size_bytes(span.pages);
    let mapped_bytes = span.mapped_bytes as u64;
    // Page sizes first: they also show pages that were never touched.
    let bytes_per_page_size = prove_page_size(span, page_bytes)?;
    // If some huge pages are missing, the small pages in their place are queried one by one.
    let page_bytes = bytes_per_page_size.keys().next().copied().unwrap_or(page_bytes);
    let pages_total = mapped_bytes.div_ceil(page_bytes);
    // numa_maps is only the fallback: it gives totals of a mapping, not of single pages.
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
    // Checked first, because pages that were not touched have no size yet.
    if resident < mapped_bytes {
        return Err(ProofError::NotTouched {
            absent: (mapped_bytes - resident).div_ceil(page_bytes),
            checked: mapped_bytes.div_ceil(page_bytes),
        });
    }
    if backed_bytes < least_backed(span.pages, mapped_bytes, &Root::live()) {
        return Err(ProofError::WrongPageSize {
            pages: span.pages,
            page_bytes,
            backed_bytes,
            mapped_bytes,
        });
    }
    Ok(sizes)
}

/// Returns the bytes that must be in pages of the size requested. Where the kernel allows
/// transparent huge pages, it makes them only from free ones, and fragmented memory has none;
/// the proof records their share for the analysis.
fn least_backed(pages: Pages, mapped_bytes: u64, root: &Root) -> u64 {
    let are_allowed = || transparent_huge_page_mode(root).is_some_and(|mode| mode != "never");
    match pages {
        Pages::Transparent if are_allowed() => 0,
        Pages::Transparent => 1,
        Pages::Sized(_) => mapped_bytes,
    }
}

#[derive(Debug)]
struct PagesFound {
    method: ProofMethod,
    checked: u64,
    absent: u64,
    per_node: BTreeMap<NodeId, u64>,
}

impl PagesFound {
    fn check(&self, expected: &NodeSet) -> Result<(), ProofError> {
        if self.absent > 0 {
            return Err(ProofError::NotTouched { absent: self.absent, checked: self.checked });
        }
        // An empty set is the claim that any node is right.
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

/// Queries the node of all pages, or of a sample of a large mapping.
fn ask_move_pages(span: Span, page_bytes: u64, pages_total: u64) -> Result<PagesFound, Errno> {
    let checked = pages_total.min(MOST_PAGES);
    let mut found = PagesFound {
        method: ProofMethod::MovePages,
        checked,
        absent: 0,
        per_node: BTreeMap::new(),
    };
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

fn count(status: &[i32], found: &mut PagesFound) {
    for &status in status {
        match u32::try_from(status) {
            Ok(node) => *found.per_node.entry(NodeId(node)).or_default() += 1,
            // A negated error number: ENOENT for a page that was never touched.
            Err(_) => found.absent += 1,
        }
    }
}

/// Returns the page that represents part `index` of `parts` equal ones: a pseudo-random one, so
/// that memory interleaved at any stride does not look like that of one node. If there are as many
/// parts as pages, it is every page in turn.
fn sampled_page(index: u64, parts: u64, pages: u64) -> u64 {
    let boundary = |index: u64| {
        let position = u128::from(index) * u128::from(pages) / u128::from(parts);
        u64::try_from(position).unwrap_or(pages)
    };
    let (first, end) = (boundary(index), boundary(index + 1));
    // 2^64 divided by the golden ratio spreads the upper bits evenly (Knuth, The Art of Computer
    // Programming, section 6.4).
    let spread = index.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    first + spread % (end - first).max(1)
}

/// Returns the pages per node of the mappings that begin between `address` and `address + length`.
/// The unit is the kernel's: base pages, or huge pages of a reserved pool.
fn pages_per_node(text: &str, address: u64, length: u64) -> BTreeMap<NodeId, u64> {
    let mut pages = BTreeMap::new();
    let within = |start: u64| start >= address && start - address < length;
    for mapping in numa_maps(text).filter(|mapping| within(mapping.start)) {
        for (node, count) in mapping.pages_by_node {
            let sum: &mut u64 = pages.entry(node).or_default();
            *sum = sum.saturating_add(count);
        }
    }
    pages
}

/// Proves the nodes without `move_pages`, from `numa_maps` or because there is only one node.
fn without_move_pages(
    span: Span,
    expected: &NodeSet,
    errno: Errno,
) -> Result<PagesFound, ProofError> {
    let text = Root::live().document("proc/self/numa_maps").unwrap_or_default();
    let (address, length) = (span.address as u64, span.mapped_bytes as u64);
    let per_node = pages_per_node(&text, address, length);
    if !per_node.is_empty() {
        return Ok(PagesFound {
            method: ProofMethod::NumaMaps,
            checked: per_node.values().sum(),
            absent: 0,
            per_node,
        });
    }
    let pages = length.div_ceil(base_page_bytes());
    let only = expected.first().unwrap_or_default();
    if errno == Errno::NOSYS && expected.len() <= 1 && is_only_node(only) {
        return Ok(PagesFound {
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
