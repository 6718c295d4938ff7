//! QEMU's callbacks: instrumentation of translated blocks, and what runs with them.
//!
//! While nothing is counted, only markers and, in virtual time, waiting instructions are
//! instrumented, so a loaded plugin costs next to nothing. When counting starts or stops QEMU is
//! asked to flush its translations, and every block is translated again. A QEMU with an unsafe
//! flush ([`FORGETS_SAFELY`]) is asked only once, when counting first starts, and stays
//! instrumented afterwards.

use std::ffi::{c_uint, c_void};

use crate::api::{
    Api, Execute, FORGETS_SAFELY, Memory, MemoryInfo, NO_REGISTERS, PluginId, READS_AND_WRITES,
};
use crate::follow;
use crate::marker;
use crate::once::OncePerProcess;
use crate::plugin::Plugin;
use crate::program::{
    Block, Calling, Instruction, Program, is_call, is_cpuid, is_pause, is_return,
};
use crate::waiting::{WAITED_NS, is_wait};
use numalab_memory_model::counters::Kind;
use numalab_memory_model::engine::{Access, Active, By, Place};
use numalab_memory_model::gate::Change;
use numalab_memory_model::marker::Marker;
use numalab_memory_model::pipeline::flow::Flow as BlockFlow;

/// Registers the plugin's callbacks.
pub fn register(plugin: &Plugin) {
    let api = &plugin.api;
    // SAFETY: the id is ours, and the callbacks live as long as the plugin.
    unsafe {
        (api.register_translate)(plugin.id, translate);
        (api.register_at_exit)(plugin.id, at_exit, std::ptr::null_mut());
    }
}

/// Called when QEMU has flushed its translations and dropped our callbacks.
extern "C" fn forgotten(_: PluginId) {
    if let Some(plugin) = Plugin::get() {
        register(plugin);
    }
}

extern "C" fn at_exit(_: PluginId, _: *mut c_void) {
    static ENDS: OncePerProcess = OncePerProcess::new();
    if let Some(plugin) = Plugin::get() {
        // QEMU calls this on every thread that exits, and the first to return ends the process.
        ENDS.run(|| plugin.report());
    }
}

/// Called before a block is translated.
///
/// # Safety
/// `block` is the block that QEMU is translating.
unsafe extern "C" fn translate(_: PluginId, block: *mut c_void) {
    let Some(plugin) = Plugin::get() else { return };
    plugin.tell_vcpus_apart();
    let api = &plugin.api;
    let open = plugin.engine.gate.is_open() || keeps_counting(plugin);
    // SAFETY: by the caller's promise the block and its instructions are valid during this call, and
    // indices are below the instruction count. Callbacks get numbers, and what is never freed.
    unsafe {
        let count = (api.block_instructions)(block);
        let mut instructions: &[Instruction] = &[];
        if open {
            // Code costs a call per instruction to read, so it is read only where something uses
            // it.
            let is_looked_at = plugin.flows.is_some() || plugin.program.is_some();
            let code = if is_looked_at { code_of(plugin, block) } else { Vec::new() };
            let place = place_of(api, block, count);
            let flow = flow_through(plugin, &code, place);
            let (execute, data) = block_begins(plugin, (place, &code), (count, flow));
            (api.register_block)(block, execute, NO_REGISTERS, data);
            if let Some(program) = &plugin.program {
                instructions = followed(program, (place, &code), flow);
            }
        }
        for position in 0..count {
            let instruction = (api.block_instruction)(block, position);
            // Markers come first and always: they open a closed gate, and access no memory.
            if let Some(marker) = marker_at(plugin, instruction) {
                let marker = number(marker::number(marker));
                (api.register_instruction)(instruction, mark, NO_REGISTERS, marker);
            } else if !open && plugin.clock.is_some() && only_waits(api, instruction) {
                (api.register_instruction)(instruction, wait, NO_REGISTERS, number(0));
            } else if open {
                let (access, data): (Memory, _) = match instructions.get(position) {
                    Some(by) => (follows(by), std::ptr::from_ref(by).cast_mut().cast()),
                    None => (access, number(position)),
                };
                (api.register_memory)(instruction, access, NO_REGISTERS, READS_AND_WRITES, data);
            }
        }
    }
}

/// An instruction's bytes and their number.
type Code = ([u8; 15], usize);

/// Returns the code of a block.
///
/// # Safety
/// `block` is the block being translated.
unsafe fn code_of(plugin: &Plugin, block: *mut c_void) -> Vec<Code> {
    let api = &plugin.api;
    // SAFETY: the caller guarantees the block; indices are below its instruction count.
    unsafe {
        let all = 0..(api.block_instructions)(block);
        all.map(|at| api.code((api.block_instruction)(block, at))).collect()
    }
}

