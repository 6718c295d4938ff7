//! The functions of an MPI library, by the type of its handles.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::mem::ManuallyDrop;

use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_NOW};

use super::MpiError;

/// The longest version text of any library (MPICH's `MPI_MAX_LIBRARY_VERSION_STRING`).
const LONGEST_VERSION: usize = 8192;
/// MPICH's numbers (`mpi.h`, fixed by its ABI).
const MPICH_COMM_WORLD: c_int = 0x4400_0000;
const MPICH_BYTE: c_int = 0x4c00_010d;
const MPICH_INT: c_int = 0x4c00_0405;

/// A library that is loaded for good.
pub(super) struct Loaded {
    name: String,
    library: ManuallyDrop<Library>,
}

/// Loads the first library that is there.
pub(super) fn load(names: &[&str]) -> Result<Loaded, MpiError> {
    if cfg!(target_feature = "crt-static") {
        return Err(MpiError::Static);
    }
    let mut last = String::new();
    for name in names {
        // SAFETY: the initialisers of a library that calls itself MPI's run: that is what the
        // user asked for. Open MPI's plugins need its symbols to be global.
        match unsafe { Library::open(Some(*name), RTLD_NOW | RTLD_GLOBAL) } {
            Ok(library) => {
                return Ok(Loaded {
                    name: (*name).to_owned(),
                    library: ManuallyDrop::new(library),
                });
            }
            Err(error) => last = error.to_string(),
        }
    }
    Err(MpiError::NotFound { tried: format!("{} ({last})", names.join(", ")) })
}

impl Loaded {
    /// The address of a constant.
    fn constant(&self, name: &str) -> Option<*mut c_void> {
        // SAFETY: an address may be known, whatever is there.
        unsafe { self.library.get::<*mut c_void>(name) }.ok().map(|symbol| *symbol)
    }
}

/// What a library's constants are.
#[derive(Clone, Copy)]
pub(super) struct Handles<H> {
    world: H,
    byte: H,
    int: H,
}

impl Handles<*mut c_void> {
    /// Open MPI's, if the library is one.
    pub fn find(loaded: &Loaded) -> Option<Self> {
        Some(Self {
            world: loaded.constant("ompi_mpi_comm_world")?,
            byte: loaded.constant("ompi_mpi_byte")?,
            int: loaded.constant("ompi_mpi_int")?,
        })
    }
}

impl Handles<c_int> {
    pub const fn mpich() -> Self {
        Self { world: MPICH_COMM_WORLD, byte: MPICH_BYTE, int: MPICH_INT }
    }
}

type AllGather<H> =
    unsafe extern "C" fn(*const c_void, c_int, H, *mut c_void, c_int, H, H) -> c_int;
type AllGatherV<H> = unsafe extern "C" fn(
    *const c_void,
    c_int,
    H,
    *mut c_void,
    *const c_int,
    *const c_int,
    H,
    H,
) -> c_int;
type AskVersion = unsafe extern "C" fn(*mut c_char, *mut c_int) -> c_int;
type Init = unsafe extern "C" fn(*mut c_int, *mut *mut *mut c_char) -> c_int;
type Finalize = unsafe extern "C" fn() -> c_int;
type Wait<H> = unsafe extern "C" fn(H) -> c_int;
type Abort<H> = unsafe extern "C" fn(H, c_int) -> c_int;
type Ask<H> = unsafe extern "C" fn(H, *mut c_int) -> c_int;

/// The functions, for handles of type `H`.
pub(super) struct Calls<H> {
    handles: Handles<H>,
    library_version: AskVersion,
    init: Init,
    finalize: Finalize,
    rank: Ask<H>,
    size: Ask<H>,
    barrier: Wait<H>,
    all_gather: AllGather<H>,
    all_gather_v: AllGatherV<H>,
    abort: Abort<H>,
}

fn done(call: &'static str, code: c_int) -> Result<(), MpiError> {
    if code == 0 { Ok(()) } else { Err(MpiError::Call { call, code }) }
}

fn length(bytes: usize) -> Result<c_int, MpiError> {
    c_int::try_from(bytes).map_err(|_| MpiError::TooLong { bytes })
}

