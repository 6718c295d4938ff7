//! QEMU's callbacks in user mode: a program's accesses, threads and system calls.

use std::ffi::{c_uint, c_void};

use numalab_memory_model::counters::Kind;

use crate::api::{MemoryInfo, MissingFunction, PluginId, ProgramCalls};
use crate::plugin::Plugin;
use crate::program::{Flow, Instruction, Made, Program, called, returned};

/// Tells QEMU what we want to be told of the program's threads and system calls.
///
/// # Errors
/// [`MissingFunction`] if this QEMU cannot.
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

/// A thread of the program accesses memory, by an instruction that lives for good.
pub extern "C" fn access(index: c_uint, info: MemoryInfo, address: u64, by: *mut c_void) {
    let Some((plugin, program)) = program() else { return };
    // SAFETY: `translate` passed an instruction that lives for good.
    let by: &'static Instruction = unsafe { &*by.cast_const().cast() };
    // SAFETY: the access is being made by this thread, as the functions ask.
    let (store, bytes) =
        unsafe { ((plugin.api.is_store)(info), 1_u64 << (plugin.api.size_shift)(info)) };
    match (by.flow, store) {
        (Flow::Call(returns_to), true) => called(address, returns_to),
        (Flow::Return, false) => returned(address),
        _ => {}
    }
    let place = program.place(&plugin.engine, index);
    if plugin.engine.skips(place) {
        return;
    }
    let kind = if store { Kind::Store } else { Kind::Load };
    let made = Made { address, bytes, kind, by };
    plugin.apply(place, program.access(&plugin.engine, place, made));
}

extern "C" fn thread_ends(_: PluginId, index: c_uint) {
    if let Some((plugin, program)) = program() {
        program.thread_ends(&plugin.engine, index);
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
        program.follow_execute(arguments);
    }
}

extern "C" fn returns_from_call(_: PluginId, index: c_uint, _: i64, value: i64) {
    if let Some((plugin, program)) = program() {
        program.returns_from_call(&plugin.engine, index, value);
    }
}
