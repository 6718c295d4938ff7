//! Loads an MPI library at run time, so that building needs no MPI.
//!
//! There are two binary interfaces. In Open MPI's, handles are addresses of objects that the
//! library exports (`ompi_mpi_comm_world`); in MPICH's, which Cray's and Intel's libraries share
//! (<https://www.mpich.org/abi>), they are numbers.

mod calls;

use core::fmt;
use std::sync::atomic::{AtomicBool, Ordering};

use calls::{Calls, Handles};

use crate::error_class::{Classed, ErrorClass};

/// The implementation of an MPI library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MpiFlavour {
    OpenMpi,
    /// MPICH, or another library with its binary interface.
    Mpich,
    CrayMpich,
}

impl MpiFlavour {
    /// Returns the names of its library, most specific first.
    pub const fn library_names(self) -> &'static [&'static str] {
        match self {
            Self::OpenMpi => &["libmpi.so.40", "libmpi.so.80", "libmpi.so.20"],
            Self::Mpich => &["libmpich.so.12", "libmpi.so.12"],
            Self::CrayMpich => {
                &["libmpi_cray.so.12", "libmpi_gnu_123.so.12", "libmpi_gnu_91.so.12"]
            }
        }
    }

    /// Derives the implementation from the binary interface and the text of
    /// `MPI_Get_library_version`.
    fn of(has_open_mpi_handles: bool, version: &str) -> Self {
        if has_open_mpi_handles {
            Self::OpenMpi
        } else if version.to_ascii_uppercase().contains("CRAY MPICH") {
            Self::CrayMpich
        } else {
            Self::Mpich
        }
    }
}

impl fmt::Display for MpiFlavour {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::OpenMpi => "Open MPI",
            Self::Mpich => "MPICH",
            Self::CrayMpich => "Cray MPICH",
        })
    }
}

/// Reason why MPI cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MpiError {
    #[error(
        "this static build cannot load an MPI library: its ranks can communicate only through \
         shared memory and TCP (--meet node, --meet tcp:HOST:PORT)"
    )]
    Static,
    #[error("{name}: expected an MPI library, with a name like libmpi.so.40 or libmpich.so.12")]
    Name { name: String },
    #[error("MPI can be initialised only once in a process, and already was")]
    Again,
    #[error(
        "no MPI library can be loaded; tried {tried}: install one (apt-get install openmpi-bin, or \
         mpich), or set LD_LIBRARY_PATH to its directory"
    )]
    NotFound {
        /// The names tried, and the loader's error for the last.
        tried: String,
    },
    #[error(
        "the MPI library {library} has no `{symbol}`: its interface is neither Open MPI's nor \
         MPICH's"
    )]
    NoSymbol { library: String, symbol: String },
    #[error("{call} failed with MPI error {code}")]
    Call { call: &'static str, code: i32 },
    #[error("{call} returned {answer}: expected a number of ranks or bytes")]
    Answer { call: &'static str, answer: i32 },
    /// More than the `int` counts of MPI can express.
    #[error("{bytes} bytes are too many for one MPI message")]
    TooLong { bytes: usize },
}

impl Classed for MpiError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Static | Self::NotFound { .. } | Self::NoSymbol { .. } => ErrorClass::Lacking,
            Self::Name { .. } => ErrorClass::BadInput,
            Self::Again | Self::Call { .. } | Self::Answer { .. } | Self::TooLong { .. } => {
                ErrorClass::Failed
            }
        }
    }
}

enum Library {
    OpenMpi(Calls<*mut std::ffi::c_void>),
    Mpich(Calls<libc::c_int>),
}

macro_rules! each {
    ($library:expr, $calls:ident => $body:expr) => {
        match $library {
            Library::OpenMpi($calls) => $body,
            Library::Mpich($calls) => $body,
        }
    };
}

/// Set before MPI is initialised, which a process may do once (MPI 3.1, 8.7), and never cleared.
static BEGUN: AtomicBool = AtomicBool::new(false);

fn once(begun: &AtomicBool) -> Result<(), MpiError> {
    if begun.swap(true, Ordering::Relaxed) { Err(MpiError::Again) } else { Ok(()) }
}

/// MPI, initialised. A process has at most one, which stays on its thread.
pub struct Mpi {
    library: Library,
    flavour: MpiFlavour,
    version: String,
    finished: bool,
}

impl fmt::Debug for Mpi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mpi").field("version", &self.version).finish_non_exhaustive()
    }
}

