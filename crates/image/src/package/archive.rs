//! Read-only use of apt: the available packages, and their files. Nothing here installs, and
//! nothing writes outside the cache.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use numalab_host::{Interrupt, output_of, run_command, tool};

use super::error::PackageError;
use super::record::{self, PackageRecord};

const QUERY_LIMIT: Duration = Duration::from_secs(60);
const DOWNLOAD_LIMIT: Duration = Duration::from_secs(600);

/// The source of packages: the host's own sources, or others kept in the cache.
#[derive(Clone, Debug, Default)]
pub struct Archive {
    options: Vec<OsString>,
}

impl Archive {
    /// Returns the sources that this host is configured with.
    pub fn host() -> Self {
        Self::default()
    }

    /// Returns separate sources with their lists below `directory`, fetched now; the host's apt is
    /// not affected. With the distribution's name for another processor the packages are for that
    /// processor.
    ///
    /// # Errors
    /// [`PackageError`] if the lists cannot be fetched.
    pub(super) fn of_source(
        source_line: &str,
        directory: &Path,
        architecture: Option<&str>,
    ) -> Result<Self, PackageError> {
        let lists = directory.join("lists");
        let io = |path: &Path, result: io::Result<()>| {
            result.map_err(|source| PackageError::Io { path: path.to_path_buf(), source })
        };
        io(&lists, fs::create_dir_all(lists.join("partial")))?;
        let list = directory.join("sources.list");
        io(&list, fs::write(&list, format!("{source_line}\n")))?;
        let option = |name: &str, value: &Path| {
            let mut text = OsString::from(format!("-o{name}="));
            text.push(value);
            text
        };
        let mut archive = Self {
            options: vec![
                option("Dir::Etc::sourcelist", &list),
                "-oDir::Etc::sourceparts=/dev/null".into(),
                option("Dir::State::lists", &lists),
                option("Dir::Cache", directory),
                "-oAPT::Sandbox::User=".into(),
            ],
        };
        if let Some(name) = architecture {
            archive.options.push(format!("-oAPT::Architecture={name}").into());
            archive.options.push(format!("-oAPT::Architectures={name}").into());
            // The installed packages are for the host's own processor.
            archive.options.push("-oDir::State::status=/dev/null".into());
        }
        archive.apt("apt-get", &["update", "-qq"], directory, DOWNLOAD_LIMIT)?;
        Ok(archive)
    }

    /// Returns apt's records of these packages: the version of each that it would install. Unknown
    /// names are left out.
    ///
    /// # Errors
    /// [`PackageError::Tool`] if apt is absent or takes too long.
    pub fn show(&self, names: &[&str]) -> Result<Vec<PackageRecord>, PackageError> {
        let mut arguments = vec!["show", "--no-all-versions", "--quiet"];
        arguments.extend(names);
        let command = self.command("apt-cache", &arguments);
        // apt's status is 100 as soon as one of the names is unknown.
        let ran = run_command(command, QUERY_LIMIT, &Interrupt::never())?;
        Ok(record::parse(&ran.stdout))
    }

    /// Returns apt's record of one package.
    ///
    /// # Errors
    /// [`PackageError::Unknown`] if apt does not know it; [`PackageError::Tool`].
    pub fn record(&self, name: &str) -> Result<PackageRecord, PackageError> {
        let record = self.show(&[name])?.into_iter().next();
        record.ok_or_else(|| PackageError::Unknown { name: name.to_owned() })
    }

    /// Downloads the package into `directory`, which contains no other package; apt verifies it
    /// against the archive's signed index.
    pub fn download(
        &self,
        package: &PackageRecord,
        directory: &Path,
    ) -> Result<PathBuf, PackageError> {
        let wanted = format!("{}={}", package.name, package.version);
        self.apt("apt-get", &["download", "-qq", &wanted], directory, DOWNLOAD_LIMIT)?;
        let io = |source| PackageError::Io { path: directory.to_path_buf(), source };
        for entry in fs::read_dir(directory).map_err(io)? {
            let path = entry.map_err(io)?.path();
            if path.extension().is_some_and(|extension| extension == "deb") {
                return Ok(path);
            }
        }
        Err(PackageError::Unknown { name: package.name.clone() })
    }

    fn apt(
        &self,
        program: &str,
        arguments: &[&str],
        directory: &Path,
        limit: Duration,
    ) -> Result<String, PackageError> {
        let mut command = self.command(program, arguments);
        command.current_dir(directory);
        Ok(output_of(command, limit)?)
    }

    fn command(&self, program: &str, arguments: &[&str]) -> std::process::Command {
        let arguments = arguments.iter().map(OsString::from);
        tool(program, self.options.iter().cloned().chain(arguments))
    }
}

#[cfg(test)]
mod tests;