impl<H: Copy> Calls<H> {
    pub fn find(loaded: &Loaded, handles: Handles<H>) -> Result<Self, MpiError> {
        macro_rules! function {
            ($name:literal as $kind:ty) => {{
                let lacking = |_| MpiError::NoSymbol {
                    library: loaded.name.clone(),
                    symbol: $name.to_owned(),
                };
                // SAFETY: 1. the library is never closed. 2. The MPI standard fixes the
                // function's type but for the handles, whose type was told by the library's
                // own symbols.
                *unsafe { loaded.library.get::<$kind>($name) }.map_err(lacking)?
            }};
        }
        Ok(Self {
            handles,
            library_version: function!("MPI_Get_library_version" as AskVersion),
            init: function!("MPI_Init" as Init),
            finalize: function!("MPI_Finalize" as Finalize),
            rank: function!("MPI_Comm_rank" as Ask<H>),
            size: function!("MPI_Comm_size" as Ask<H>),
            barrier: function!("MPI_Barrier" as Wait<H>),
            all_gather: function!("MPI_Allgather" as AllGather<H>),
            all_gather_v: function!("MPI_Allgatherv" as AllGatherV<H>),
            abort: function!("MPI_Abort" as Abort<H>),
        })
    }

    /// What the library says of itself; allowed before `MPI_Init`.
    pub fn library_version(&self) -> Result<String, MpiError> {
        let mut text = vec![0_u8; LONGEST_VERSION + 1];
        let mut length = 0;
        // SAFETY: the text is longer than any library's, and ends in zeros.
        let code = unsafe { (self.library_version)(text.as_mut_ptr().cast(), &raw mut length) };
        done("MPI_Get_library_version", code)?;
        let text = CStr::from_bytes_until_nul(&text).unwrap_or_default();
        Ok(text.to_string_lossy().into_owned())
    }

    pub fn init(&self) -> Result<(), MpiError> {
        // SAFETY: null arguments are allowed since MPI-2.
        done("MPI_Init", unsafe { (self.init)(std::ptr::null_mut(), std::ptr::null_mut()) })
    }

    pub fn finalize(&self) -> Result<(), MpiError> {
        // SAFETY: MPI is initialised, and `Mpi::finalize` calls it once, last.
        done("MPI_Finalize", unsafe { (self.finalize)() })
    }

    pub fn rank_and_size(&self) -> Result<(usize, usize), MpiError> {
        let (mut rank, mut size) = (0, 0);
        // SAFETY: MPI is initialised; one int is written.
        done("MPI_Comm_rank", unsafe { (self.rank)(self.handles.world, &raw mut rank) })?;
        // SAFETY: as above.
        done("MPI_Comm_size", unsafe { (self.size)(self.handles.world, &raw mut size) })?;
        Ok((usize::try_from(rank).unwrap_or(0), usize::try_from(size).unwrap_or(0)))
    }

    pub fn barrier(&self) -> Result<(), MpiError> {
        // SAFETY: MPI is initialised.
        done("MPI_Barrier", unsafe { (self.barrier)(self.handles.world) })
    }

    pub fn all_gather(&self, bytes: &[u8], size: usize) -> Result<Vec<Vec<u8>>, MpiError> {
        let Handles { world, byte, int } = self.handles;
        let own = length(bytes.len())?;
        let mut lengths: Vec<c_int> = vec![0; size];
        // SAFETY: one int is read from `own`, and one from each rank written.
        let code = unsafe {
            let all = lengths.as_mut_ptr().cast();
            (self.all_gather)((&raw const own).cast(), 1, int, all, 1, int, world)
        };
        done("MPI_Allgather", code)?;
        let mut offsets = Vec::with_capacity(size);
        let mut total = 0_usize;
        for &count in &lengths {
            offsets.push(length(total)?);
            total += usize::try_from(count).unwrap_or(0);
        }
        length(total)?;
        // The address of a buffer of no bytes is 1, which is Open MPI's MPI_IN_PLACE.
        let bytes = if bytes.is_empty() { &[0] } else { bytes };
        let mut all = vec![0_u8; total.max(1)];
        // SAFETY: `own` bytes are read, of which there are no fewer; of rank r, `lengths[r]`
        // bytes are written from `offsets[r]`, which adds up to no more than `all` has.
        let code = unsafe {
            let from = bytes.as_ptr().cast();
            let (to, lengths, offsets) =
                (all.as_mut_ptr().cast(), lengths.as_ptr(), offsets.as_ptr());
            (self.all_gather_v)(from, own, byte, to, lengths, offsets, byte, world)
        };
        done("MPI_Allgatherv", code)?;
        let mut rest = all.as_slice();
        let mut parts = Vec::with_capacity(size);
        for &count in &lengths {
            let (part, after) = rest.split_at(usize::try_from(count).unwrap_or(0));
            parts.push(part.to_vec());
            rest = after;
        }
        Ok(parts)
    }

    pub fn abort(&self, exit_code: c_int) {
        // SAFETY: MPI is initialised; whatever it answers, the process ends soon.
        unsafe { (self.abort)(self.handles.world, exit_code) };
    }
}