/// Returns the address range of a block of `count` instructions.
///
/// # Safety
/// `block` is the block being translated.
unsafe fn place_of(api: &Api, block: *const c_void, count: usize) -> Place {
    let Some(last) = count.checked_sub(1) else { return Place::default() };
    // SAFETY: the caller guarantees the block; both indices are below its instruction count.
    unsafe {
        let (first, last) =
            ((api.block_instruction)(block, 0), (api.block_instruction)(block, last));
        let end = (api.instruction_address)(last) + (api.instruction_size)(last) as u64;
        Place { address: (api.instruction_address)(first), end }
    }
}

/// Returns the data flow through a block, where cores are modelled.
fn flow_through(plugin: &Plugin, code: &[Code], at: Place) -> Option<&'static BlockFlow> {
    let flows = plugin.flows.as_ref()?;
    let code = code.iter().map(|(bytes, size)| &bytes[..*size]);
    Some(flows.through(code, (at.address, at.end)))
}

/// Chooses the callback for the start of a block, and its argument.
fn block_begins(
    plugin: &Plugin,
    (place, code): (Place, &[Code]),
    (count, flow): (usize, Option<&'static BlockFlow>),
) -> (Execute, *mut c_void) {
    let pauses = code.iter().any(|(bytes, size)| is_pause(&bytes[..*size]));
    let cpuids = code.iter().filter(|(bytes, size)| is_cpuid(&bytes[..*size])).count() as u64;
    let block = Block { instructions: count as u64, flow, place, pauses, cpuids };
    let (execute, kept): (Execute, _) = match (&plugin.program, &plugin.flows) {
        (Some(program), _) => {
            let is_served = program.is_new_code(place) || cpuids > 0;
            let execute = if is_served { follow::served_block } else { follow::block };
            (execute, program.blocks.keep(&[block]))
        }
        (None, Some(flows)) => (begin_block_of_flow, flows.blocks.keep(&[block])),
        (None, None) => return (begin_block, number(count)),
    };
    (execute, kept.as_ptr().cast_mut().cast())
}

/// Describes the instruction at a position of a block for the model.
fn by(flow: Option<&'static BlockFlow>, position: usize, count: usize) -> By {
    By {
        accessor: flow.and_then(|flow| flow.accessors.get(position)),
        behind: u32::try_from(count - position - 1).unwrap_or(u32::MAX),
    }
}

/// Decodes an instruction as a marker, if it is one.
///
/// # Safety
/// `instruction` belongs to the block being translated.
unsafe fn marker_at(plugin: &Plugin, instruction: *const c_void) -> Option<Marker> {
    let (api, target) = (&plugin.api, plugin.target?);
    // SAFETY: guaranteed by the caller.
    let (bytes, size) = unsafe {
        if (api.instruction_size)(instruction) != target.marker_bytes {
            return None;
        }
        api.code(instruction)
    };
    (target.marker)(&bytes[..size])
}

/// Returns the records that callbacks for the accesses of a program's block get, by instruction.
fn followed(
    program: &Program,
    (place, code): (Place, &[Code]),
    flow: Option<&'static BlockFlow>,
) -> &'static [Instruction] {
    let mut address = place.address;
    let instruction = |(position, (bytes, size)): (usize, &Code)| {
        let next = address + *size as u64;
        let calls = match (program.target.pushes_calls, &bytes[..*size]) {
            (true, code) if is_call(code) => Calling::Call(next),
            (true, code) if is_return(code) => Calling::Return,
            _ => Calling::Nothing,
        };
        let by = by(flow, position, code.len());
        let position = u32::try_from(position).unwrap_or(0);
        Instruction { position, by, address: std::mem::replace(&mut address, next), calls }
    };
    let all: Vec<Instruction> = code.iter().enumerate().map(instruction).collect();
    program.instructions.keep(&all)
}

/// Returns the callback for the accesses of an instruction.
fn follows(by: &Instruction) -> Memory {
    match by.calls {
        Calling::Nothing if !by.passes_caches(Kind::Store) => follow::plain_access,
        _ => follow::access,
    }
}

/// # Safety
/// The calling thread is running a vCPU, in its callback.
unsafe extern "C" fn begin_block(vcpu: c_uint, instructions: *mut c_void) {
    let Some(plugin) = Plugin::get() else { return };
    if plugin.engine.gate.is_open() {
        let vcpu = plugin.vcpu(vcpu);
        // SAFETY: guaranteed by the caller.
        plugin.step(unsafe { plugin.act(vcpu, |active| active.block(instructions as u64, None)) });
    }
}

