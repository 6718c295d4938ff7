//! System calls that rustix does not have.

use std::mem::MaybeUninit;
use std::os::fd::BorrowedFd;
use std::ptr::null_mut;

use numalab_topology::{CpuId, CpuSet, NodeId, NodeSet};
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use rustix::param::page_size;

const WORD_BITS: usize = usize::BITS as usize;

/// Words of a node mask: 1,024 nodes, the most that Linux can be built for (`NODES_SHIFT` is at
/// most 10).
const NODE_WORDS: usize = 1024 / WORD_BITS;

/// `mbind` and `get_mempolicy` expect one more than the number of bits.
const MAX_NODE: usize = NODE_WORDS * WORD_BITS + 1;

// `linux/mempolicy.h`; the libc crate has the modes as ints and not the flags.
const MPOL_BIND: libc::c_ulong = 2;
const MPOL_MF_STRICT: libc::c_uint = 1;
const MPOL_MF_MOVE: libc::c_uint = 2;
const MPOL_F_ADDR: libc::c_ulong = 2;

/// Words of a cpu mask: [`numalab_topology::MAX_ID`] + 1 cpus, eight times the most that Linux can
/// be built for.
const CPU_WORDS: usize = 65_536 / WORD_BITS;

/// A memory policy as returned by `get_mempolicy(2)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Policy {
    pub(crate) mode: i32,
    pub(crate) nodes: Vec<NodeId>,
}

fn check(result: libc::c_long) -> Result<libc::c_long, Errno> {
    if result >= 0 {
        return Ok(result);
    }
    // SAFETY: `__errno_location` always returns the calling thread's valid errno.
    Err(Errno::from_raw_os_error(unsafe { *libc::__errno_location() }))
}

/// Returns the resource usage of the children that were waited for (`getrusage(2)`).
pub(crate) fn children_usage() -> libc::rusage {
    usage(libc::RUSAGE_CHILDREN)
}

/// Returns the resource usage of the calling thread (`getrusage(2)` with `RUSAGE_THREAD`).
pub(crate) fn thread_usage() -> libc::rusage {
    usage(libc::RUSAGE_THREAD)
}

fn usage(whose: libc::c_int) -> libc::rusage {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: 1. `usage` is valid for a write of one `rusage`. 2. All bytes zero is a value
    // of it, so it is one even if the call failed, which with these arguments it cannot.
    unsafe {
        libc::getrusage(whose, usage.as_mut_ptr());
        usage.assume_init()
    }
}

/// Binds a page-aligned range of this process to one node with `mbind(2)`: `MPOL_BIND`, moving
/// pages that exist. Nodes beyond 1,023 give `EINVAL`.
pub(crate) fn bind(address: usize, length: usize, node: NodeId) -> Result<(), Errno> {
    let node = node.0 as usize;
    let mut mask = [0_usize; NODE_WORDS];
    let word = mask.get_mut(node / WORD_BITS).ok_or(Errno::INVAL)?;
    *word = 1 << (node % WORD_BITS);
    // SAFETY: 1. The kernel only reads `mask`, which has `MAX_NODE - 1` bits. 2. A policy and a move
    // of pages change no byte that the program sees. 3. Every argument that it takes as a long is
    // one: of an int the upper half of the register would be undefined.
    check(unsafe {
        libc::syscall(
            libc::SYS_mbind,
            address,
            length,
            MPOL_BIND,
            mask.as_ptr(),
            MAX_NODE,
            MPOL_MF_STRICT | MPOL_MF_MOVE,
        )
    })
    .map(drop)
}

/// Returns a byte for each page of a part of a file; bit 0 is set if the page cache has the page
/// (`mincore(2)`).
pub(crate) fn pages_cached(
    file: BorrowedFd<'_>,
    offset: u64,
    bytes: usize,
) -> Result<Vec<u8>, Errno> {
    let mut pages = vec![0_u8; bytes.div_ceil(page_size())];
    // SAFETY: 1. A new mapping at an address of the kernel's choice, which no Rust value uses.
    // 2. It is never accessed, so a file that shrinks in the meantime cannot raise SIGBUS.
    let address =
        unsafe { mmap(null_mut(), bytes, ProtFlags::READ, MapFlags::SHARED, file, offset) }?;
    // SAFETY: `pages` has one byte for each page of the mapping, as mincore(2) writes.
    let found =
        check(libc::c_long::from(unsafe { libc::mincore(address, bytes, pages.as_mut_ptr()) }));
    // SAFETY: the mapping was made above with this length, and nothing refers to it.
    unsafe { munmap(address, bytes) }?;
    found.map(|_| pages)
}

