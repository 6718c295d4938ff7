//! Anonymous memory of a chosen page size on a chosen node.

mod fresh;

use std::ffi::c_void;
use std::ptr::NonNull;

use numalab_record::Pages;
use numalab_topology::NodeId;
use rustix::io::Errno;
use rustix::mm::{self, Advice, MapFlags, MprotectFlags, ProtFlags};

use crate::cgroup::Charge;
use crate::huge_pool;
use crate::mapping_error::MappingError;
use crate::populate;
use crate::root::Root;
use crate::syscall;
use crate::system_page::{base_pages, is_reserved, page_size_bytes};

/// The address range of a mapping and the pages requested for it: enough to prove its placement
/// while its bytes are borrowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    pub address: usize,
    /// Bytes requested.
    pub len_bytes: usize,
    /// Bytes mapped: rounded up to whole pages.
    pub mapped_bytes: usize,
    pub pages: Pages,
}

/// Private anonymous memory, unmapped on drop.
///
/// Inaccessible pages surround base pages and transparent huge pages: an overrun ends the program,
/// and the kernel never merges the mapping with a neighbour, so that its entry in
/// `/proc/self/smaps` covers nothing else. Reserved huge pages have no such guards (each would take
/// a page of the pool); a neighbour from the same pool may follow them.
#[derive(Debug)]
pub struct Mapping {
    reservation: NonNull<c_void>,
    reservation_bytes: usize,
    start: NonNull<u8>,
    len_bytes: usize,
    mapped_bytes: usize,
    pages: Pages,
    node: Option<NodeId>,
}

// SAFETY: the memory belongs to the process, not to a thread, and a `Mapping` is its only
// owner: `&Mapping` only reads it, `&mut Mapping` excludes every other access.
unsafe impl Send for Mapping {}
// SAFETY: a shared reference gives only `&[u8]` of the memory, and numbers.
unsafe impl Sync for Mapping {}

/// Maps, binds and touches memory ([`Mapping::new`], [`Mapping::bind`], [`Mapping::populate`])
/// after checking that the node's pool has the huge pages.
///
/// # Errors
/// The errors of the three functions.
pub fn bound_and_touched(
    size_bytes: usize,
    pages: Pages,
    node: NodeId,
) -> Result<Mapping, MappingError> {
    let needed = (size_bytes as u64).div_ceil(page_size_bytes(pages));
    huge_pool::require(&Root::live(), pages, Some(node), needed)?;
    let mut mapping = Mapping::new(size_bytes, pages)?;
    mapping.bind(node)?;
    mapping.populate()?;
    Ok(mapping)
}

impl Mapping {
    /// Maps at least `size_bytes`, rounded up to whole pages of the requested size and aligned to
    /// them, and enables or disables transparent huge pages for the range. Touches nothing.
    ///
    /// # Errors
    /// [`MappingError::Size`] for 0 bytes or more than an address space,
    /// [`MappingError::NoHugePages`], [`MappingError::HugePagesLimited`] and
    /// [`MappingError::HugePagesUnsupported`] for reserved pages, [`MappingError::OutOfMemory`] and
    /// [`MappingError::Kernel`] for errors of the kernel.
    pub fn new(size_bytes: usize, pages: Pages) -> Result<Self, MappingError> {
        const ADDRESS_SPACE_BYTES: usize = 1 << 47;
        if size_bytes == 0 || size_bytes >= ADDRESS_SPACE_BYTES {
            return Err(MappingError::Size { size_bytes });
        }
        if is_reserved(pages) {
            Self::reserved(size_bytes, pages)
        } else {
            Self::ordinary(size_bytes, pages)
        }
    }

