//! The manifest of a scaling run, which suffices to repeat or complete the run.

use numalab_formats::architecture::{self, Architecture};
use numalab_formats::{ReadError, size};
use numalab_record::{Kind, KindError};
use numalab_topology::NodeId;
use serde::de::Error as _;
use serde::{Deserialize, Serialize};

use super::launcher::{LauncherChoice, Workload};
use super::step::{LaunchStep, Mode};

/// A scaling run, as stored in `scale.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Manifest {
    /// The schema of [`Kind::Scale`](numalab_record::Kind::Scale).
    pub schema: String,
    /// The system of the architecture file.
    pub system: String,
    /// The partition of the architecture file.
    pub partition: String,
    /// The order in which cores are used.
    pub mode: Mode,
    pub domains: Vec<NodeId>,
    /// The sizes as typed; file names and the log use the same form.
    pub memory_sizes: String,
    /// The sizes in bytes; empty in manifests of earlier versions.
    #[serde(default)]
    pub sizes_bytes: Vec<u64>,
    /// The requested launcher.
    pub launcher: LauncherChoice,
    /// The workload of each rank.
    pub workload: Workload,
    /// Options for every rank's command.
    #[serde(default)]
    pub options: Vec<String>,
    /// True if the cores' SMT siblings are used.
    #[serde(default)]
    pub with_smt: bool,
    /// A label for the directory's name.
    pub label: Option<String>,
    /// The text of the architecture file.
    pub arch: String,
    /// The steps, fewest ranks first.
    pub steps: Vec<LaunchStep>,
}

impl Manifest {
    /// Reads a manifest; those of earlier versions have their sizes only as typed.
    ///
    /// # Errors
    ///
    /// [`KindError`] if it is of another kind, or if it or its sizes are damaged.
    pub fn read(json: &str) -> Result<Self, KindError> {
        let mut manifest: Self = Kind::Scale.read(json)?;
        if manifest.sizes_bytes.is_empty() {
            let sizes = size::parse_list(&manifest.memory_sizes);
            manifest.sizes_bytes = sizes.map_err(serde_json::Error::custom)?;
        }
        Ok(manifest)
    }

    /// Reads the architecture from its text.
    ///
    /// # Errors
    ///
    /// As `numalab_formats::architecture::read`.
    pub fn architecture(&self) -> Result<Architecture, ReadError> {
        Ok(architecture::read(&self.arch)?.value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a `scale.json` from before it had sizes in bytes.
    fn earlier(sizes: &str) -> String {
        format!(
            r#"{{"schema":"numalab-scale/1","system":"S","partition":"P","mode":"sequential","domains":[0],
            "memory_sizes":"{sizes}","launcher":"local","workload":"latency","label":null,"arch":"",
            "steps":[]}}"#
        )
    }

    #[test]
    fn a_manifest_of_an_earlier_version_gets_its_sizes_and_damaged_ones_are_refused() {
        let manifest = Manifest::read(&earlier("1-4,16")).unwrap();
        assert_eq!(manifest.sizes_bytes, [1 << 20, 2 << 20, 4 << 20, 16 << 20]);
        let error = Manifest::read(&earlier("8X")).unwrap_err().to_string();
        assert!(error.contains("8X"), "{error}");
    }

    #[test]
    fn sizes_in_bytes_of_a_manifest_take_precedence_over_their_text() {
        let mut manifest = Manifest::read(&earlier("1")).unwrap();
        manifest.sizes_bytes = vec![4096];
        let json = serde_json::to_string(&manifest).unwrap();
        assert_eq!(Manifest::read(&json).unwrap(), manifest);
    }
}
