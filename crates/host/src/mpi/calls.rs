//! The functions of an MPI library, generic over the type of its handles.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::mem::ManuallyDrop;
use std::path::Path;

use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_NOW};

use super::MpiError;

/// The longest version text of any library (MPICH's `MPI_MAX_LIBRARY_VERSION_STRING`).
const LONGEST_VERSION: usize = 8192;
/// Constants of MPICH (`mpi.h`, fixed by its ABI).
const MPICH_COMM_WORLD: c_int = 0x4400_0000;
const MPICH_BYTE: c_int = 0x4c00_010d;
const MPICH_INT: c_int = 0x4c00_0405;

/// A library that is never closed.
pub(super) struct Loaded {
    name: String,
    library: ManuallyDrop<Library>,
}

/// Loads the first library that exists.
pub(super) fn load(names: &[&str]) -> Result<Loaded, MpiError> {
    if cfg!(target_feature = "crt-static") {
        return Err(MpiError::Static);
    }
    let mut last = String::new();
    for name in names {
        if !is_of_mpi(name) {
            return Err(MpiError::Name { name: (*name).to_owned() });
        }
        // SAFETY: its initialisers run, as those of the C library did: by its name it is the MPI library
        // that the user, or this machine, has installed. Open MPI's plugins need its symbols to be
        // global.
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

/// Returns true for the name or the path of an MPI library.
fn is_of_mpi(name: &str) -> bool {
    let file = Path::new(name).file_name().unwrap_or_default();
    file.as_encoded_bytes().starts_with(b"libmpi")
}

impl Loaded {
    fn constant(&self, name: &str) -> Option<*mut c_void> {
        // SAFETY: as a `*mut c_void` the symbol is its own address, which is not dereferenced.
        unsafe { self.library.get::<*mut c_void>(name) }.ok().map(|symbol| *symbol)
    }
}

/// The values of a library's constants.
#[derive(Clone, Copy)]
pub(super) struct Handles<H> {
    world: H,
    byte: H,
    int: H,
}

impl Handles<*mut c_void> {
    /// Finds Open MPI's constants, if the library is Open MPI.
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

/// Checks that a number returned by the library is not negative.
fn answer(call: &'static str, answer: c_int) -> Result<usize, MpiError> {
    usize::try_from(answer).map_err(|_| MpiError::Answer { call, answer })
}

impl<H: Copy> Calls<H> {
    pub fn find(loaded: &Loaded, handles: Handles<H>) -> Result<Self, MpiError> {
        macro_rules! function {
            ($name:literal as $kind:ty) => {{
                let lacking = |_| MpiError::NoSymbol {
                    library: loaded.name.clone(),
                    symbol: $name.to_owned(),
                };
                // SAFETY: 1. the library is never closed. 2. The MPI standard fixes the function's
                // type except for its handles, and the library's own symbols determine their type.
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

    /// Returns the library's version text; allowed before `MPI_Init`.
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
        // SAFETY: MPI is initialised, as only `Mpi::init` creates an `Mpi`, and writes one int to
        // `rank`.
        done("MPI_Comm_rank", unsafe { (self.rank)(self.handles.world, &raw mut rank) })?;
        // SAFETY: MPI is initialised, and writes one int to `size`.
        done("MPI_Comm_size", unsafe { (self.size)(self.handles.world, &raw mut size) })?;
        let (rank, size) = (answer("MPI_Comm_rank", rank)?, answer("MPI_Comm_size", size)?);
        // Buffers have an entry for each rank, including this one.
        match rank < size {
            true => Ok((rank, size)),
            false => Err(MpiError::Answer { call: "MPI_Comm_size", answer: length(size)? }),
        }
    }

    pub fn barrier(&self) -> Result<(), MpiError> {
        // SAFETY: MPI is initialised, and `world` is the handle that this library has for all ranks.
        done("MPI_Barrier", unsafe { (self.barrier)(self.handles.world) })
    }

    pub fn all_gather(&self, bytes: &[u8], size: usize) -> Result<Vec<Vec<u8>>, MpiError> {
        let Handles { world, byte, int } = self.handles;
        let own = length(bytes.len())?;
        let mut lengths: Vec<c_int> = vec![0; size];
        // SAFETY: one int is read from `own`, and one of each rank written to `lengths`, which has
        // the number of ranks that `rank_and_size` returned.
        let code = unsafe {
            let all = lengths.as_mut_ptr().cast();
            (self.all_gather)((&raw const own).cast(), 1, int, all, 1, int, world)
        };
        done("MPI_Allgather", code)?;
        let mut offsets = Vec::with_capacity(size);
        let mut total = 0_usize;
        for &count in &lengths {
            offsets.push(length(total)?);
            total += answer("MPI_Allgather", count)?;
        }
        length(total)?;
        // An empty slice has the address 1, which is Open MPI's MPI_IN_PLACE.
        let bytes = if bytes.is_empty() { &[0] } else { bytes };
        let mut all = vec![0_u8; total.max(1)];
        // SAFETY: exactly `own` bytes are read; of rank r, `lengths[r]` bytes, which `answer` has
        // checked to be 0 or more, are written from `offsets[r]` on: all of them are within `all`.
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A library with two ranks, the second of which reports `LENGTH` bytes.
    struct Fake<const SIZE: c_int, const LENGTH: c_int>;

    impl<const SIZE: c_int, const LENGTH: c_int> Fake<SIZE, LENGTH> {
        unsafe extern "C" fn version(_: *mut c_char, _: *mut c_int) -> c_int {
            0
        }
        unsafe extern "C" fn init(_: *mut c_int, _: *mut *mut *mut c_char) -> c_int {
            0
        }
        unsafe extern "C" fn finalize() -> c_int {
            0
        }
        unsafe extern "C" fn waits(_: c_int) -> c_int {
            0
        }
        unsafe extern "C" fn abort(_: c_int, _: c_int) -> c_int {
            0
        }
        unsafe extern "C" fn size(_: c_int, size: *mut c_int) -> c_int {
            // SAFETY: `Calls` passes a place for one int.
            unsafe { *size = SIZE };
            0
        }
        unsafe extern "C" fn gather(
            own: *const c_void,
            _: c_int,
            _: c_int,
            all: *mut c_void,
            _: c_int,
            _: c_int,
            _: c_int,
        ) -> c_int {
            // SAFETY: `Calls` passes its own length, and places for one of each of two ranks.
            unsafe { *all.cast::<[c_int; 2]>() = [*own.cast(), LENGTH] };
            0
        }
        unsafe extern "C" fn gather_v(
            from: *const c_void,
            count: c_int,
            _: c_int,
            all: *mut c_void,
            lengths: *const c_int,
            _: *const c_int,
            _: c_int,
            _: c_int,
        ) -> c_int {
            // SAFETY: `Calls` passes a length of each of two ranks.
            let lengths = unsafe { *lengths.cast::<[c_int; 2]>() };
            assert!(lengths.iter().all(|length| *length >= 0), "a library may do anything with it");
            let count = usize::try_from(count).unwrap();
            // SAFETY: `count` bytes are there, and there is room for those of both ranks.
            unsafe { all.cast::<u8>().copy_from_nonoverlapping(from.cast(), count) };
            0
        }

        fn calls() -> Calls<c_int> {
            Calls {
                handles: Handles::mpich(),
                library_version: Self::version,
                init: Self::init,
                finalize: Self::finalize,
                rank: Self::size,
                size: Self::size,
                barrier: Self::waits,
                all_gather: Self::gather,
                all_gather_v: Self::gather_v,
                abort: Self::abort,
            }
        }
    }

    #[test]
    fn a_length_below_0_of_another_rank_is_an_error_and_not_passed_on() {
        let sound = Fake::<2, 3>::calls().all_gather(b"ab", 2).unwrap();
        assert_eq!(sound, [b"ab".to_vec(), vec![0; 3]]);
        let refused = Fake::<2, -3>::calls().all_gather(b"ab", 2).unwrap_err();
        assert_eq!(refused, MpiError::Answer { call: "MPI_Allgather", answer: -3 });
    }

    #[test]
    fn a_world_without_a_rank_is_an_error() {
        for size in [Fake::<0, 0>::calls(), Fake::<-1, 0>::calls()] {
            let refused = size.rank_and_size().unwrap_err();
            assert!(matches!(refused, MpiError::Answer { .. }), "{refused}");
        }
    }
}
