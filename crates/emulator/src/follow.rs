//! QEMU's callbacks in user mode: a program's accesses, threads and system calls.

use std::ffi::{c_uint, c_void};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use numalab_memory_model::counters::Kind;

use crate::api::{Api, ApiError, MemoryInfo, PluginId, ProgramCalls};
use crate::plugin::Plugin;
use crate::program::{Block, Instruction, Made, Program};

/// Registers the callbacks for threads and system calls.
///
/// # Errors
/// [`ApiError::Missing`] if this QEMU lacks one.
pub fn register(id: PluginId, api: &Api) -> Result<(), ApiError> {
    let calls = ProgramCalls::load()?;
    // Relaxed: stored before any callback can run, and never changed.
    STORES.store(bits_of_stores(api), Relaxed);
    // SAFETY: the id is ours, and the callbacks live as long as the plugin.
    unsafe {
        (calls.register_exit)(id, thread_ends);
        (calls.register_syscall)(id, begins_call);
        (calls.register_return)(id, returns_from_call);
    }
    Ok(())
}

/// Sizes of accesses by QEMU's description of them; a call per access would cost more.
struct Sizes([AtomicU64; PLACES]);

/// Number of cached sizes, indexed by the lowest bits of their hash; a power of two.
const PLACES: usize = 64;
/// Set in a slot that is in use; QEMU's description of the access is above it.
const KNOWN: u64 = 1 << 16;

static SIZES: Sizes = Sizes([const { AtomicU64::new(0) }; PLACES]);
/// The bits of QEMU's descriptions that stores have.
static STORES: AtomicU32 = AtomicU32::new(0);

impl Sizes {
    /// Returns the size of an access in bytes.
    ///
    /// # Safety
    /// Must be called by the thread that makes the access, from its callback.
    #[inline]
    unsafe fn of(&self, api: &Api, info: MemoryInfo) -> u8 {
        let place = &self.0[(info ^ info >> 4 ^ info >> 16) as usize % PLACES];
        // Relaxed: description and size are in one word, so a thread sees both or neither; a store
        // that another thread overwrites only costs one more call.
        let mut said = place.load(Relaxed);
        if said & !(KNOWN - 1) != u64::from(info) << 32 | KNOWN {
            // SAFETY: guaranteed by the caller.
            said = u64::from(info) << 32 | KNOWN | u64::from(unsafe { api.size(info) });
            place.store(said, Relaxed);
        }
        let [bytes, ..] = said.to_le_bytes();
        bytes
    }
}

/// Returns the bits of QEMU's descriptions that stores have.
fn bits_of_stores(api: &Api) -> u32 {
    // SAFETY: the function looks only at its argument, in all versions of the interface.
    let is_set = |bit: &u32| unsafe { (api.is_store)(1 << bit) };
    (0..MemoryInfo::BITS).filter(is_set).fold(0, |all, bit| all | 1 << bit)
}

#[inline]
fn kind(info: MemoryInfo) -> Kind {
    if info & STORES.load(Relaxed) == 0 { Kind::Load } else { Kind::Store }
}

fn program() -> Option<(&'static Plugin, &'static Program)> {
    let plugin = Plugin::get()?;
    Some((plugin, plugin.program.as_ref()?))
}

/// Called when a thread enters a block.
///
/// # Safety
/// `block` is a [`Block`] that is never freed.
pub unsafe extern "C" fn block(index: c_uint, block: *mut c_void) {
    let Some((plugin, program)) = program() else { return };
    if plugin.engine.gate.is_open() {
        // SAFETY: guaranteed by the caller: `translate` passed it.
        let block: &'static Block = unsafe { &*block.cast_const().cast() };
        program.block(&plugin.engine, index, block);
    }
}

/// Called instead of [`block`] for the first block of a page, and for those with CPUID.
///
/// # Safety
/// As for [`block`].
pub unsafe extern "C" fn served_block(index: c_uint, of: *mut c_void) {
    // SAFETY: guaranteed by the caller.
    unsafe { block(index, of) };
    let Some((plugin, program)) = program() else { return };
    if plugin.engine.gate.is_open() {
        // SAFETY: guaranteed by the caller: `translate` passed it.
        program.is_served(index, unsafe { &*of.cast_const().cast() });
    }
}

/// Called when a thread accesses memory by an instruction that is neither a call nor a return, and
/// stores nothing past the caches.
///
/// # Safety
/// As for [`access`].
pub unsafe extern "C" fn plain_access(
    index: c_uint,
    info: MemoryInfo,
    address: u64,
    by: *mut c_void,
) {
    let Some((_, program)) = program() else { return };
    if !program.again(index, address, kind(info)) {
        // SAFETY: guaranteed by the caller.
        unsafe { access(index, info, address, by) };
    }
}

/// Called when a thread accesses memory.
///
/// # Safety
/// The calling thread is making this access, in its callback; `by` is an [`Instruction`] that is
/// never freed.
pub unsafe extern "C" fn access(index: c_uint, info: MemoryInfo, address: u64, by: *mut c_void) {
    let Some((plugin, program)) = program() else { return };
    // SAFETY: guaranteed by the caller: `translate` passed it.
    let by: &'static Instruction = unsafe { &*by.cast_const().cast() };
    // SAFETY: guaranteed by the caller.
    let bytes = unsafe { SIZES.of(&plugin.api, info) };
    let made = Made { address, bytes, kind: kind(info), by };
    if !program.access(index, &made) {
        program.access_farther(index, &made);
    }
}

extern "C" fn thread_ends(_: PluginId, index: c_uint) {
    if let Some((_, program)) = program() {
        program.thread_ends(index);
    }
}

extern "C" fn begins_call(
    _: PluginId,
    index: c_uint,
    number: i64,
    a: u64,
    b: u64,
    c: u64,
    d: u64,
    e: u64,
    f: u64,
    _: u64,
    _: u64,
) {
    let Some((plugin, program)) = program() else { return };
    let arguments = [a, b, c, d, e, f];
    if program.begins_call(&plugin.engine, index, number, arguments) {
        plugin.report();
        program.follow_execute(index, arguments);
    }
}

extern "C" fn returns_from_call(_: PluginId, index: c_uint, _: i64, value: i64) {
    if let Some((_, program)) = program() {
        program.returns_from_call(index, value);
    }
}
