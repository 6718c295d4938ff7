//! What a scaling run is: enough to do it again, and to finish it.

use numalab_formats::architecture::{self, Architecture};
use numalab_formats::{ReadError, size};
use numalab_record::{Kind, KindError};
use numalab_topology::NodeId;
use serde::de::Error as _;
use serde::{Deserialize, Serialize};

use super::line::{LauncherChoice, Workload};
use super::step::{Mode, Step};

/// A scaling run, as `scale.json` keeps it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Manifest {
    /// That of [`Kind::Scale`](numalab_record::Kind::Scale).
    pub schema: String,
    /// The system of the architecture file.
    pub system: String,
    /// The partition of the architecture file.
    pub partition: String,
    /// In which order cores are taken.
    pub mode: Mode,
    /// The nodes.
    pub domains: Vec<NodeId>,
    /// Sizes as typed: files and log have them so.
    pub memory_sizes: String,
    /// The same in bytes; empty in manifests of earlier versions.
    #[serde(default)]
    pub sizes_bytes: Vec<u64>,
    /// Who starts the ranks, as asked.
    pub launcher: LauncherChoice,
    /// What they do.
    pub workload: Workload,
    /// Options for every rank's command.
    #[serde(default)]
    pub options: Vec<String>,
    /// Whether second threads are used.
    #[serde(default)]
    pub with_smt: bool,
    /// A word for the directory's name.
    pub label: Option<String>,
    /// The architecture file's text.
    pub arch: String,
    /// The steps, fewest ranks first.
    pub steps: Vec<Step>,
}

impl Manifest {
    /// Reads a manifest; one of an earlier version has its sizes as typed only.
    ///
    /// # Errors
    /// [`KindError`] if it is of another kind or damaged, its sizes too.
    pub fn read(json: &str) -> Result<Self, KindError> {
        let mut manifest: Self = Kind::Scale.read(json)?;
        if manifest.sizes_bytes.is_empty() {
            let sizes = size::parse_list(&manifest.memory_sizes);
            manifest.sizes_bytes = sizes.map_err(serde_json::Error::custom)?;
        }
        Ok(manifest)
    }

    /// The architecture, read from its text.
    ///
    /// # Errors
    /// As `numalab_formats::architecture::read`.
    pub fn architecture(&self) -> Result<Architecture, ReadError> {
        Ok(architecture::read(&self.arch)?.value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As `scale.json` was before it had sizes in bytes.
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
    fn what_a_manifest_says_in_bytes_counts_and_not_the_text() {
        let mut manifest = Manifest::read(&earlier("1")).unwrap();
        manifest.sizes_bytes = vec![4096];
        let json = serde_json::to_string(&manifest).unwrap();
        assert_eq!(Manifest::read(&json).unwrap(), manifest);
    }
}
