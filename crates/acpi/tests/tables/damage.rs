//! No truncation and no changed byte makes a reader panic or fail to end.

use std::num::NonZero;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Instant;

use crate::support::{Sample, codes, long, read_all, samples, sum_again};

/// The number of bytes of a table that are changed, evenly spread, in the usual and the long form.
const CHANGED: [usize; 2] = [100, 250];

/// Returns the values that a byte is changed to, chosen because bounds, flags and lengths depend on
/// them.
fn telling_values(original: u8) -> impl Iterator<Item = u8> {
    let values = [0, 1, 2, 0x7f, 0x80, 0xff, original.wrapping_add(1), original ^ 0x10];
    values.into_iter().filter(move |value| *value != original)
}

fn stride(sample: &Sample) -> usize {
    sample.bytes.len().div_ceil(CHANGED[usize::from(long())])
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
            // The table is also cut with a matching header length, so that its entries are read.
            if length >= 36 && length.is_multiple_of(stride(&sample)) {
                let mut cut = cut.to_vec();
                let header = u32::try_from(length).expect("small");
                cut[4..8].copy_from_slice(&header.to_le_bytes());
                sum_again(&mut cut);
                read_all(&cut);
            }
            reads += 2;
        }
        // A shortened table may only be accepted if its header gives no more than that length.
        let given = u32::from_le_bytes(sample.bytes[4..8].try_into().expect("four bytes"));
        let given = usize::try_from(given).expect("small");
        assert!(refused >= given.min(sample.bytes.len()), "{}: {refused}", sample.file);
    }
    println!("{reads} truncated tables read in {:?}", started.elapsed());
}

#[test]
fn every_changed_byte_of_every_srat_is_survived() {
    change_each_byte_of_all(|sample| sample.signature == "SRAT");
}

#[test]
fn every_changed_byte_of_every_other_table_is_survived() {
    change_each_byte_of_all(|sample| sample.signature != "SRAT");
}

/// Divides the tables among all processors.
fn change_each_byte_of_all(wanted: fn(&Sample) -> bool) {
    let (reads, next) = (AtomicU64::new(0), AtomicUsize::new(0));
    let samples: Vec<Sample> = samples().into_iter().filter(wanted).collect();
    let started = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, NonZero::get) {
            scope.spawn(|| {
                while let Some(sample) = samples.get(next.fetch_add(1, Ordering::Relaxed)) {
                    reads.fetch_add(change_each_byte(sample), Ordering::Relaxed);
                }
            });
        }
    });
    println!("{reads:?} changed tables read in {:?}", started.elapsed());
}

/// Reads a table with each byte changed in turn; returns the number of reads.
fn change_each_byte(sample: &Sample) -> u64 {
    let (long, mut reads) = (long(), 0);
    let mut bytes = sample.bytes.clone();
    for at in (0..bytes.len()).filter(|at| *at < 64 || at.is_multiple_of(stride(sample))) {
        let original = bytes[at];
        for value in telling_values(original) {
            bytes[at] = value;
            read_all(&bytes);
            reads += 1;
        }
        // The other values are not printed, because that would take most of the time.
        for value in (0..=u8::MAX).filter(|_| long) {
            bytes[at] = value;
            codes(&bytes);
            reads += 1;
        }
        bytes[at] = original;
    }
    reads
}
