//! No truncation and no changed byte makes a reader panic or run on.

use std::time::{Duration, Instant};

use crate::support::{Sample, long, read_all, samples, sum_again};

/// Bytes of a table whose every change is tried; of those beyond, every n-th.
const WHOLE_BYTES: usize = 100;

/// Values that a byte is changed to: all in a long run.
fn values(original: u8) -> Vec<u8> {
    if long() {
        return (0..=u8::MAX).filter(|value| *value != original).collect();
    }
    let near = [
        0,
        1,
        2,
        0x7f,
        0x80,
        0xff,
        original.wrapping_add(1),
        original ^ 0x10,
    ];
    near.into_iter()
        .filter(|value| *value != original)
        .collect()
}

fn stride(sample: &Sample) -> usize {
    if long() {
        1
    } else {
        sample.bytes.len().div_ceil(WHOLE_BYTES)
    }
}

#[test]
fn every_truncation_of_every_table_is_survived() {
    let (mut reads, started) = (0_u64, Instant::now());
    for sample in samples() {
        let mut refused = 0;
        for length in 0..sample.bytes.len() {
            let cut = &sample.bytes[..length];
            if numalab_acpi::AnyTable::read(cut).is_err() {
                refused += 1;
            }
            // And cut where the header agrees, so that the entries are met.
            if length >= 36 && length.is_multiple_of(stride(&sample)) {
                let mut cut = cut.to_vec();
                let header = u32::try_from(length).expect("small");
                cut[4..8].copy_from_slice(&header.to_le_bytes());
                sum_again(&mut cut);
                read_all(&cut);
            }
            reads += 2;
        }
        // Only a header that gives less than there is may be taken from fewer bytes.
        let given = u32::from_le_bytes(sample.bytes[4..8].try_into().expect("four bytes"));
        let given = usize::try_from(given).expect("small");
        assert!(
            refused >= given.min(sample.bytes.len()),
            "{}: {refused}",
            sample.file
        );
    }
    println!("{reads} truncated tables read in {:?}", started.elapsed());
}

#[test]
fn every_changed_byte_of_every_table_is_survived() {
    let (mut reads, mut slowest) = (0_u64, Duration::ZERO);
    for sample in samples() {
        let mut bytes = sample.bytes.clone();
        for at in (0..bytes.len()).filter(|at| *at < 64 || at.is_multiple_of(stride(&sample))) {
            let original = bytes[at];
            for value in values(original) {
                bytes[at] = value;
                let started = Instant::now();
                read_all(&bytes);
                slowest = slowest.max(started.elapsed());
                reads += 1;
            }
            bytes[at] = original;
        }
    }
    println!("{reads} changed tables read, the slowest in {slowest:?}");
}
