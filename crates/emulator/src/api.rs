//! QEMU's plugin interface, declared by us: versions 1 (QEMU 6.0 to 8.2) to 4 (9.2 and 10.0).
//!
//! Functions are looked up when the plugin is loaded, so that a missing one is a message
//! and not a failure of the dynamic linker. Signatures are those of `qemu-plugin.h`.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::sync::atomic::{AtomicI32, Ordering::Relaxed};

/// QEMU's name for a loaded plugin.
pub type PluginId = u64;
/// What QEMU tells of an access (`qemu_plugin_meminfo_t`).
pub type MemoryInfo = u32;
/// Called when something happened to the plugin.
pub type Simple = extern "C" fn(PluginId);
/// Called before a block is translated.
pub type Translate = extern "C" fn(PluginId, *mut c_void);
/// Called when a block or an instruction is executed.
pub type Execute = extern "C" fn(c_uint, *mut c_void);
/// Called when memory was accessed.
pub type Memory = extern "C" fn(c_uint, MemoryInfo, u64, *mut c_void);
/// Called when a vCPU begins or ends.
pub type VcpuSimple = extern "C" fn(PluginId, c_uint);
/// Called before a system call of a program: its number and eight arguments.
pub type Syscall = extern "C" fn(PluginId, c_uint, i64, u64, u64, u64, u64, u64, u64, u64, u64);
/// Called behind it: its number and what it gave.
pub type SyscallReturn = extern "C" fn(PluginId, c_uint, i64, i64);
/// Called when QEMU ends.
pub type AtExit = extern "C" fn(PluginId, *mut c_void);

/// `QEMU_PLUGIN_CB_NO_REGS`.
pub const NO_REGISTERS: c_int = 0;
/// `QEMU_PLUGIN_MEM_RW`. QEMU 7.2 tells who asks for reads alone of writes, and who asks for writes
/// alone of both.
pub const READS_AND_WRITES: c_int = 3;
/// Before this version QEMU (up to 7.2) may call what it has forgotten: a helper that faulted
/// leaves a pointer to its callbacks behind, and with the next translation freed them it ends
/// in `qemu_plugin_vcpu_mem_cb: code should not be reached`.
pub const FORGETS_SAFELY: c_int = 2;
/// Since this version a vCPU's index is a constant of the block where vCPUs take turns.
pub const INDEX_OF_TRANSLATOR: c_int = 2;
/// Since this version `qemu_plugin_insn_data` copies.
const DATA_IS_COPIED: c_int = 3;
/// No access is of more than a line.
const MOST_SIZE_SHIFT: c_uint = 6;
/// The interface that we know.
const NEWEST: c_int = 4;

/// `qemu_info_t`.
#[repr(C)]
#[derive(Debug)]
pub struct Info {
    /// The guest's architecture, such as `x86_64`.
    pub target_name: *const c_char,
    /// The oldest version that QEMU serves.
    pub version_least: c_int,
    /// Its own version.
    pub version: c_int,
    /// A whole machine, not a program.
    pub system_emulation: bool,
    /// vCPUs at the start.
    pub vcpus: c_int,
    /// vCPUs with those to be plugged in.
    pub vcpus_most: c_int,
}

/// The version that the plugin asks for: read by QEMU as a C `int` as soon as it is loaded.
#[unsafe(no_mangle)]
pub static qemu_plugin_version: AtomicI32 = AtomicI32::new(1);

/// Runs before QEMU reads [`qemu_plugin_version`]: one file serves old and new QEMU, which
/// do not accept each other's.
#[used]
#[unsafe(link_section = ".init_array")]
static ASK_FOR_VERSION: extern "C" fn() = {
    extern "C" fn ask() {
        if !symbol(c"qemu_plugin_scoreboard_new").is_null() {
            qemu_plugin_version.store(NEWEST, Relaxed);
        }
    }
    ask
};

/// Address of a symbol of QEMU's program; null if it has none of that name.
pub fn symbol(name: &CStr) -> *mut c_void {
    // SAFETY: dlsym only reads the name, which is a C string.
    unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) }
}

/// A function of QEMU's that is not there.
#[derive(Debug, thiserror::Error)]
#[error("this program has no function `{}`; expected QEMU 7.2 or later, built with plugins", name.to_string_lossy())]
pub struct MissingFunction {
    name: &'static CStr,
}