/// # Safety
/// The calling thread is running a vCPU, in its callback; `block` is a [`Block`] that is never freed.
unsafe extern "C" fn begin_block_of_flow(vcpu: c_uint, block: *mut c_void) {
    let Some(plugin) = Plugin::get() else { return };
    if plugin.engine.gate.is_open() {
        // SAFETY: guaranteed by the caller: `translate` passed it.
        let block: &'static Block = unsafe { &*block.cast_const().cast() };
        let vcpu = plugin.vcpu(vcpu);
        let begin = |active: &mut Active<'_>| {
            active.branches(block.place, block.flow);
            active.block(block.instructions, block.flow)
        };
        // SAFETY: guaranteed by the caller.
        plugin.step(unsafe { plugin.act(vcpu, begin) });
    }
}

/// # Safety
/// The calling thread is making this access, in its callback.
unsafe extern "C" fn access(
    vcpu: c_uint,
    info: MemoryInfo,
    virtual_address: u64,
    position: *mut c_void,
) {
    let Some(plugin) = Plugin::get() else { return };
    if !plugin.engine.gate.is_open() {
        return;
    }
    let vcpu = plugin.vcpu(vcpu);
    if plugin.engine.skips(vcpu) {
        return;
    }
    let api = &plugin.api;
    // SAFETY: guaranteed by the caller.
    let (io, address, store, bytes) = unsafe {
        let hardware = (api.hwaddr)(info, virtual_address);
        if hardware.is_null() {
            return;
        }
        let io = (api.hwaddr_is_io)(hardware);
        (io, (api.hwaddr_physical)(hardware), (api.is_store)(info), api.size(info))
    };
    // QEMU reports the memory of a CXL device as I/O, too.
    if io && !plugin.engine.is_memory(address) {
        plugin.engine.io(vcpu);
        return;
    }
    plugin.watch_ranges(address);
    let kind = if store { Kind::Store } else { Kind::Load };
    let position = u32::try_from(position as usize).unwrap_or(0);
    let access = Access { address, virtual_address, kind, bytes, position, table: None };
    // SAFETY: guaranteed by the caller.
    let effect = unsafe { plugin.act(vcpu, |active| active.access(access).effect) };
    plugin.apply(vcpu, effect);
}

/// Returns true for an instruction with which a guest only waits.
///
/// # Safety
/// `instruction` belongs to the block being translated.
unsafe fn only_waits(api: &Api, instruction: *const c_void) -> bool {
    // SAFETY: guaranteed by the caller.
    let (bytes, size) = unsafe { api.code(instruction) };
    is_wait(&bytes[..size])
}

extern "C" fn wait(_: c_uint, _: *mut c_void) {
    let Some(plugin) = Plugin::get() else { return };
    if !plugin.engine.gate.is_open() {
        plugin.move_clock(WAITED_NS);
    }
}

/// Returns true if blocks stay instrumented for good: this QEMU's flush is unsafe, and was used
/// once.
fn keeps_counting(plugin: &Plugin) -> bool {
    plugin.api.version < FORGETS_SAFELY && plugin.engine.gate.was_open()
}

/// # Safety
/// The calling thread is running a vCPU, in its callback.
unsafe extern "C" fn mark(vcpu: c_uint, number: *mut c_void) {
    let Some(plugin) = Plugin::get() else { return };
    let Some(marker) = marker::from_number(number as usize) else { return };
    let keeps = keeps_counting(plugin);
    // SAFETY: guaranteed by the caller.
    let (vcpu, change) = unsafe { plugin.mark(vcpu, marker) };
    if matches!(change, Change::Opened | Change::Closed) {
        plugin.publish(None);
        if !keeps {
            // SAFETY: the id is ours; QEMU calls back when no vCPU runs.
            unsafe { (plugin.api.reset)(plugin.id, forgotten) };
        }
    }
    match marker {
        Marker::Report => plugin.report(),
        Marker::Publish => plugin.publish(Some(vcpu)),
        Marker::Begin | Marker::End => {}
        Marker::Phase(_) | Marker::NamedPhase | Marker::Letter(_) | Marker::HostPages(_) => {}
    }
}

/// Returns a number in the form of the pointer that QEMU keeps for a callback.
fn number(number: usize) -> *mut c_void {
    std::ptr::without_provenance_mut(number)
}
