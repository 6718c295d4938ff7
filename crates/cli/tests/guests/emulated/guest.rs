//! A guest of four nodes, booted once for many tests: distances 10/12/20/22, local memory at 100
//! ns, 1 GB/s for each node's memory, an L1 of 32 KiB. The last node is small because a test fills it.

use std::sync::LazyLock;

use super::lab::{Answer, Lab};

pub const DISTANCES: [[u32; 4]; 4] =
    [[10, 12, 20, 22], [12, 10, 22, 20], [20, 22, 10, 12], [22, 20, 12, 10]];
pub const LOCAL_NS: f64 = 100.0;
/// Bandwidth of each node's memory, in bytes per nanosecond.
pub const NODE_BANDWIDTH: f64 = 1.0;

const SCRIPT: &str = include_str!("script.sh");

const ARGUMENTS: [&str; 14] = [
    "--emulate",
    "512M,256M,256M,160M",
    "--cpus",
    "8",
    "--distances",
    "10,12,20,22;12,10,22,20;20,22,10,12;22,20,12,10",
    "--emulate-latency",
    "100",
    "--emulate-bandwidth",
    "1G",
    "--emulate-cache",
    "32K",
    "--module",
    "brd",
];

/// The guest's findings, and the emulator's report on it.
pub struct Booted {
    pub answer: Answer,
    pub report: String,
}

/// Returns the guest, booted by the first test that needs it.
pub fn booted() -> Option<&'static Booted> {
    static BOOTED: LazyLock<Option<Booted>> = LazyLock::new(|| boot(&[]));
    BOOTED.as_ref()
}

/// Boots the guest with further arguments.
pub fn boot(more: &[&str]) -> Option<Booted> {
    let lab = Lab::open();
    let file = lab.path("report.json").to_str().expect("UTF-8").to_owned();
    let mut arguments = ARGUMENTS.to_vec();
    arguments.extend(["--emulate-report", &file]);
    arguments.extend(more);
    let answer = lab.guest(&arguments, SCRIPT)?;
    let report = lab.read("report.json");
    Some(Booted { answer, report })
}