/// Address of a function of QEMU's program.
fn function(name: &'static CStr) -> Result<*mut c_void, MissingFunction> {
    let address = symbol(name);
    if address.is_null() { Err(MissingFunction { name }) } else { Ok(address) }
}

type Lent = unsafe extern "C" fn(*const c_void) -> *const u8;
type Copied = unsafe extern "C" fn(*const c_void, *mut u8, usize) -> usize;

/// `qemu_plugin_insn_data`, whose signature changed.
#[derive(Clone, Copy, Debug)]
enum InstructionData {
    /// Before version 3: gives a pointer to the bytes, valid during the translation.
    Lent(Lent),
    /// Since version 3: copies as many bytes as there is room for.
    Copied(Copied),
}

impl InstructionData {
    fn load(version: c_int) -> Result<Self, MissingFunction> {
        let address = function(c"qemu_plugin_insn_data")?;
        if version < DATA_IS_COPIED {
            // SAFETY: QEMU says which version it serves (`Info::version`), and up to 2 the function's
            // signature is this one (`qemu-plugin.h`).
            return Ok(Self::Lent(unsafe { std::mem::transmute::<*mut c_void, Lent>(address) }));
        }
        // SAFETY: since version 3 its signature is this one.
        Ok(Self::Copied(unsafe { std::mem::transmute::<*mut c_void, Copied>(address) }))
    }
}