    /// Maps memory from the pool of huge pages.
    fn reserved(size_bytes: usize, pages: Pages) -> Result<Self, MappingError> {
        let page_bytes = granule(pages, size_bytes)?;
        let mapped_bytes = size_bytes.next_multiple_of(page_bytes);
        let needed = (mapped_bytes / page_bytes) as u64;
        huge_pool::require(&Root::live(), pages, None, needed)?;
        // There are two limits: `require` has checked the one on pages touched; this call may
        // exceed the one on pages mapped.
        huge_pool::within_limit(&Root::live(), pages, needed, Charge::Mapped)?;
        // The kernel takes the logarithm of the size in the upper bits of the flags.
        let size_flag = MapFlags::from_bits_retain(page_bytes.ilog2() << libc::MAP_HUGE_SHIFT);
        let flags = MapFlags::PRIVATE | MapFlags::HUGETLB | size_flag;
        let access = ProtFlags::READ | ProtFlags::WRITE;
        let reservation = map(mapped_bytes, access, flags)?;
        Ok(Self {
            reservation,
            reservation_bytes: mapped_bytes,
            start: reservation.cast(),
            len_bytes: size_bytes,
            mapped_bytes,
            pages,
            node: None,
        })
    }

    /// Maps base pages or transparent huge pages: reserves inaccessible memory and makes its
    /// aligned middle accessible.
    fn ordinary(size_bytes: usize, pages: Pages) -> Result<Self, MappingError> {
        let page_bytes = granule(pages, size_bytes)?;
        let guard_bytes = granule(base_pages(), size_bytes)?;
        let mapped_bytes = size_bytes.next_multiple_of(page_bytes);
        // Room for aligning the pages, and for a guard on each side.
        let reservation_bytes = mapped_bytes + page_bytes + 2 * guard_bytes;
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        let reservation = map(reservation_bytes, ProtFlags::empty(), flags)?;
        let first = reservation.addr().get() + guard_bytes;
        let offset = first.next_multiple_of(page_bytes) - reservation.addr().get();
        // SAFETY: `offset` is at most `guard_bytes + page_bytes`, so that `mapped_bytes`
        // and another guard still follow it within the reservation.
        let start = unsafe { reservation.cast::<u8>().add(offset) };
        // From here on, dropping the mapping unmaps the reservation.
        let mapping = Self {
            reservation,
            reservation_bytes,
            start,
            len_bytes: size_bytes,
            mapped_bytes,
            pages,
            node: None,
        };
        mapping.make_accessible()?;
        Ok(mapping)
    }

    fn make_accessible(&self) -> Result<(), MappingError> {
        let (start, length) = (self.start.as_ptr().cast(), self.mapped_bytes);
        let access = MprotectFlags::READ | MprotectFlags::WRITE;
        // SAFETY: the range is page-aligned, within this mapping's own reservation, and
        // there is no reference to it yet.
        unsafe { mm::mprotect(start, length, access) }
            .map_err(|errno| self.kernel_error("mprotect", errno))?;
        let advice = match self.pages {
            Pages::Transparent => Advice::LinuxHugepage,
            // With `transparent_hugepage/enabled` set to `always`, the kernel would make these
            // huge.
            _ => Advice::LinuxNoHugepage,
        };
        // SAFETY: within this mapping's own reservation; the page size does not affect the content.
        match unsafe { mm::madvise(start, length, advice) } {
            // EINVAL: a kernel without transparent huge pages does not know the advice. The proof
            // finds out whether the pages are those requested.
            Ok(()) | Err(Errno::INVAL) => Ok(()),
            Err(errno) => Err(self.kernel_error("madvise", errno)),
        }
    }

