//! The corpus of real and unusual tables, read in place, and operations of tests on any table.

use std::path::{Path, PathBuf};

use numalab_acpi::{AnyTable, BuildError, Builder, Finding, Format, Slot, Table, Tables, check};

/// One table of the corpus, as its MANIFEST describes it.
pub struct Sample {
    pub file: String,
    pub signature: String,
    pub valid: String,
    pub nodes: Option<usize>,
    pub cpus: Option<usize>,
    pub bytes: Vec<u8>,
}

impl Sample {
    /// Returns the part of the file name that tables of one machine share.
    pub fn machine(&self) -> &str {
        self.file.trim_end_matches(".bin").rsplit_once('.').expect("NAME.SIGNATURE.bin").0
    }
}

fn directory() -> PathBuf {
    let default = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/corpus");
    let corpus = std::env::var_os("NUMALAB_CORPUS").unwrap_or_else(|| default.into());
    Path::new(&corpus).join("tables")
}

/// Returns all tables of the corpus, or none, with a message on stderr, if it is absent.
pub fn samples() -> Vec<Sample> {
    let directory = directory();
    let Ok(manifest) = std::fs::read_to_string(directory.join("MANIFEST.tsv")) else {
        eprintln!("NOT RUN: no corpus at {}: set NUMALAB_CORPUS", directory.display());
        return Vec::new();
    };
    manifest.lines().skip(1).map(|line| sample(&directory, line)).collect()
}

/// Returns one table of the corpus.
pub fn named(file: &str) -> Option<Sample> {
    samples().into_iter().find(|sample| sample.file == file)
}

fn sample(directory: &Path, line: &str) -> Sample {
    let columns: Vec<&str> = line.split('\t').collect();
    Sample {
        file: columns[0].into(),
        signature: columns[1].into(),
        valid: columns[4].into(),
        nodes: columns[6].parse().ok(),
        cpus: columns[7].parse().ok(),
        bytes: std::fs::read(directory.join(columns[0])).expect("a file of the manifest"),
    }
}

/// Returns true if tests should run in their long form.
pub fn long() -> bool {
    std::env::var_os("NUMALAB_LONG").is_some_and(|value| value == "1")
}

pub fn scratch(tables: &Tables<'_>) -> Vec<Slot> {
    vec![Slot::default(); tables.scratch_slots()]
}

pub fn findings(tables: &Tables<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    check(tables, &mut scratch(tables), &mut |finding| {
        found.push(finding);
    })
    .expect("scratch");
    found
}

/// Returns the stable names of the findings in a single table.
pub fn codes(bytes: &[u8]) -> Vec<&'static str> {
    match AnyTable::read(bytes) {
        Ok(table) => findings(&table.into()).iter().map(Finding::code).collect(),
        Err(finding) => vec![finding.code()],
    }
}

/// Reads, checks and prints a table; returns the number of findings.
pub fn read_all(bytes: &[u8]) -> usize {
    let Ok(table) = AnyTable::read(bytes) else {
        return 0;
    };
    let found = findings(&table.into());
    table.to_string().len() + found.iter().map(|finding| finding.to_string().len()).sum::<usize>()
}

/// Returns a table with its entries written again.
pub fn rewrite<F: Format>(table: &Table<'_, F>) -> Result<Vec<u8>, BuildError> {
    let mut buffer = vec![0; table.bytes().len()];
    let mut builder = Builder::<F>::new(&mut buffer, *table.header(), *table.fixed());
    for located in table.entries() {
        builder.push(&located.entry);
    }
    builder.finish().map(<[u8]>::to_vec)
}

/// Returns a table built from entries.
pub fn built<F: Format>(
    header: numalab_acpi::Header,
    fixed: F::Fixed,
    entries: &[F::Entry<'_>],
) -> Vec<u8> {
    let mut measure = Builder::<F>::new(&mut [], header, fixed);
    for entry in entries {
        measure.push(entry);
    }
    let mut buffer = vec![0; measure.size_bytes()];
    let mut builder = Builder::<F>::new(&mut buffer, header, fixed);
    for entry in entries {
        builder.push(entry);
    }
    builder.finish().expect("entries that fit").to_vec()
}

/// Corrects the checksum of a table after a test has changed it.
pub fn sum_again(bytes: &mut [u8]) {
    bytes[9] = 0;
    bytes[9] = numalab_acpi::checksum(bytes);
}
