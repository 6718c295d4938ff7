//! One guest of four nodes, booted once and looked at by many tests: distances
//! 10/12/20/22, local memory at 100 ns, 1 GB/s for each node's memory, an L1 of 32 KiB.

use std::sync::OnceLock;

use crate::lab::{Answer, Lab};

pub const DISTANCES: [[u32; 4]; 4] =
    [[10, 12, 20, 22], [12, 10, 22, 20], [20, 22, 10, 12], [22, 20, 12, 10]];
pub const LOCAL_NS: f64 = 100.0;
/// Bytes a nanosecond that each node's memory gives at most.
pub const NODE_BANDWIDTH: f64 = 1.0;

const SCRIPT: &str = "\
echo 0 > /proc/sys/kernel/numa_balancing
latency='numalab latency --size 2M --per node --pages 4k --seed 1 --format csv -q'
echo '== matrix 1'; $latency
echo '== matrix 2'; $latency
echo '== says'; numalab latency --size 1M --cpus 0 --nodes 0 --pages 4k --seed 1
for node in 0 1 2 3; do
  echo \"== numactl $node\"; numactl --physcpubind=0 --membind=$node CHASE 0 0 2 4k 1 0
done
echo '== first touch'; CHASE 6 0 2 4k 1 0
echo '== bind'; numalab bind -q --numa=2 -- CHASE 0 0 2 4k 1 0
echo '== preferred'; numalab bind -q --numa=1 --policy preferred -- CHASE 0 0 2 4k 1 0
echo '== interleave'; numalab bind -q --numa=0,1,2,3 --policy interleave -- CHASE 0 0 2 4k 1 0
echo always > /sys/kernel/mm/transparent_hugepage/enabled
echo '== huge'; numalab bind -q --numa=2 -- CHASE 0 0 4 thp 1 0
echo '== stays'; CHASE 6 0 2 4k 3 1500
echo 1 > /proc/sys/kernel/numa_balancing
echo '== moves'; CHASE 6 0 2 4k 8 1000
echo 0 > /proc/sys/kernel/numa_balancing
echo '== marked'; numalab mark --phase 3 -- CHASE 0 0 1 4k 1 0
echo '== weights'
weights=/sys/kernel/mm/mempolicy/weighted_interleave
if test -d $weights; then
  echo 3 > $weights/node0; echo 1 > $weights/node3
  numalab bind -q --numa=0,3 --policy weighted -- CHASE 0 0 2 4k 1 0
else
  echo none in Linux $(uname -r)
fi
bandwidth='numalab bandwidth --kernel read --size 4M --pages 4k --nodes 0 --seed 1 --format csv -q'
echo '== one reader'; $bandwidth --cpus 0
echo '== two readers'; $bandwidth --cpus 0,1
";

const ARGUMENTS: [&str; 12] = [
    "--emulate",
    "512M,512M,512M,512M",
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
];

/// What the guest found, and what the emulator reported of it.
pub struct Booted {
    pub answer: Answer,
    pub report: String,
}

/// The guest, booted by the first test that asks.
pub fn booted() -> Option<&'static Booted> {
    static BOOTED: OnceLock<Option<Booted>> = OnceLock::new();
    BOOTED.get_or_init(|| boot(&[])).as_ref()
}

/// The guest with further arguments.
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
