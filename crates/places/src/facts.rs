//! What the kernel counts and holds, read before and after.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use numalab_host::{Root, proc};
use numalab_record::study::Evidence;
use numalab_study::BackendError;
use sha2::{Digest, Sha256};

/// Fields of `/proc/meminfo` that show whether pages are as a treatment wants them.
const MEMINFO: [&str; 4] = ["AnonHugePages", "HugePages_Total", "HugePages_Free", "HugePages_Rsvd"];

/// The counters of `/proc/vmstat` by name.
pub(super) fn vmstat() -> BTreeMap<String, u64> {
    let text = Root::live().document("proc/vmstat").unwrap_or_default();
    proc::counters(&text).map(|(name, count)| (name.to_owned(), count)).collect()
}

/// How much the wanted counters grew. One that this kernel does not have is left out.
pub(super) fn grown(
    wanted: &[String],
    before: &BTreeMap<String, u64>,
    after: &BTreeMap<String, u64>,
) -> BTreeMap<String, f64> {
    let grown = |name: &String| {
        let grown = after.get(name)?.saturating_sub(*before.get(name)?);
        Some((name.clone(), grown as f64))
    };
    wanted.iter().filter_map(grown).collect()
}

/// What `/proc/meminfo` says of huge pages, as evidence under this name.
pub(super) fn huge_pages(when: &str) -> Evidence {
    let text = Root::live().document("proc/meminfo").unwrap_or_default();
    let fields =
        MEMINFO.iter().filter_map(|name| Some(format!("{name}: {}", proc::field(&text, name)?)));
    let found = fields.collect::<Vec<_>>().join(", ");
    Evidence::fact(format!("meminfo {when}"), found)
}

/// What a file holds, as a fact by which a later build of it is told apart.
pub(super) fn content(file: &Path) -> Result<String, BackendError> {
    let content = fs::read(file).map_err(|error| BackendError::Failed {
        doing: format!("reading {}", file.display()),
        reason: error.to_string(),
    })?;
    Ok(format!("sha256 {}", digits(&content)))
}

/// A word for bytes that is another one for others.
pub(super) fn fingerprint(bytes: &[u8]) -> String {
    digits(bytes)[..16].to_owned()
}

fn digits(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_build_is_told_from_the_next_by_its_content() {
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