/// An ELF note (elf(5)), which linkers put among the first bytes of a program.
#[repr(C)]
struct Note {
    name_bytes: u32,
    text_bytes: u32,
    kind: u32,
    name: [u8; 8],
    text: [u8; 12],
}

/// Names the library that makes the same calls: where the emulator runs programs on this kernel, it
/// answers the calls of programs with that name among their first bytes.
#[used]
// SAFETY: the section has only notes, and this is one.
#[unsafe(link_section = ".note.numalab")]
static CALLS: Note =
    Note { name_bytes: 8, text_bytes: 11, kind: 1, name: *b"numalab\0", text: *b"libnuma.so\0\0" };

/// Returns the policy of the mapping at `address` (`get_mempolicy(2)`).
pub(crate) fn policy_at(address: usize) -> Result<Policy, Errno> {
    get_policy(address, MPOL_F_ADDR)
}

/// Returns the policy of the calling thread (`get_mempolicy(2)`).
pub(crate) fn own_policy() -> Result<Policy, Errno> {
    get_policy(0, 0)
}

fn get_policy(address: usize, flags: libc::c_ulong) -> Result<Policy, Errno> {
    let mut mode: libc::c_int = 0;
    let mut mask = [0_usize; NODE_WORDS];
    // SAFETY: the kernel writes one int to `mode` and `MAX_NODE - 1` bits to `mask`,
    // which is as long; the address is only looked up, and without flags not used.
    check(unsafe {
        libc::syscall(
            libc::SYS_get_mempolicy,
            &raw mut mode,
            mask.as_mut_ptr(),
            MAX_NODE,
            address,
            flags,
        )
    })?;
    let nodes = bits(&mask).map(NodeId).collect();
    Ok(Policy { mode, nodes })
}

/// Sets the policy of the calling thread (`set_mempolicy(2)`). Nodes beyond 1,023 give `EINVAL`.
pub(crate) fn set_own_policy(mode: i32, nodes: &NodeSet) -> Result<(), Errno> {
    let mut mask = [0_usize; NODE_WORDS];
    for node in nodes.iter() {
        let node = node.0 as usize;
        *mask.get_mut(node / WORD_BITS).ok_or(Errno::INVAL)? |= 1 << (node % WORD_BITS);
    }
    let (mask, length) =
        if nodes.is_empty() { (std::ptr::null(), 0) } else { (mask.as_ptr(), MAX_NODE) };
    // SAFETY: the kernel only reads the mask, which is null or has `MAX_NODE - 1` bits.
    check(unsafe { libc::syscall(libc::SYS_set_mempolicy, mode, mask, length) }).map(drop)
}

/// Queries the node of the page at each address of a process with `move_pages(2)` without targets;
/// process 0 is the calling one. A status is a node, or a negative errno.
pub(crate) fn nodes_of_pages(
    process: libc::pid_t,
    addresses: &[usize],
    status: &mut [i32],
) -> Result<(), Errno> {
    let count = addresses.len().min(status.len());
    // SAFETY: the kernel reads `count` addresses and writes `count` ints, and both slices are at
    // least that long; without target nodes nothing moves.
    check(unsafe {
        libc::syscall(
            libc::SYS_move_pages,
            process,
            count,
            addresses.as_ptr(),
            std::ptr::null::<libc::c_int>(),
            status.as_mut_ptr(),
            0,
        )
    })
    .map(drop)
}

