//! Every table of the corpus is judged as its MANIFEST states.

use std::collections::{BTreeMap, BTreeSet};

use numalab_acpi::{AnyTable, Finding, Severity, slit};

use crate::support::{Sample, findings, named, rewrite, samples, scratch};

/// The judgement of the readers about a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    /// The tolerant reader refuses it.
    Refused,
    /// The tolerant reader accepts it, with its most severe finding.
    Read(Option<Severity>),
}

fn judge(sample: &Sample) -> Verdict {
    match AnyTable::read(&sample.bytes) {
        Err(_) => Verdict::Refused,
        Ok(table) => {
            let found = findings(&table.into());
            Verdict::Read(found.iter().map(Finding::severity).max())
        }
    }
}

fn as_expected(expected: &str, verdict: Verdict) -> bool {
    use Severity::{Error, Note, Warning};
    use Verdict::{Read, Refused};
    let harmless = matches!(verdict, Read(None | Some(Note)));
    match expected {
        "valid" | "expect:accept" => harmless,
        "quirk" | "expect:warn" => verdict == Read(Some(Warning)),
        "expect:accept-or-warn" => harmless || verdict == Read(Some(Warning)),
        "expect:reject" => verdict == Refused,
        "invalid" | "expect:reject-or-stop" => verdict == Refused || verdict == Read(Some(Error)),
        "expect:reject-or-warn" => !harmless,
        other => panic!("unknown class {other} in MANIFEST.tsv"),
    }
}

#[test]
fn every_table_of_the_corpus_is_judged_as_its_manifest_states() {
    let mut classes: BTreeMap<String, [usize; 4]> = BTreeMap::new();
    let mut wrong = Vec::new();
    for sample in samples() {
        let verdict = judge(&sample);
        let row = classes.entry(sample.valid.clone()).or_default();
        row[match verdict {
            Verdict::Read(None | Some(Severity::Note)) => 0,
            Verdict::Read(Some(Severity::Warning)) => 1,
            Verdict::Read(Some(Severity::Error)) => 2,
            Verdict::Refused => 3,
        }] += 1;
        if !as_expected(&sample.valid, verdict) {
            wrong.push(format!("{}: {}, judged {verdict:?}", sample.file, sample.valid));
        }
    }
    println!("| manifest | good | warned | errors | refused |\n|---|---|---|---|---|");
    for (class, [good, warned, errors, refused]) in &classes {
        println!("| {class} | {good} | {warned} | {errors} | {refused} |");
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn the_strict_reader_accepts_valid_tables_and_refuses_odd_ones_with_offset_and_reason() {
    for sample in samples() {
        let slots =
            AnyTable::read(&sample.bytes).map_or(Vec::new(), |table| scratch(&table.into()));
        let strict = AnyTable::read_strict(&sample.bytes, &mut slots.clone());
        let harmless = matches!(judge(&sample), Verdict::Read(None | Some(Severity::Note)));
        assert_eq!(strict.is_ok(), harmless, "{}: {strict:?}", sample.file);
        if let Err(refusal) = strict {
            let text = refusal.to_string();
            assert!(text.contains(" at 0x"), "{}: {text}", sample.file);
        }
    }
}

#[test]
fn numbers_of_nodes_and_cpus_match_the_manifest() {
    for sample in samples().iter().filter(|sample| sample.valid == "valid") {
        let file = &sample.file;
        match AnyTable::read(&sample.bytes).expect("a valid table") {
            AnyTable::Srat(srat) => {
                let nodes: BTreeSet<u32> = srat.domains().map(|at| at.entry).collect();
                assert_eq!(Some(nodes.len()), sample.nodes, "{file}");
                let cpus = srat.processors().filter(|cpu| cpu.enabled).count();
                assert_eq!(Some(cpus), sample.cpus, "{file}");
            }
            AnyTable::Slit(slit) => assert_eq!(Some(slit.localities()), sample.nodes, "{file}"),
            AnyTable::Madt(madt) => {
                let cpus = madt.processors().filter(|cpu| cpu.enabled).count();
                assert_eq!(Some(cpus), sample.cpus, "{file}");
            }
            AnyTable::Hmat(_) | AnyTable::Cedt(_) => {}
        }
    }
}

#[test]
fn entries_of_every_valid_table_encode_to_the_same_bytes() {
    let mut tables = 0;
    for sample in samples() {
        if !["valid", "expect:accept"].contains(&sample.valid.as_str()) {
            continue;
        }
        let table = AnyTable::read(&sample.bytes).expect("an accepted table");
        let again = match table {
            AnyTable::Srat(table) => rewrite(&table),
            AnyTable::Hmat(table) => rewrite(&table),
            AnyTable::Madt(table) => rewrite(&table),
            AnyTable::Cedt(table) => rewrite(&table),
            AnyTable::Slit(table) => {
                let cells: Vec<u8> = table.rows().flatten().copied().collect();
                let mut buffer = vec![0; sample.bytes.len()];
                slit::build(&mut buffer, *table.header(), table.localities(), &cells)
                    .map(<[u8]>::to_vec)
            }
        };
        assert_eq!(again.as_deref(), Ok(sample.bytes.as_slice()), "{}", sample.file);
        tables += 1;
    }
    println!("{tables} tables written again, byte for byte");
}

#[test]
fn every_finding_of_fwts_on_its_odd_table_is_found() {
    let Some(sample) = named("fwts-srat-0002.SRAT.bin") else {
        return;
    };
    let table = AnyTable::read(&sample.bytes).expect("readable");
    let found: Vec<String> = findings(&table.into()).iter().map(ToString::to_string).collect();
    // The eight FAILED lines of expected/fwts-srat-0002.log, in order, each at its field.
    for expected in [
        "0x0024: reserved table revision 7",
        "0x0034: Flags has undefined bits 0x8 ",
        "0x00b4: Flags has undefined bits 0xf0 ",
        "0x00dc: Flags has undefined bits 0xfffffff0 ",
        "0x00ea: Reserved is 0x1,",
        "0x00f4: Device Handle Reserved is 0xffffffff00000000",
        "0x0104: Reserved is 0xff000000",
        "0x0114: Flags has undefined bits 0x2 ",
    ] {
        let hits = found.iter().filter(|finding| finding.contains(expected)).count();
        assert_eq!(hits, 1, "{expected} in {found:#?}");
    }
}
