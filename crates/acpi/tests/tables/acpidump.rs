//! The text of `acpidump`.

use std::fmt::Write;

use numalab_acpi::acpidump::{Dump, DumpError};

use crate::support::samples;

/// Returns the text that acpidump writes for a table.
fn dumped(name: &str, bytes: &[u8]) -> String {
    let mut text = format!("{name} @ 0x0000000000000000\n");
    for (row, chunk) in bytes.chunks(16).enumerate() {
        write!(text, "    {:04X}:", row * 16).expect("a string");
        for byte in chunk {
            write!(text, " {byte:02X}").expect("a string");
        }
        text.push_str(&"   ".repeat(16 - chunk.len()));
        let characters = chunk.iter().map(|byte| match byte {
            b' '..=b'~' => char::from(*byte),
            _ => '.',
        });
        writeln!(text, "  {}", characters.collect::<String>()).expect("a string");
    }
    text + "\n"
}

fn decoded(text: &str) -> Vec<(String, Vec<u8>)> {
    let mut buffer = vec![0; 1 << 16];
    Dump::new(text.as_bytes())
        .map(|table| {
            let bytes = table.decode(&mut buffer).expect("a good dump").to_vec();
            assert_eq!(table.size_bytes(), Ok(bytes.len()));
            (String::from_utf8_lossy(table.name).into_owned(), bytes)
        })
        .collect()
}

#[test]
fn several_tables_in_one_text_are_decoded_unchanged() {
    let samples = samples();
    let text: String =
        samples.iter().map(|sample| dumped(&sample.signature, &sample.bytes)).collect();
    for text in [text.replace('\n', "\r\n"), text] {
        let tables = decoded(&text);
        assert_eq!(tables.len(), samples.len());
        for (sample, (name, bytes)) in samples.iter().zip(tables) {
            assert_eq!(name, sample.signature);
            assert_eq!(bytes, sample.bytes, "{}", sample.file);
        }
    }
}

#[test]
fn characters_that_look_like_bytes_are_not_read_as_bytes() {
    // The characters of the last row begin with " 41 42", as bytes would.
    let bytes = b"0123456789abcdef 41 42";
    assert_eq!(decoded(&dumped("SRAT", bytes)), [("SRAT".to_owned(), bytes.to_vec())]);
}

#[test]
fn text_around_tables_is_skipped() {
    let text = format!("Firmware dump\n\n{}\nend\n", dumped("SLIT", b"SLIT\x30\0\0\0"));
    assert_eq!(decoded(&text).len(), 1);
}

#[test]
fn damaged_rows_are_refused_with_their_line() {
    let text = "SRAT @ 0x0\n  0000: 53 52 41 54 30 00 00 00 01 00 00 00 00 00 00 00  x\n";
    let table = |rows: &str| {
        let text = format!("{text}{rows}");
        let table = Dump::new(text.as_bytes()).next().expect("a table");
        table.decode(&mut [0; 64]).map(<[u8]>::to_vec)
    };
    let missing = DumpError::RowMissing { line: 3, found: 0x20, expected: 0x10 };
    assert_eq!(table("  0020: 00\n"), Err(missing));
    assert_eq!(table("  0010: \n"), Err(DumpError::RowMalformed { line: 3 }));
    assert_eq!(table("  0010 00\n"), Err(DumpError::RowMalformed { line: 3 }));
    assert_eq!(table("  00zz: 00\n"), Err(DumpError::RowMalformed { line: 3 }));
    let short = Dump::new(text.as_bytes()).next().expect("a table").decode(&mut [0; 8]).map(|_| ());
    assert_eq!(short, Err(DumpError::BufferTooSmall { needed: 16, have: 8 }));
}