    /// Binds the memory to one node and reads the policy back. Pages touched before are moved
    /// there. On a machine with one node, a kernel that refuses to bind is accepted, since there is
    /// no other place.
    ///
    /// # Errors
    /// [`MappingError::NodeNotAllowed`] for a node that is absent, without memory or outside the
    /// cpuset, [`MappingError::BindForbidden`] for seccomp, [`MappingError::NoHugePages`] for too
    /// few huge pages on that node, [`MappingError::BindNotApplied`] if another policy is read
    /// back.
    pub fn bind(&mut self, node: NodeId) -> Result<(), MappingError> {
        match syscall::bind(self.start.addr().get(), self.mapped_bytes, node) {
            Ok(()) => self.check_policy(node)?,
            Err(Errno::PERM | Errno::NOSYS | Errno::ACCESS) if is_only_node(node) => {}
            Err(errno) => return Err(self.bind_error(node, errno)),
        }
        let needed = self.mapped_bytes as u64 / page_size_bytes(self.pages);
        huge_pool::require(&Root::live(), self.pages, Some(node), needed)?;
        self.node = Some(node);
        Ok(())
    }

    fn check_policy(&self, node: NodeId) -> Result<(), MappingError> {
        match syscall::policy_at(self.start.addr().get()) {
            Ok(policy) if policy.mode == libc::MPOL_BIND && policy.nodes == [node] => Ok(()),
            Ok(policy) => {
                Err(MappingError::BindNotApplied { node, mode: policy.mode, nodes: policy.nodes })
            }
            Err(errno) => Err(self.bind_error(node, errno)),
        }
    }

    fn bind_error(&self, node: NodeId, errno: Errno) -> MappingError {
        match errno {
            Errno::INVAL | Errno::NODEV => {
                MappingError::NodeNotAllowed { node, allowed: allowed_nodes() }
            }
            Errno::PERM | Errno::NOSYS | Errno::ACCESS => {
                MappingError::BindForbidden { node, errno }
            }
            Errno::NOMEM => self.out_of_memory(),
            errno => self.kernel_error("mbind", errno),
        }
    }

    /// Touches every page once, in address order, from the calling thread. Never ends in SIGBUS for
    /// lack of huge pages.
    ///
    /// # Errors
    /// [`MappingError::OutOfMemory`] or [`MappingError::NoHugePages`] if there is not enough,
    /// [`MappingError::Kernel`] for another error.
    pub fn populate(&mut self) -> Result<(), MappingError> {
        self.populate_while(|| true).map(drop)
    }

    /// Populates like [`Mapping::populate`] in pieces of 64 MiB (or one page if that is larger),
    /// asking `keep_going` before each. Returns false if it refused; the rest is then untouched.
    ///
    /// # Errors
    /// As [`Mapping::populate`].
    pub fn populate_while(
        &mut self,
        mut keep_going: impl FnMut() -> bool,
    ) -> Result<bool, MappingError> {
        let page_bytes = granule(self.pages, self.len_bytes)?;
        // In pieces, so that a large mapping can be abandoned midway.
        let piece_bytes = page_bytes.max(64 << 20);
        let mut offset = 0;
        while offset < self.mapped_bytes {
            if !keep_going() {
                return Ok(false);
            }
            let length = piece_bytes.min(self.mapped_bytes - offset);
            populate::range(&mut self.pages_mut()[offset..][..length])
                .map_err(|errno| self.populate_error(errno))?;
            offset += length;
        }
        if self.pages == Pages::Transparent {
            populate::collapse(self.pages_mut());
        }
        Ok(true)
    }

    fn pages_mut(&mut self) -> &mut [u8] {
        // SAFETY: 1. All `mapped_bytes` from `start` are mapped writable while `self` lives, and read as
        // 0 at first. 2. `&mut self` excludes every other access.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.mapped_bytes) }
    }

    fn populate_error(&self, errno: Errno) -> MappingError {
        let needed = self.mapped_bytes as u64 / page_size_bytes(self.pages);
        match errno {
            Errno::NOMEM => self.out_of_memory(),
            // EFAULT replaces the SIGBUS of a store: the pool has run out.
            Errno::FAULT => huge_pool::require(&Root::live(), self.pages, self.node, needed)
                .err()
                .unwrap_or_else(|| self.out_of_memory()),
            errno => self.kernel_error("madvise", errno),
        }
    }

    fn out_of_memory(&self) -> MappingError {
        MappingError::OutOfMemory { size_bytes: self.len_bytes, node: self.node }
    }

