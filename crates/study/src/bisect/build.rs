//! Builds a bootable file from a commit.

use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::available_parallelism;
use std::time::Duration;

use numalab_host::{CommandError, Interrupt, on_path, run_command, users_program};
use numalab_record::bisect::Commit;

use super::error::BisectError;

/// Options that guests need of a kernel in one file, in addition to x86's defaults.
const GUEST_CONFIG: &str = include_str!("guest.config");
const LIMIT: Duration = Duration::from_secs(6 * 3600);
/// Exit code of a script for a commit that cannot be judged (git-bisect(1)).
const SKIP: i32 = 125;

/// Build method of commits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Build {
    /// By a user's script, run in the commit's tree; its last output line is the file.
    Script(PathBuf),
    /// With the build system of the Linux kernel, and with this configuration if there is one.
    Linux(Option<PathBuf>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Built {
    File(PathBuf),
    /// The build gave nothing, for this reason; the commit is skipped.
    Skipped(String),
}

impl Build {
    /// Returns a build by a script, or of Linux with a configuration; both are named by absolute
    /// paths, because builds run in the tree of a commit.
    ///
    /// # Errors
    /// [`BisectError::NoFile`], or [`BisectError::NoProgram`] for a script that cannot be run.
    pub fn of(script: Option<&Path>, config: Option<&Path>) -> Result<Self, BisectError> {
        let whole = |path: &Path| {
            let absent = |source| BisectError::NoFile { path: path.to_owned(), source };
            path.canonicalize().map_err(absent)
        };
        let Some(script) = script else { return Ok(Self::Linux(config.map(whole).transpose()?)) };
        let found = on_path(&whole(script)?.to_string_lossy());
        found.map(Self::Script).ok_or_else(|| BisectError::NoProgram { script: script.to_owned() })
    }

    /// Builds the tree in `worktree`; `kept` is the directory for files that one build leaves to
    /// the next.
    ///
    /// # Errors
    /// [`BisectError`] if the search must end: the script cannot be run, was ended by a signal, or
    /// names no file.
    pub fn run(
        &self,
        commit: &Commit,
        worktree: &Path,
        kept: &Path,
        interrupt: &Interrupt,
    ) -> Result<Built, BisectError> {
        let mut command = self.command(kept);
        command
            .current_dir(worktree)
            .env("NUMALAB_BUILD", kept)
            .env("NUMALAB_COMMIT", &commit.hash);
        let given_up = |reason: String| BisectError::BuildGivenUp {
            commit: commit.short().to_owned(),
            reason,
        };
        let ran = match run_command(command, LIMIT, interrupt) {
            Ok(ran) => ran,
            Err(CommandError::Interrupted { .. }) => {
                return Err(crate::BackendError::Interrupted.into());
            }
            Err(error) => return Err(given_up(error.to_string())),
        };
        let last = |text: &str| text.trim_end().lines().last().unwrap_or_default().to_owned();
        match (ran.status.code(), ran.status.signal()) {
            (Some(0), _) => {
                let printed = last(&ran.stdout);
                // Joining an absolute path discards the working tree's, so scripts may print either
                // kind.
                let file = worktree.join(&printed);
                if printed.is_empty() || !file.is_file() {
                    let commit = commit.short().to_owned();
                    return Err(BisectError::NoKernel { commit, printed });
                }
                Ok(Built::File(file))
            }
            (Some(SKIP), _) => Ok(Built::Skipped("its script reports this (exit 125)".to_owned())),
            (Some(code @ 1..125), _) => {
                Ok(Built::Skipped(format!("exit {code}: {}", last(&ran.stderr))))
            }
            // 126 and 127 are the shell's errors for a missing program. Larger codes come from a
            // signal, or from a script that ends the bisection.
            (Some(code), _) => Err(given_up(format!("exit {code}: {}", last(&ran.stderr)))),
            (None, signal) => Err(given_up(format!("signal {}", signal.unwrap_or_default()))),
        }
    }

    fn command(&self, kept: &Path) -> Command {
        match self {
            Self::Script(path) => users_program(path, [""; 0]),
            Self::Linux(config) => {
                let mut shell = users_program("sh", ["-ec", LINUX]);
                shell.env("JOBS", jobs()).env("GUEST_CONFIG", GUEST_CONFIG);
                shell.env("O", kept);
                let config = config.as_ref().map(|path| path.as_os_str().to_owned());
                shell.env("CONFIG", config.unwrap_or_default());
                // Neighbouring commits share most objects.
                if on_path("ccache").is_some() {
                    shell.env("KCC", "CC=ccache gcc");
                }
                shell
            }
        }
    }
}

/// Builds an image; the build directory keeps the objects that did not change between commits.
const LINUX: &str = r#"
exec 3>&1 1>&2
if [ -n "$CONFIG" ]; then cp "$CONFIG" "$O/.config"
else make O="$O" defconfig; printf '%s\n' "$GUEST_CONFIG" >> "$O/.config"
fi
make O="$O" olddefconfig
make O="$O" -j"$JOBS" ${KCC:+"$KCC"} bzImage
echo "$O/$(make -s O="$O" image_name)" >&3
"#;

fn jobs() -> String {
    available_parallelism().map_or(1, usize::from).to_string()
}

#[cfg(test)]
mod tests;
