//! Reads any bytes behind a header that is right: signature, length and checksum.
//!
//! Without one, hardly any input gets past the header, so the damage would rarely be in an entry.

#![no_main]

use libfuzzer_sys::fuzz_target;
use numalab_acpi::{AnyTable, Signature, Tables, checksum};
use numalab_acpi_fuzz::{findings, one};

const HEADER_BYTES: usize = 36;

fuzz_target!(|input: (u8, u8, Vec<u8>)| {
    let (kind, revision, body) = input;
    let bytes = table(&Signature::ALL[usize::from(kind) % Signature::ALL.len()].0, revision, &body);
    let Ok(table) = AnyTable::read(&bytes) else { return };
    one(&bytes, table);
    findings(&Tables::from(table));
});

/// Returns a table with this body.
fn table(signature: &[u8; 4], revision: u8, body: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; HEADER_BYTES];
    bytes[..4].copy_from_slice(signature);
    bytes.extend_from_slice(body);
    let length = u32::try_from(bytes.len()).expect("inputs are small");
    bytes[4..8].copy_from_slice(&length.to_le_bytes());
    bytes[8] = revision;
    bytes[9] = checksum(&bytes);
    bytes
}
