//! An MPI library found at run time: nothing of MPI is needed to build.
//!
//! Two binary interfaces are in use. In Open MPI's, handles are addresses of objects that
//! the library exports (`ompi_mpi_comm_world`); in MPICH's, which Cray's and Intel's
//! libraries share (<https://www.mpich.org/abi>), they are numbers.

mod calls;

use core::fmt;

use calls::{Calls, Handles};

use crate::error_class::ErrorClass;

/// Whose library it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MpiFlavour {
    /// Open MPI.
    OpenMpi,
    /// MPICH, or another library with its binary interface.
    Mpich,
    /// HPE Cray MPICH.
    CrayMpich,
}

impl MpiFlavour {
    /// The names that its library goes by, most specific first.
    #[must_use]
    pub const fn library_names(self) -> &'static [&'static str] {
        match self {
            Self::OpenMpi => &["libmpi.so.40", "libmpi.so.80", "libmpi.so.20"],
            Self::Mpich => &["libmpich.so.12", "libmpi.so.12"],
            Self::CrayMpich => {
                &["libmpi_cray.so.12", "libmpi_gnu_123.so.12", "libmpi_gnu_91.so.12"]
            }
        }
    }

    /// From the binary interface and what `MPI_Get_library_version` says.
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

/// Why MPI cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MpiError {
    /// This is the static build.
    #[error(
        "this is the static build, which cannot load an MPI library: its ranks meet by shared memory and TCP (--meet node, --meet tcp:HOST:PORT)"
    )]
    Static,
    /// No library was found.
    #[error(
        "no MPI library can be loaded; tried {tried}: install one (apt-get install openmpi-bin, or mpich), or set LD_LIBRARY_PATH to where it is"
    )]
    NotFound {
        /// The names tried and what the loader said of the last.
        tried: String,
    },
    /// The library lacks a function.
    #[error(
        "the MPI library {library} has no `{symbol}`: it is neither Open MPI's nor MPICH's interface"
    )]
    NoSymbol {
        /// The library.
        library: String,
        /// The symbol.
        symbol: String,
    },
    /// A call failed.
    #[error("{call} failed with MPI error {code}")]
    Call {
        /// The function.
        call: &'static str,
        /// Its answer.
        code: i32,
    },
    /// A call gave a number that none can be.
    #[error("{call} gave {answer}: expected a number of ranks or bytes")]
    Answer {
        /// The function.
        call: &'static str,
        /// What it gave.
        answer: i32,
    },
    /// More than MPI can count.
    #[error("{bytes} bytes are more than one MPI message holds")]
    TooLong {
        /// The bytes.
        bytes: usize,
    },
}

impl MpiError {
    /// The class of the error.
    #[must_use]
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::Static | Self::NotFound { .. } | Self::NoSymbol { .. } => ErrorClass::Lacking,
            Self::Call { .. } | Self::Answer { .. } | Self::TooLong { .. } => ErrorClass::Failed,
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

/// MPI, initialised. There is at most one in a process's life, and it stays on its thread.
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
    /// Loads the first of these libraries that is there, tells whose it is, and calls
    /// `MPI_Init`.
    ///
    /// # Errors
    /// [`MpiError::Static`] in a static build, [`MpiError::NotFound`] without a library,
    /// [`MpiError::NoSymbol`] for one of another interface, [`MpiError::Call`].
    pub fn init(names: &[&str]) -> Result<Self, MpiError> {
        let loaded = calls::load(names)?;
        let open_mpi = Handles::<*mut std::ffi::c_void>::find(&loaded);
        let has_open_mpi_handles = open_mpi.is_some();
        let library = match open_mpi {
            Some(handles) => Library::OpenMpi(Calls::find(&loaded, handles)?),
            None => Library::Mpich(Calls::find(&loaded, Handles::mpich())?),
        };
        let version = each!(&library, calls => calls.library_version()?);
        each!(&library, calls => calls.init()?);
        let flavour = MpiFlavour::of(has_open_mpi_handles, &version);
        Ok(Self { library, flavour, version, finished: false })
    }

    /// Whose library it is.
    #[must_use]
    pub fn flavour(&self) -> MpiFlavour {
        self.flavour
    }

    /// The first line of what the library says of itself.
    #[must_use]
    pub fn version(&self) -> &str {
        self.version.lines().next().unwrap_or_default()
    }

    /// The rank and the size of `MPI_COMM_WORLD`.
    ///
    /// # Errors
    /// [`MpiError::Call`].
    pub fn rank_and_size(&self) -> Result<(usize, usize), MpiError> {
        each!(&self.library, calls => calls.rank_and_size())
    }

    /// Waits until every rank is here.
    ///
    /// # Errors
    /// [`MpiError::Call`].
    pub fn barrier(&self) -> Result<(), MpiError> {
        each!(&self.library, calls => calls.barrier())
    }

    /// What every rank gave, by rank.
    ///
    /// # Errors
    /// [`MpiError::Call`], and [`MpiError::TooLong`] beyond 2 GiB in all.
    pub fn all_gather(&self, bytes: &[u8]) -> Result<Vec<Vec<u8>>, MpiError> {
        let (_, size) = self.rank_and_size()?;
        each!(&self.library, calls => calls.all_gather(bytes, size))
    }

    /// Ends every rank with this exit code; the launcher kills those that do not heed.
    pub fn abort(&self, exit_code: i32) {
        each!(&self.library, calls => calls.abort(exit_code));
    }

    /// Leaves MPI; every rank must.
    ///
    /// # Errors
    /// [`MpiError::Call`].
    pub fn finalize(mut self) -> Result<(), MpiError> {
        self.finished = true;
        each!(&self.library, calls => calls.finalize())
    }
}

impl Drop for Mpi {
    fn drop(&mut self) {
        // A rank that gives up: the others would wait for it for ever.
        if !self.finished {
            self.abort(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_is_told_by_its_interface_and_its_own_words() {
        let of = |handles, version| MpiFlavour::of(handles, version);
        assert_eq!(of(true, "Open MPI v4.1.4, package: Debian"), MpiFlavour::OpenMpi);
        assert_eq!(of(false, "MPICH Version:\t4.0.2\n"), MpiFlavour::Mpich);
        let cray = "MPI VERSION    : CRAY MPICH version 8.1.27.26 (ANL base 3.4a2)";
        assert_eq!(of(false, cray), MpiFlavour::CrayMpich);
    }

    #[test]
    fn a_library_that_is_not_there_or_is_no_mpi_is_named() {
        let error = Mpi::init(&["libno-such-mpi.so.1"]).unwrap_err();
        if cfg!(target_feature = "crt-static") {
            assert_eq!(error, MpiError::Static);
            return;
        }
        assert!(error.to_string().contains("libno-such-mpi.so.1"), "{error}");
        assert_eq!(error.class(), ErrorClass::Lacking);
        let error = Mpi::init(&["libm.so.6"]).unwrap_err();
        assert!(error.to_string().contains("libm.so.6"), "{error}");
    }
}
