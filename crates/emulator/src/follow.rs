//! QEMU's callbacks in user mode: a program's accesses, threads and system calls.

use std::ffi::{c_uint, c_void};

use numalab_memory_model::counters::Kind;

use crate::api::{MemoryInfo, MissingFunction, PluginId, ProgramCalls};
use crate::plugin::Plugin;
use crate::program::{Block, Instruction, Made, Program};

/// Registers the callbacks for threads and system calls.
///
/// # Errors
/// [`MissingFunction`] if this QEMU lacks one.
pub fn register(id: PluginId) -> Result<(), MissingFunction> {
    let calls = ProgramCalls::load()?;
    // SAFETY: the id is ours, and the callbacks live as long as the plugin.
    unsafe {
        (calls.register_exit)(id, thread_ends);
        (calls.register_syscall)(id, begins_call);
        (calls.register_return)(id, returns_from_call);
    }
    Ok(())
}

fn program() -> Option<(&'static Plugin, &'static Program)> {
    let plugin = Plugin::get()?;
    Some((plugin, plugin.program.as_ref()?))
}

/// Called when a thread enters a block, which is never freed.
pub extern "C" fn block(index: c_uint, block: *mut c_void) {
    let Some((plugin, program)) = program() else { return };
    if plugin.engine.gate.is_open() {
        // SAFETY: `translate` passed a block that is never freed.
        let block: &'static Block = unsafe { &*block.cast_const().cast() };
        program.block(&plugin.engine, index, block);
    }
}

/// Called when a thread accesses memory, with the instruction, which is never freed.
pub extern "C" fn access(index: c_uint, info: MemoryInfo, address: u64, by: *mut c_void) {
    let Some((plugin, program)) = program() else { return };
    // SAFETY: `translate` passed an instruction that is never freed.
    let by: &'static Instruction = unsafe { &*by.cast_const().cast() };
    // SAFETY: this thread is making the access.
    let kind = if unsafe { (plugin.api.is_store)(info) } { Kind::Store } else { Kind::Load };
    // SAFETY: this thread is making the access.
    let bytes = unsafe { plugin.api.size(info) };
    let made = Made { address, bytes, kind, by };
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
