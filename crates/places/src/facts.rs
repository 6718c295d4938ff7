//! Kernel counters and values, read before and after a workload.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::Path;

use numalab_host::{Root, proc};
use numalab_record::study::{Evidence, counter};
use numalab_study::BackendError;
use sha2::{Digest, Sha256};

/// Fields of `/proc/meminfo` that show whether pages are as a treatment requires.
const MEMINFO: [&str; 4] = ["AnonHugePages", "HugePages_Total", "HugePages_Free", "HugePages_Rsvd"];

/// Returns the counters of `/proc/vmstat` by name.
pub(super) fn vmstat() -> BTreeMap<String, u64> {
    let text = Root::live().document("proc/vmstat").unwrap_or_default();
    proc::counters(&text).map(|(name, count)| (name.to_owned(), count)).collect()
}

/// Returns the increase of the wanted counters, and the value of one that is a maximum; counters
/// that this kernel lacks are left out.
pub(super) fn grown(
    wanted: &[String],
    before: &BTreeMap<String, u64>,
    after: &BTreeMap<String, u64>,
) -> BTreeMap<String, f64> {
    let grown = |name: &String| {
        let (before, after) = (*before.get(name)?, *after.get(name)?);
        let is_maximum = name == counter::LONGEST;
        let grown = if is_maximum { after } else { after.saturating_sub(before) };
        Some((name.clone(), grown as f64))
    };
    wanted.iter().filter_map(grown).collect()
}

/// Returns the huge page fields of `/proc/meminfo` as evidence under this name.
pub(super) fn huge_pages(when: &str) -> Evidence {
    let text = Root::live().document("proc/meminfo").unwrap_or_default();
    let fields =
        MEMINFO.iter().filter_map(|name| Some(format!("{name}: {}", proc::field(&text, name)?)));
    let found = fields.collect::<Vec<_>>().join(", ");
    Evidence::fact(format!("meminfo {when}"), found)
}

/// Returns a fact with a file's fingerprint, which distinguishes later builds of it.
pub(super) fn content(file: &Path) -> Result<String, BackendError> {
    let mut hash = Sha256::new();
    File::open(file)
        .and_then(|mut content| io::copy(&mut content, &mut hash))
        .map_err(|error| BackendError::failed(format!("reading {}", file.display()), error))?;
    Ok(format!("sha256 {}", digits(hash)))
}

pub(super) fn fingerprint(bytes: &[u8]) -> String {
    digits(Sha256::new_with_prefix(bytes))[..16].to_owned()
}

fn digits(hash: Sha256) -> String {
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn builds_differ_by_content() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("bzImage");
        let content_of = |text: &str| {
            fs::write(&file, text).unwrap();
            content(&file).unwrap()
        };
        assert_ne!(content_of("a"), content_of("b"));
        assert_eq!(content_of("a"), content_of("a"));
        let error = content(Path::new("/no/such")).unwrap_err().to_string();
        assert!(error.starts_with("reading /no/such: No such file"), "{error}");
    }
}
