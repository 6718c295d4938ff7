//! Reads single files by type, with findings for unusual values.

use std::io;

use numalab_topology::{CpuSet, Findings, Id, IdSet};

use crate::proc::mask;
use crate::root::Root;

pub(super) const NODE_DIRECTORY: &str = "sys/devices/system/node";

/// Reads files below a root and collects findings.
pub(super) struct Reader<'a> {
    pub(super) root: &'a Root,
    pub(super) findings: Findings,
}

impl<'a> Reader<'a> {
    pub(super) fn new(root: &'a Root) -> Self {
        Self { root, findings: Findings::default() }
    }

    pub(super) fn warn(&mut self, code: &str, place: &str, message: String) {
        self.findings.warning(code, place, message);
    }

    pub(super) fn note(&mut self, code: &str, place: &str, message: String) {
        self.findings.note(code, place, message);
    }

    /// Reads a file. An absent one is `None` without a finding; an unreadable one is a finding.
    pub(super) fn text(&mut self, path: &str) -> Option<String> {
        match self.root.value(path) {
            Ok(text) => Some(text),
            Err(error) => {
                self.unreadable(path, &error);
                None
            }
        }
    }

    /// Reads a longer file, with the same rules.
    pub(super) fn document(&mut self, path: &str) -> Option<String> {
        match self.root.document(path) {
            Ok(text) => Some(text),
            Err(error) => {
                self.unreadable(path, &error);
                None
            }
        }
    }

    fn unreadable(&mut self, path: &str, error: &io::Error) {
        // Kernels and architectures differ in their files, so a missing one is not a finding.
        let absent = matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory);
        if !absent {
            self.warn("file-unreadable", path, format!("cannot be read: {error}"));
        }
    }

    /// Reads a decimal number. An empty file is `None`: copied trees have them where a file could
    /// not be read.
    pub(super) fn number(&mut self, path: &str) -> Option<u64> {
        let text = self.text(path).filter(|text| !text.is_empty())?;
        let number = text.parse().ok();
        if number.is_none() {
            let message = format!("`{}`: expected a number", shortened(&text));
            self.warn("not-a-number", path, message);
        }
        number
    }

    /// Reads a list such as `0-3,8`; an empty file is the empty set.
    pub(super) fn list<I: Id>(&mut self, path: &str) -> Option<IdSet<I>> {
        let text = self.text(path)?;
        match text.parse() {
            Ok(set) => Some(set),
            Err(_) => {
                let (text, what) = (shortened(&text), I::WHAT);
                let message = format!("`{text}`: expected a {what} list such as 0-3,8");
                self.warn("not-a-list", path, message);
                None
            }
        }
    }

    /// Reads a cpu mask such as `00000000,0000000f`.
    pub(super) fn mask(&mut self, path: &str) -> Option<CpuSet> {
        let text = self.text(path)?;
        let set = mask(&text);
        if set.is_none() {
            let message = format!(
                "`{}`: expected a hexadecimal mask such as 00000000,0000000f",
                shortened(&text)
            );
            self.warn("not-a-mask", path, message);
        }
        set
    }

    /// Reads the first readable cpu set of several in `directory`, each given as the name of a list
    /// file (`..._list`, `...list`) or a mask file. A mask of zeros is ignored; a set that
    /// contradicts the first is a finding.
    pub(super) fn cpus(&mut self, directory: &str, names: &[&str]) -> Option<CpuSet> {
        let mut first: Option<(&str, CpuSet)> = None;
        for name in names {
            let path = format!("{directory}/{name}");
            let is_list = name.ends_with("list");
            let read = if is_list { self.list(&path) } else { self.mask(&path) };
            let Some(set) = read.filter(|set: &CpuSet| is_list || !set.is_empty()) else {
                continue;
            };
            match &first {
                None => first = Some((name, set)),
                Some((believed, known)) if *known != set => {
                    let message =
                        format!("cpus `{set}`, but {believed} says `{known}`, which is used");
                    self.warn("cpu-sets-contradict", &path, message);
                    break;
                }
                Some(_) => {}
            }
        }
        first.map(|(_, set)| set)
    }
}

/// Returns the beginning of a value, short enough to be quoted.
pub(super) fn shortened(text: &str) -> String {
    const LONGEST: usize = 60;
    if text.chars().count() <= LONGEST {
        return text.to_owned();
    }
    text.chars().take(LONGEST).chain("...".chars()).collect()
}
