//! Bindings for QEMU's plugin interface, versions 1 (QEMU 6.0 to 8.2) to 4 (9.2 and 10.0).
//!
//! Functions are looked up when the plugin is loaded, so that a missing one gives a message instead
//! of a failure of the dynamic linker. Signatures are those of `qemu-plugin.h`.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::sync::atomic::{AtomicI32, Ordering::Relaxed};

/// Identifies a loaded plugin (`qemu_plugin_id_t`).
pub type PluginId = u64;
/// Describes one access (`qemu_plugin_meminfo_t`).
pub type MemoryInfo = u32;
/// Callback without further arguments.
pub type Simple = extern "C" fn(PluginId);
/// Callback before a block is translated.
pub type Translate = unsafe extern "C" fn(PluginId, *mut c_void);
/// Callback when a block or an instruction is executed.
pub type Execute = unsafe extern "C" fn(c_uint, *mut c_void);
/// Callback after a memory access.
pub type Memory = unsafe extern "C" fn(c_uint, MemoryInfo, u64, *mut c_void);
/// Callback when a vCPU starts or stops.
pub type VcpuSimple = extern "C" fn(PluginId, c_uint);
/// Callback before a system call: its number and eight arguments.
pub type Syscall = extern "C" fn(PluginId, c_uint, i64, u64, u64, u64, u64, u64, u64, u64, u64);
/// Callback after a system call: its number and its return value.
pub type SyscallReturn = extern "C" fn(PluginId, c_uint, i64, i64);
/// Callback when QEMU exits.
pub type AtExit = extern "C" fn(PluginId, *mut c_void);

/// `QEMU_PLUGIN_CB_NO_REGS`.
pub const NO_REGISTERS: c_int = 0;
/// `QEMU_PLUGIN_MEM_RW`. QEMU 7.2 reports writes to a callback registered for reads only, and both
/// to one registered for writes only, so we register for both.
pub const READS_AND_WRITES: c_int = 3;
/// First version that is safe to reset. Older QEMUs (up to 7.2) may call callbacks that they have
/// freed: a helper that faults leaves a pointer to its callbacks behind, and once the next
/// translation has freed them QEMU aborts with `qemu_plugin_vcpu_mem_cb: code should not be
/// reached`.
pub const FORGETS_SAFELY: c_int = 2;
/// First version in which a block's vCPU index is a constant when vCPUs share a thread.
pub const INDEX_OF_TRANSLATOR: c_int = 2;
/// First version in which `qemu_plugin_insn_data` copies.
const DATA_IS_COPIED: c_int = 3;
/// log2 of the largest access, which is one cache line.
const MOST_SIZE_SHIFT: c_uint = 6;
/// The versions that we support.
const OLDEST: c_int = 1;
const NEWEST: c_int = 4;

/// `qemu_info_t`.
#[repr(C)]
#[derive(Debug)]
pub struct Info {
    /// The guest's architecture, for example `x86_64`.
    pub target_name: *const c_char,
    /// The oldest interface version that QEMU supports.
    pub version_least: c_int,
    /// The version that QEMU implements.
    pub version: c_int,
    /// True for a whole machine, false for QEMU's user mode.
    pub system_emulation: bool,
    /// Number of vCPUs at startup.
    pub vcpus: c_int,
    /// The maximum number of vCPUs, including hot-plugged ones.
    pub vcpus_most: c_int,
}

/// The version that the plugin requests; QEMU reads it as a C `int` right after loading.
#[unsafe(no_mangle)]
pub static qemu_plugin_version: AtomicI32 = AtomicI32::new(OLDEST);

/// Sets [`qemu_plugin_version`] before QEMU reads it, so that one file serves old and new QEMUs,
/// which reject each other's versions.
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

/// Returns the address of a symbol of QEMU's executable, or null.
pub fn symbol(name: &CStr) -> *mut c_void {
    // SAFETY: dlsym only reads the name, which is a C string.
    unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) }
}

/// Reason why QEMU's functions cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ApiError {
    /// QEMU's interface has no version that the plugin knows.
    #[error(
        "QEMU's plugin interface has versions {least} to {newest}: expected one of {OLDEST} to {NEWEST}"
    )]
    Version { least: c_int, newest: c_int },
    /// A function that this QEMU lacks.
    #[error("QEMU has no function `{}`; expected 7.2 or later, built with plugins", .0.to_string_lossy())]
    Missing(&'static CStr),
}

impl Info {
    /// Refuses a QEMU that supports none of the versions known here, since its functions may have
    /// other signatures. A newer QEMU that still accepts one of them keeps that version's
    /// signatures.
    fn check(&self) -> Result<(), ApiError> {
        let (least, newest) = (self.version_least, self.version);
        let known = least <= NEWEST && newest >= OLDEST && least <= newest;
        if known { Ok(()) } else { Err(ApiError::Version { least, newest }) }
    }
}

/// Returns the address of one of QEMU's functions.
fn function(name: &'static CStr) -> Result<*mut c_void, ApiError> {
    let address = symbol(name);
    if address.is_null() { Err(ApiError::Missing(name)) } else { Ok(address) }
}

type Lent = unsafe extern "C" fn(*const c_void) -> *const u8;
type Copied = unsafe extern "C" fn(*const c_void, *mut u8, usize) -> usize;