impl Mpi {
    /// Loads the first of these libraries that exists, detects its implementation, and calls
    /// `MPI_Init`.
    ///
    /// A library's file name must begin with `libmpi`: its code runs, and its functions are called
    /// with the signatures of the MPI standard.
    ///
    /// # Errors
    /// [`MpiError::Static`] in a static build, [`MpiError::Name`] for any other library,
    /// [`MpiError::NotFound`] without a library, [`MpiError::NoSymbol`] for a library with another
    /// interface, [`MpiError::Again`], [`MpiError::Call`].
    pub fn init(names: &[&str]) -> Result<Self, MpiError> {
        let loaded = calls::load(names)?;
        let open_mpi = Handles::<*mut std::ffi::c_void>::find(&loaded);
        let has_open_mpi_handles = open_mpi.is_some();
        let library = match open_mpi {
            Some(handles) => Library::OpenMpi(Calls::find(&loaded, handles)?),
            None => Library::Mpich(Calls::find(&loaded, Handles::mpich())?),
        };
        // Allowed before `MPI_Init` (MPI 3.1, 8.1.1).
        let version = each!(&library, calls => calls.library_version()?);
        once(&BEGUN)?;
        each!(&library, calls => calls.init()?);
        let flavour = MpiFlavour::of(has_open_mpi_handles, &version);
        Ok(Self { library, flavour, version, finished: false })
    }

    pub fn flavour(&self) -> MpiFlavour {
        self.flavour
    }

    /// Returns the first line of the library's version text.
    pub fn version(&self) -> &str {
        self.version.lines().next().unwrap_or_default()
    }

    /// Returns the rank and the size of `MPI_COMM_WORLD`.
    pub fn rank_and_size(&self) -> Result<(usize, usize), MpiError> {
        each!(&self.library, calls => calls.rank_and_size())
    }

    /// Waits until every rank has called it.
    pub fn barrier(&self) -> Result<(), MpiError> {
        each!(&self.library, calls => calls.barrier())
    }

    /// Gathers every rank's bytes, indexed by rank.
    ///
    /// # Errors
    /// [`MpiError::Call`], and [`MpiError::TooLong`] beyond a total of 2 GiB.
    pub fn all_gather(&self, bytes: &[u8]) -> Result<Vec<Vec<u8>>, MpiError> {
        let (_, size) = self.rank_and_size()?;
        each!(&self.library, calls => calls.all_gather(bytes, size))
    }

    /// Ends every rank with this exit code; the launcher kills ranks that do not end.
    pub fn abort(&self, exit_code: i32) {
        each!(&self.library, calls => calls.abort(exit_code));
    }

    /// Leaves MPI; every rank must call it.
    pub fn finalize(mut self) -> Result<(), MpiError> {
        self.finished = true;
        each!(&self.library, calls => calls.finalize())
    }
}

impl Drop for Mpi {
    fn drop(&mut self) {
        // A rank that returns early would leave the others waiting forever.
        if !self.finished {
            self.abort(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_is_recognised_by_its_interface_and_version_text() {
        let of = |handles, version| MpiFlavour::of(handles, version);
        assert_eq!(of(true, "Open MPI v4.1.4, package: Debian"), MpiFlavour::OpenMpi);
        assert_eq!(of(false, "MPICH Version:\t4.0.2\n"), MpiFlavour::Mpich);
        let cray = "MPI VERSION    : CRAY MPICH version 8.1.27.26 (ANL base 3.4a2)";
        assert_eq!(of(false, cray), MpiFlavour::CrayMpich);
    }

    #[test]
    fn a_library_that_is_missing_or_not_mpi_is_named() {
        let error = Mpi::init(&["libmpi-none.so.1"]).unwrap_err();
        if cfg!(target_feature = "crt-static") {
            assert_eq!(error, MpiError::Static);
            return;
        }
        assert!(error.to_string().contains("libmpi-none.so.1"), "{error}");
        assert_eq!(error.class(), ErrorClass::Lacking);
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("libmpi.so.1");
        std::fs::write(&path, "no library").unwrap();
        let error = Mpi::init(&[&path.to_string_lossy()]).unwrap_err();
        assert!(error.to_string().contains("libmpi.so.1"), "{error}");
    }

    #[test]
    fn no_library_with_another_name_than_mpi_s_is_loaded() {
        if cfg!(target_feature = "crt-static") {
            return;
        }
        for name in ["libm.so.6", "/lib/libmpi.so.40/libm.so.6", "", "libmpi.so.40/.."] {
            assert_eq!(Mpi::init(&[name]).unwrap_err(), MpiError::Name { name: name.to_owned() });
        }
    }

    #[test]
    fn mpi_is_initialised_once_in_a_process() {
        let begun = AtomicBool::new(false);
        assert_eq!([once(&begun), once(&begun)], [Ok(()), Err(MpiError::Again)]);
    }
}