/// Reads a byte of this process's own memory through the kernel, which counts as a use of a page
/// marked by NUMA balancing. An address without memory is ignored, where a plain load would be
/// SIGSEGV.
pub(crate) fn touch_page(address: usize) {
    let mut byte = 0_u8;
    let local = libc::iovec { iov_base: (&raw mut byte).cast(), iov_len: 1 };
    let remote = libc::iovec { iov_base: address as *mut libc::c_void, iov_len: 1 };
    // SAFETY: the kernel writes at most the one byte that `local` describes, and checks
    // the address in `remote` as that of any other process.
    unsafe { libc::process_vm_readv(libc::getpid(), &raw const local, 1, &raw const remote, 1, 0) };
}

/// Returns the cpu time of a process, by the clock id that clock_getcpuclockid(3) derives from its
/// number.
pub(crate) fn cpu_time(process: u32) -> Option<rustix::time::Timespec> {
    /// The clock of a process's cpu time (`CPUCLOCK_SCHED`, `linux/posix-timers.h`).
    const SCHEDULED: libc::clockid_t = 2;
    // The kernel's largest number is 2^22. Shifted, 2^29 would be the calling process.
    let process = libc::clockid_t::try_from(process).ok().filter(|number| *number < 1 << 28)?;
    let clock = !process << 3 | SCHEDULED;
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes one `timespec` to a valid place, or fails.
    check(unsafe { libc::clock_gettime(clock, &raw mut time) }.into()).ok()?;
    Some(rustix::time::Timespec { tv_sec: time.tv_sec, tv_nsec: time.tv_nsec })
}

/// Returns the affinity of a thread; 0 is the calling one.
pub(crate) fn affinity(thread: u32) -> Result<CpuSet, Errno> {
    let mut mask = vec![0_usize; CPU_WORDS];
    // SAFETY: the kernel writes at most the length given, which is that of `mask`.
    check(unsafe {
        libc::syscall(
            libc::SYS_sched_getaffinity,
            thread,
            size_of_val(mask.as_slice()),
            mask.as_mut_ptr(),
        )
    })?;
    Ok(bits(&mask).map(CpuId).collect())
}

/// Sets the affinity of a thread, 0 for the calling one. Cpus beyond 65,535 give `EINVAL`.
pub(crate) fn set_affinity(thread: u32, cpus: &CpuSet) -> Result<(), Errno> {
    let mut mask = vec![0_usize; CPU_WORDS];
    for cpu in cpus.iter() {
        let cpu = cpu.0 as usize;
        let word = mask.get_mut(cpu / WORD_BITS).ok_or(Errno::INVAL)?;
        *word |= 1 << (cpu % WORD_BITS);
    }
    // SAFETY: the kernel only reads `mask`, with its length in bytes given.
    check(unsafe {
        libc::syscall(
            libc::SYS_sched_setaffinity,
            thread,
            size_of_val(mask.as_slice()),
            mask.as_ptr(),
        )
    })
    .map(drop)
}

/// Returns the cpu and node that the calling thread runs on now (`getcpu(2)`).
pub(crate) fn cpu_and_node() -> (CpuId, NodeId) {
    let (mut cpu, mut node) = (0_u32, 0_u32);
    // SAFETY: the kernel writes one unsigned int each to `cpu` and `node`; the third argument is
    // unused.
    let result = check(unsafe {
        libc::syscall(libc::SYS_getcpu, &raw mut cpu, &raw mut node, std::ptr::null::<u8>())
    });
    debug_assert_eq!(result, Ok(0), "getcpu only fails for bad pointers");
    (CpuId(cpu), NodeId(node))
}

/// Returns the cpu that the calling thread runs on now, without a system call if the C library
/// supports that.
pub(crate) fn cpu() -> CpuId {
    // SAFETY: takes nothing and has no preconditions.
    let cpu = unsafe { libc::sched_getcpu() };
    CpuId(u32::try_from(cpu).unwrap_or_else(|_| cpu_and_node().0.0))
}

/// Returns the positions of the bits that are set.
fn bits(mask: &[usize]) -> impl Iterator<Item = u32> + '_ {
    (0_u32..).zip(mask).flat_map(|(word_index, &word)| {
        (0..usize::BITS)
            .filter(move |bit| word & (1 << bit) != 0)
            .map(move |bit| word_index * usize::BITS + bit)
    })
}