/// `qemu_plugin_insn_data`, with a signature that changed in version 3.
#[derive(Clone, Copy, Debug)]
enum InstructionData {
    /// Before version 3: returns a pointer to the bytes, valid during translation.
    Lent(Lent),
    /// Since version 3: copies the bytes into a buffer of the given size.
    Copied(Copied),
}

impl InstructionData {
    fn load(version: c_int) -> Result<Self, ApiError> {
        let address = function(c"qemu_plugin_insn_data")?;
        if version < DATA_IS_COPIED {
            // SAFETY: QEMU states its version (`Info::version`), and up to 2 the function has this
            // signature (`qemu-plugin.h`).
            return Ok(Self::Lent(unsafe { std::mem::transmute::<*mut c_void, Lent>(address) }));
        }
        // SAFETY: since version 3 the function has this signature.
        Ok(Self::Copied(unsafe { std::mem::transmute::<*mut c_void, Copied>(address) }))
    }
}

macro_rules! functions {
    ($($field:ident: $kind:ty = $name:literal,)*) => {
        /// QEMU's functions that the plugin calls.
        #[derive(Debug)]
        pub struct Api {
            $(#[doc = concat!("`", stringify!($name), "`")] pub $field: $kind,)*
            data: InstructionData,
            /// Version of the interface that QEMU implements.
            pub version: c_int,
        }

        impl Api {
            /// Looks up all functions of the QEMU with this description.
            ///
            /// # Errors
            /// [`ApiError`] if its interface is unknown, or for the first function that it lacks.
            pub fn load(info: &Info) -> Result<Self, ApiError> {
                info.check()?;
                $(
                    let address = function($name)?;
                    // SAFETY: the symbol is this function, which has this signature in all versions
                    // of the interface that `check` accepts.
                    let $field = unsafe { std::mem::transmute::<*mut c_void, $kind>(address) };
                )*
                let version = info.version;
                Ok(Self { $($field,)* data: InstructionData::load(version)?, version })
            }
        }
    };
}

/// QEMU's functions for following a program in user mode.
#[derive(Clone, Copy, Debug)]
pub struct ProgramCalls {
    /// `qemu_plugin_register_vcpu_exit_cb`.
    pub register_exit: unsafe extern "C" fn(PluginId, VcpuSimple),
    /// `qemu_plugin_register_vcpu_syscall_cb`.
    pub register_syscall: unsafe extern "C" fn(PluginId, Syscall),
    /// `qemu_plugin_register_vcpu_syscall_ret_cb`.
    pub register_return: unsafe extern "C" fn(PluginId, SyscallReturn),
}

impl ProgramCalls {
    /// Looks up the functions.
    ///
    /// # Errors
    /// [`ApiError::Missing`] for the first one that this QEMU lacks.
    pub fn load() -> Result<Self, ApiError> {
        let exit = function(c"qemu_plugin_register_vcpu_exit_cb")?;
        let syscall = function(c"qemu_plugin_register_vcpu_syscall_cb")?;
        let returned = function(c"qemu_plugin_register_vcpu_syscall_ret_cb")?;
        // SAFETY: the symbols are these functions, which have these signatures in all versions of
        // the interface.
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
    /// Returns the instruction's bytes (15 at most) and their number.
    ///
    /// # Safety
    /// `instruction` belongs to the block being translated.
    pub unsafe fn code(&self, instruction: *const c_void) -> ([u8; 15], usize) {
        let mut code = [0; 15];
        // SAFETY: the caller guarantees that the instruction is valid until translation ends.
        let size = unsafe { (self.instruction_size)(instruction) }.min(code.len());
        match self.data {
            // SAFETY: QEMU returns a pointer to all bytes of the instruction, at least `size`;
            // `code` has room for `size` and cannot overlap, as QEMU has no pointer to it.
            InstructionData::Lent(data) => unsafe {
                data(instruction).copy_to_nonoverlapping(code.as_mut_ptr(), size);
            },
            // SAFETY: QEMU copies at most `size` bytes, and `code` has room for `size`.
            InstructionData::Copied(data) => unsafe {
                data(instruction, code.as_mut_ptr(), size);
            },
        }
        (code, size)
    }

    /// Returns the size of an access in bytes.
    ///
    /// # Safety
    /// Must be called by the thread that makes the access, from its callback.
    pub unsafe fn size(&self, info: MemoryInfo) -> u8 {
        // SAFETY: guaranteed by the caller.
        1 << unsafe { (self.size_shift)(info) }.min(MOST_SIZE_SHIFT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_qemu_without_a_known_version_of_the_interface_is_refused() {
        let info = |version_least, version| Info {
            target_name: std::ptr::null(),
            version_least,
            version,
            system_emulation: true,
            vcpus: 1,
            vcpus_most: 1,
        };
        for (least, newest) in [(0, 1), (1, 4), (4, 4), (2, 9)] {
            assert!(info(least, newest).check().is_ok(), "{least} to {newest}");
        }
        for (least, newest) in [(5, 6), (0, 0), (-1, 0), (3, 2)] {
            let error = Api::load(&info(least, newest)).unwrap_err();
            assert!(matches!(error, ApiError::Version { .. }), "{error}");
        }
        // This test does not run inside QEMU.
        assert!(matches!(Api::load(&info(1, 4)), Err(ApiError::Missing(_))));
    }
}
