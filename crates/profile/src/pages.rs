//! Single pages: their first toucher, their users, and their node.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use numalab_record::Sharing;

/// Largest number of pages that are followed.
pub(crate) const MOST_PAGES: usize = 4 << 20;
/// A page is read-mostly if at most one in this number of its accesses is a store.
const READ_MOSTLY: u64 = 100;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Page {
    pub region: usize,
    /// Node of the page when it was last queried.
    pub node: Option<u32>,
    pub accesses: u64,
    /// Accesses from cpus of other nodes.
    pub remote: u64,
    /// Accesses known to be stores.
    pub stores: u64,
    /// Accesses that may be loads or stores.
    pub either: u64,
    /// The thread that used it first.
    user: Option<u32>,
    /// True if another thread used it too.
    has_several_users: bool,
    /// Accesses by the cpu's node; a list, since only a few nodes use a page.
    by_node: Vec<(u32, u64)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    Load,
    Store,
    /// A load or a store; the source does not say which.
    Either,
}

impl Page {
    pub(crate) fn used(&mut self, how: Use, thread: u32, cpu_node: u32) {
        self.accesses += 1;
        match how {
            Use::Load => {}
            Use::Store => self.stores += 1,
            Use::Either => self.either += 1,
        }
        match self.user {
            None => self.user = Some(thread),
            Some(user) if user != thread => self.has_several_users = true,
            Some(_) => {}
        }
        match self.by_node.iter_mut().find(|(node, _)| *node == cpu_node) {
            Some((_, count)) => *count += 1,
            None => self.by_node.push((cpu_node, 1)),
        }
    }

    /// Returns the node whose cpus use it most.
    pub(crate) fn main_node(&self) -> Option<u32> {
        self.by_node.iter().max_by_key(|(_, count)| *count).map(|(node, _)| *node)
    }

    pub(crate) fn sharing(&self) -> Sharing {
        match self.by_node.len() {
            _ if !self.has_several_users => Sharing::Private,
            ..=1 => Sharing::OneNode,
            _ if self.either > 0 => Sharing::Shared,
            _ if self.stores * READ_MOSTLY <= self.accesses => Sharing::Read,
            _ => Sharing::Written,
        }
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Pages {
    by_address: HashMap<u64, Page>,
    /// True if some pages were left out because there were too many.
    pub is_cut: bool,
}

impl Pages {
    /// Returns a page by its first address, new or known; `None` beyond the limit. Memory of
    /// another region at the same address is another page.
    pub(crate) fn page(&mut self, address: u64, region: usize) -> Option<(&mut Page, bool)> {
        let is_full = self.by_address.len() >= MOST_PAGES;
        match self.by_address.entry(address) {
            Entry::Occupied(entry) => {
                let page = entry.into_mut();
                let is_new = page.region != region;
                if is_new {
                    *page = Page { region, ..Page::default() };
                }
                Some((page, is_new))
            }
            Entry::Vacant(_) if is_full => {
                self.is_cut = true;
                None
            }
            Entry::Vacant(entry) => Some((entry.insert(Page { region, ..Page::default() }), true)),
        }
    }

    /// Returns the node of a page, if it was queried.
    pub(crate) fn node(&self, address: u64, region: usize) -> Option<u32> {
        self.by_address.get(&address).filter(|page| page.region == region)?.node
    }

    /// Returns every page with its first address.
    pub(crate) fn all(&self) -> impl Iterator<Item = (u64, &Page)> {
        self.by_address.iter().map(|(address, page)| (*address, page))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sharing_follows_from_threads_nodes_and_stores() {
        let page = |uses: &[(Use, u32, u32)]| {
            let mut page = Page::default();
            uses.iter().for_each(|(how, thread, node)| page.used(*how, *thread, *node));
            page
        };
        assert_eq!(page(&[(Use::Store, 1, 0), (Use::Load, 1, 1)]).sharing(), Sharing::Private);
        assert_eq!(page(&[(Use::Store, 1, 0), (Use::Load, 2, 0)]).sharing(), Sharing::OneNode);
        assert_eq!(page(&[(Use::Load, 1, 0), (Use::Load, 2, 1)]).sharing(), Sharing::Read);
        assert_eq!(page(&[(Use::Store, 1, 0), (Use::Load, 2, 1)]).sharing(), Sharing::Written);
        let shared = page(&[(Use::Either, 1, 0), (Use::Either, 2, 4), (Use::Either, 3, 4)]);
        assert_eq!((shared.sharing(), shared.main_node()), (Sharing::Shared, Some(4)));
    }

    #[test]
    fn a_page_of_other_memory_at_the_same_place_begins_anew() {
        let mut pages = Pages::default();
        let (page, is_new) = pages.page(0x1000, 0).unwrap();
        assert!(is_new);
        page.used(Use::Load, 1, 0);
        page.node = Some(1);
        assert!(!pages.page(0x1000, 0).unwrap().1);
        assert_eq!((pages.node(0x1000, 0), pages.node(0x1000, 3)), (Some(1), None));
        let (page, is_new) = pages.page(0x1000, 3).unwrap();
        assert!(is_new && page.accesses == 0 && page.node.is_none());
    }
}