macro_rules! functions {
    ($($field:ident: $kind:ty = $name:literal,)*) => {
        /// The functions of QEMU that the plugin calls.
        #[derive(Debug)]
        pub struct Api {
            $(#[doc = concat!("`", stringify!($name), "`")] pub $field: $kind,)*
            data: InstructionData,
            /// Version of the interface that QEMU serves.
            pub version: c_int,
        }

        impl Api {
            /// Looks all of them up in a QEMU of this version of the interface.
            ///
            /// # Errors
            /// [`MissingFunction`] if one is not there.
            pub fn load(version: c_int) -> Result<Self, MissingFunction> {
                $(
                    let address = function($name)?;
                    // SAFETY: the symbol is this function, of this signature in all
                    // versions of the interface that `entry` accepts.
                    let $field = unsafe { std::mem::transmute::<*mut c_void, $kind>(address) };
                )*
                Ok(Self { $($field,)* data: InstructionData::load(version)?, version })
            }
        }
    };
}

/// The functions by which a plugin follows a program in QEMU's user mode.
#[derive(Clone, Copy, Debug)]
pub struct ProgramCalls {
    /// `qemu_plugin_register_vcpu_exit_cb`
    pub register_exit: unsafe extern "C" fn(PluginId, VcpuSimple),
    /// `qemu_plugin_register_vcpu_syscall_cb`
    pub register_syscall: unsafe extern "C" fn(PluginId, Syscall),
    /// `qemu_plugin_register_vcpu_syscall_ret_cb`
    pub register_return: unsafe extern "C" fn(PluginId, SyscallReturn),
}

impl ProgramCalls {
    /// Looks them up.
    ///
    /// # Errors
    /// [`MissingFunction`] if one is not there.
    pub fn load() -> Result<Self, MissingFunction> {
        let exit = function(c"qemu_plugin_register_vcpu_exit_cb")?;
        let syscall = function(c"qemu_plugin_register_vcpu_syscall_cb")?;
        let returned = function(c"qemu_plugin_register_vcpu_syscall_ret_cb")?;
        // SAFETY: the symbols are these functions, of these signatures in all versions of the
        // interface.
        unsafe {
            Ok(Self {
                register_exit: std::mem::transmute::<
                    *mut c_void,
                    unsafe extern "C" fn(PluginId, VcpuSimple),
                >(exit),
                register_syscall: std::mem::transmute::<
                    *mut c_void,
                    unsafe extern "C" fn(PluginId, Syscall),
                >(syscall),
                register_return: std::mem::transmute::<
                    *mut c_void,
                    unsafe extern "C" fn(PluginId, SyscallReturn),
                >(returned),
            })
        }
    }
}

functions! {
    register_translate: unsafe extern "C" fn(PluginId, Translate) = c"qemu_plugin_register_vcpu_tb_trans_cb",
    register_at_exit: unsafe extern "C" fn(PluginId, AtExit, *mut c_void) = c"qemu_plugin_register_atexit_cb",
    reset: unsafe extern "C" fn(PluginId, Simple) = c"qemu_plugin_reset",
    register_block: unsafe extern "C" fn(*mut c_void, Execute, c_int, *mut c_void) = c"qemu_plugin_register_vcpu_tb_exec_cb",
    register_instruction: unsafe extern "C" fn(*mut c_void, Execute, c_int, *mut c_void) = c"qemu_plugin_register_vcpu_insn_exec_cb",
    register_memory: unsafe extern "C" fn(*mut c_void, Memory, c_int, c_int, *mut c_void) = c"qemu_plugin_register_vcpu_mem_cb",
    block_instructions: unsafe extern "C" fn(*const c_void) -> usize = c"qemu_plugin_tb_n_insns",
    block_instruction: unsafe extern "C" fn(*const c_void, usize) -> *mut c_void = c"qemu_plugin_tb_get_insn",
    instruction_size: unsafe extern "C" fn(*const c_void) -> usize = c"qemu_plugin_insn_size",
    instruction_address: unsafe extern "C" fn(*const c_void) -> u64 = c"qemu_plugin_insn_vaddr",
    size_shift: unsafe extern "C" fn(MemoryInfo) -> c_uint = c"qemu_plugin_mem_size_shift",
    hwaddr: unsafe extern "C" fn(MemoryInfo, u64) -> *const c_void = c"qemu_plugin_get_hwaddr",
    hwaddr_is_io: unsafe extern "C" fn(*const c_void) -> bool = c"qemu_plugin_hwaddr_is_io",
    hwaddr_physical: unsafe extern "C" fn(*const c_void) -> u64 = c"qemu_plugin_hwaddr_phys_addr",
    is_store: unsafe extern "C" fn(MemoryInfo) -> bool = c"qemu_plugin_mem_is_store",
}

impl Api {
    /// The instruction's bytes, up to the 15 that one may have, and how many it has.
    ///
    /// # Safety
    /// `instruction` is one of the block that is being translated.
    pub unsafe fn code(&self, instruction: *const c_void) -> ([u8; 15], usize) {
        let mut code = [0; 15];
        // SAFETY: by the caller's word QEMU has the instruction until the translation ends.
        let size = unsafe { (self.instruction_size)(instruction) }.min(code.len());
        match self.data {
            // SAFETY: QEMU gives a pointer to as many bytes as it says that the instruction has, which
            // are `size` or more; `code` has room for `size`, and QEMU does not know where it is.
            InstructionData::Lent(data) => unsafe {
                data(instruction).copy_to_nonoverlapping(code.as_mut_ptr(), size);
            },
            // SAFETY: QEMU copies the least of `size` and what the instruction has, and `code` has room
            // for `size`.
            InstructionData::Copied(data) => unsafe {
                data(instruction, code.as_mut_ptr(), size);
            },
        }
        (code, size)
    }

    /// How many bytes an access is of.
    ///
    /// # Safety
    /// The access is being made by this thread.
    pub unsafe fn size(&self, info: MemoryInfo) -> u8 {
        // SAFETY: the caller vouches for it.
        1 << unsafe { (self.size_shift)(info) }.min(MOST_SIZE_SHIFT)
    }

    /// The instruction's bytes, if it has exactly `N` of them.
    ///
    /// # Safety
    /// `instruction` is one of the block that is being translated.
    pub unsafe fn bytes<const N: usize>(&self, instruction: *const c_void) -> Option<[u8; N]> {
        // SAFETY: the caller vouches for the instruction.
        if unsafe { (self.instruction_size)(instruction) } != N {
            return None;
        }
        match self.data {
            // SAFETY: QEMU gives a pointer to as many bytes as it says that the instruction has: `N`.
            InstructionData::Lent(data) => Some(unsafe {
                let bytes = data(instruction);
                bytes.cast::<[u8; N]>().read_unaligned()
            }),
            InstructionData::Copied(data) => {
                let mut bytes = [0; N];
                // SAFETY: QEMU copies `N` bytes at most, for which there is room.
                let copied = unsafe { data(instruction, bytes.as_mut_ptr(), N) };
                (copied == N).then_some(bytes)
            }
        }
    }
}