    fn kernel_error(&self, call: &'static str, errno: Errno) -> MappingError {
        let size_bytes = self.mapped_bytes;
        match errno {
            Errno::NOMEM => self.out_of_memory(),
            errno => MappingError::Kernel { call, size_bytes, errno },
        }
    }

    /// Returns the bytes requested.
    pub fn len_bytes(&self) -> usize {
        self.len_bytes
    }

    /// Returns the bytes mapped, rounded up to whole pages.
    pub fn mapped_bytes(&self) -> usize {
        self.mapped_bytes
    }

    /// Returns the pages requested.
    pub fn pages(&self) -> Pages {
        self.pages
    }

    pub fn address(&self) -> u64 {
        self.start.addr().get() as u64
    }

    /// Returns the address range and the pages requested.
    pub fn span(&self) -> Span {
        Span {
            address: self.start.addr().get(),
            len_bytes: self.len_bytes,
            mapped_bytes: self.mapped_bytes,
            pages: self.pages,
        }
    }

    /// Returns the bytes requested; they read as 0 where nothing was written.
    pub fn as_bytes(&self) -> &[u8] {
        // SAFETY: 1. `len_bytes` from `start` are mapped readable while `self` lives.
        // 2. Anonymous memory is initialised: it reads as 0. 3. `&self` excludes writers.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len_bytes) }
    }

    /// Returns the bytes requested, for writing.
    pub fn as_bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: 1. and 2. as in `as_bytes`, and the range is writable. 3. `&mut self`
        // excludes every other access.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len_bytes) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the reservation is this mapping's own, and no reference to it outlives
        // `self`. The call fails only for arguments that no mapping has.
        let _ = unsafe { mm::munmap(self.reservation.as_ptr(), self.reservation_bytes) };
    }
}

fn map(length: usize, access: ProtFlags, flags: MapFlags) -> Result<NonNull<c_void>, MappingError> {
    // SAFETY: without an address the kernel chooses one where nothing is mapped.
    let mapped = unsafe { mm::mmap_anonymous(std::ptr::null_mut(), length, access, flags) };
    let address = mapped.map_err(|errno| match errno {
        Errno::NOMEM => MappingError::OutOfMemory { size_bytes: length, node: None },
        errno => MappingError::Kernel { call: "mmap", size_bytes: length, errno },
    })?;
    NonNull::new(address).ok_or(MappingError::OutOfMemory { size_bytes: length, node: None })
}

/// Maps memory and unmaps it again without using it.
///
/// # Errors
/// [`MappingError::OutOfMemory`] and [`MappingError::Kernel`].
pub fn map_and_unmap(size_bytes: usize) -> Result<(), MappingError> {
    let access = ProtFlags::READ | ProtFlags::WRITE;
    let mapped = map(size_bytes, access, MapFlags::PRIVATE)?;
    // SAFETY: the mapping was made here, and nothing refers to it.
    unsafe { mm::munmap(mapped.as_ptr(), size_bytes) }.map_err(|errno| MappingError::Kernel {
        call: "munmap",
        size_bytes,
        errno,
    })
}

/// Returns the size of a requested page as a length.
fn granule(pages: Pages, size_bytes: usize) -> Result<usize, MappingError> {
    usize::try_from(page_size_bytes(pages)).map_err(|_| MappingError::Size { size_bytes })
}

/// Reports whether `node` is the machine's only node.
pub(crate) fn is_only_node(node: NodeId) -> bool {
    match Root::live().numbered("sys/devices/system/node", "node").as_slice() {
        [] => node == NodeId(0),
        [only] => *only == node.0,
        _ => false,
    }
}

/// Returns `Mems_allowed_list` of this process, for messages.
fn allowed_nodes() -> String {
    match crate::allowed::allowed_now() {
        Ok(allowed) => allowed.memory_nodes.to_string(),
        Err(_) => "unknown".to_owned(),
    }
}
