//! The reference loops in C, compiled and loaded when the bench runs.

use std::ffi::{CString, c_char, c_int, c_void};
use std::path::Path;
use std::process::Command;

unsafe extern "C" {
    fn dlopen(file: *const c_char, flags: c_int) -> *mut c_void;
    fn dlsym(library: *mut c_void, symbol: *const c_char) -> *mut c_void;
}

/// `RTLD_NOW` of <dlfcn.h>.
const RTLD_NOW: c_int = 2;

type Fill = unsafe extern "C" fn(*mut f64, usize);
type Copy = unsafe extern "C" fn(*mut f64, *const f64, usize);

/// The functions of `reference.c`.
pub struct Reference {
    pub chase: unsafe extern "C" fn(*mut c_void, u64) -> *mut c_void,
    pub read: unsafe extern "C" fn(*const f64, usize) -> f64,
    pub write: Fill,
    pub nt_write: Fill,
    pub copy: Copy,
    pub nt_copy: Copy,
    pub triad: unsafe extern "C" fn(*mut f64, *const f64, *const f64, usize),
    pub build_groups: unsafe extern "C" fn(*mut u8, usize, usize, usize) -> c_int,
    pub build_sattolo: unsafe extern "C" fn(*mut u8, usize, usize) -> c_int,
}

impl Reference {
    /// Compiles and loads the reference, or returns the reason why it is not possible.
    pub fn load() -> Result<Reference, String> {
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/peers/reference.c");
        let library = Path::new(env!("CARGO_TARGET_TMPDIR")).join("reference.so");
        let mut compiler = Command::new("cc");
        compiler.args(["-O3", "-march=native", "-shared", "-fPIC", source, "-o"]).arg(&library);
        let status = compiler.status().map_err(|error| format!("cc: {error}"))?;
        if !status.success() {
            return Err(format!("cc failed on {source}: {status}"));
        }
        let path = CString::new(library.to_string_lossy().as_bytes()).map_err(|e| e.to_string())?;
        // SAFETY: the library is our own, and has no initialisers.
        let handle = unsafe { dlopen(path.as_ptr(), RTLD_NOW) };
        if handle.is_null() {
            return Err(format!("cannot load {}", library.display()));
        }
        // SAFETY: each symbol has the signature in reference.c that its field declares.
        unsafe {
            Ok(Reference {
                chase: symbol(handle, c"reference_chase")?,
                read: symbol(handle, c"reference_read")?,
                write: symbol(handle, c"reference_write")?,
                nt_write: symbol(handle, c"reference_nt_write")?,
                copy: symbol(handle, c"reference_copy")?,
                nt_copy: symbol(handle, c"reference_nt_copy")?,
                triad: symbol(handle, c"reference_triad")?,
                build_groups: symbol(handle, c"reference_build_groups")?,
                build_sattolo: symbol(handle, c"reference_build_sattolo")?,
            })
        }
    }
}

/// # Safety
/// `F` must be a function pointer type that fits the symbol.
unsafe fn symbol<F>(library: *mut c_void, name: &std::ffi::CStr) -> Result<F, String> {
    // SAFETY: `library` came from `dlopen`, `name` ends in NUL.
    let address = unsafe { dlsym(library, name.as_ptr()) };
    if address.is_null() {
        return Err(format!("no {} in the reference", name.to_string_lossy()));
    }
    // SAFETY: the caller guarantees that `F` is a function pointer, which has a pointer's size.
    Ok(unsafe { std::mem::transmute_copy(&address) })
}
