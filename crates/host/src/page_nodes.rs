//! Nodes of single pages of any process.

use numalab_topology::NodeId;
use rustix::io::Errno;

use crate::error_class::{Classed, ErrorClass};
use crate::syscall;

/// Pages per system call.
const BATCH_PAGES: usize = 4096;

/// An error of `move_pages(2)`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("move_pages(2) on process {process}: {errno}{}", hint(*.errno))]
pub struct PageNodesError {
    pub process: u32,
    pub errno: Errno,
}

fn hint(errno: Errno) -> &'static str {
    match errno {
        Errno::PERM | Errno::ACCESS => "; run as root or as the user of that process",
        Errno::NOSYS => "; this kernel is built without CONFIG_MIGRATION or CONFIG_NUMA",
        _ => "",
    }
}

impl Classed for PageNodesError {
    fn class(&self) -> ErrorClass {
        match self.errno {
            Errno::SRCH => ErrorClass::BadInput,
            _ => ErrorClass::Lacking,
        }
    }
}

/// Returns the node of the page at each of these addresses of a process (`move_pages(2)` without
/// targets, which moves nothing); `None` for a page that is not in memory.
///
/// # Errors
/// [`PageNodesError`] if the process has ended or belongs to another user.
pub fn page_nodes(process: u32, addresses: &[u64]) -> Result<Vec<Option<NodeId>>, PageNodesError> {
    let failed = |errno| PageNodesError { process, errno };
    let number = libc::pid_t::try_from(process).map_err(|_| failed(Errno::SRCH))?;
    let mut nodes = Vec::with_capacity(addresses.len());
    for batch in addresses.chunks(BATCH_PAGES) {
        let pages: Result<Vec<usize>, _> = batch.iter().copied().map(usize::try_from).collect();
        let pages = pages.map_err(|_| failed(Errno::FAULT))?;
        let mut status = vec![0_i32; pages.len()];
        syscall::nodes_of_pages(number, &pages, &mut status).map_err(failed)?;
        nodes.extend(status.into_iter().map(|status| u32::try_from(status).ok().map(NodeId)));
    }
    Ok(nodes)
}

/// Number of times that pages which look absent are touched and queried again.
const MOST_TOUCHES: usize = 3;

/// Queries the pages of this process, which have been touched. Each status is a node or a negative
/// errno.
///
/// NUMA balancing marks pages to learn who uses them, and `move_pages(2)` reports a marked page as
/// absent (`-ENOENT`) until it is used again. Such pages are therefore touched and queried again.
pub(crate) fn own_pages(addresses: &[usize], status: &mut [i32]) -> Result<(), Errno> {
    settle(
        addresses,
        status,
        |addresses, status| syscall::nodes_of_pages(0, addresses, status),
        syscall::touch_page,
    )
}

fn settle(
    addresses: &[usize],
    status: &mut [i32],
    mut ask: impl FnMut(&[usize], &mut [i32]) -> Result<(), Errno>,
    mut touch: impl FnMut(usize),
) -> Result<(), Errno> {
    ask(addresses, status)?;
    for _ in 0..MOST_TOUCHES {
        let of_pages = addresses.iter().zip(status.iter()).enumerate();
        let absent: Vec<(usize, usize)> = of_pages
            .filter(|(_, (_, status))| **status < 0)
            .map(|(index, (address, _))| (index, *address))
            .collect();
        if absent.is_empty() {
            break;
        }
        let again: Vec<usize> = absent.iter().map(|(_, address)| *address).collect();
        again.iter().copied().for_each(&mut touch);
        let mut found = vec![0_i32; again.len()];
        ask(&again, &mut found)?;
        for ((index, _), found) in absent.into_iter().zip(found) {
            status[index] = found;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::collections::BTreeMap;

    use super::*;

    const ABSENT: i32 = -libc::ENOENT;

    /// Queries pages of a fake kernel in which each page has this number of marks.
    fn settled(marks: &[(usize, u32)]) -> Vec<i32> {
        let kernel: RefCell<BTreeMap<usize, u32>> = RefCell::new(marks.iter().copied().collect());
        let addresses: Vec<usize> = marks.iter().map(|(address, _)| *address).collect();
        let mut status = vec![0; addresses.len()];
        let ask = |addresses: &[usize], status: &mut [i32]| {
            for (address, status) in addresses.iter().zip(status) {
                *status = if kernel.borrow()[address] > 0 { ABSENT } else { 1 };
            }
            Ok(())
        };
        let touch = |address: usize| {
            let mut kernel = kernel.borrow_mut();
            let marks = kernel.get_mut(&address).unwrap();
            *marks = marks.saturating_sub(1);
        };
        settle(&addresses, &mut status, ask, touch).unwrap();
        status
    }

    #[test]
    fn a_page_that_balancing_marked_is_touched_and_queried_again() {
        assert_eq!(settled(&[(4096, 0), (8192, 1), (12288, 2)]), [1, 1, 1]);
    }

    #[test]
    fn a_page_that_stays_absent_is_reported_after_a_few_attempts() {
        assert_eq!(settled(&[(4096, 0), (8192, u32::MAX)]), [1, ABSENT]);
    }

    #[test]
    fn an_address_without_memory_is_absent_and_does_not_crash() {
        let touched = Box::new([1_u8; 4096]);
        let addresses = [std::ptr::from_ref(&touched[0]) as usize, 8];
        let mut status = [0; 2];
        match own_pages(&addresses, &mut status) {
            Ok(()) => assert!(status[0] >= 0 && status[1] < 0, "{status:?}"),
            // Some containers forbid the call.
            Err(errno) => assert!(matches!(errno, Errno::PERM | Errno::NOSYS), "{errno}"),
        }
    }

    #[test]
    fn a_touched_page_has_a_node_and_an_unmapped_one_has_none() {
        let touched = Box::new([1_u8; 4096]);
        let address = touched.as_ptr() as u64;
        // Some containers forbid the call; the error must then say so.
        match page_nodes(std::process::id(), &[address, 8]) {
            Ok(nodes) => {
                assert!(nodes[0].is_some(), "{nodes:?}");
                assert_eq!(nodes[1], None);
            }
            Err(error) => assert!(error.to_string().contains("move_pages(2)"), "{error}"),
        }
    }

    #[test]
    fn a_missing_process_is_bad_input() {
        let error = page_nodes(u32::MAX, &[8]).unwrap_err();
        assert_eq!(error.class(), ErrorClass::BadInput);
        assert!(error.to_string().contains("4294967295"), "{error}");
    }
}
