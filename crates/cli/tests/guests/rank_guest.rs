//! Ranks on a machine with four nodes: a guest.

use std::process::{Command, Stdio};

use crate::schemas;

/// Two cpus in each of four nodes, like the guest.
const ARCHITECTURE: &str = "\
SYSTEM_NAME=\"GUEST\"
PARTITION=\"FOUR\"
CCDS_PER_NUMA=1
Thread(s) per core: 1
NUMA node0 CPU(s): 0,1
NUMA node1 CPU(s): 2,3
NUMA node2 CPU(s): 4,5
NUMA node3 CPU(s): 6,7
";

/// Script of the guest, with a line to announce each part.
const WORK: &str = r#"
work='--size=1 --pages=4k --iterations=500 -q'
part() { echo "== $1"; }
part auto
numalab bind --ranks 8 --cpus=0-7 --numa=auto -q -- $work --csv=auto.csv >/dev/null && cat mapping_check.log
part list
numalab bind --ranks 4 --cpus=0,2,4,6 --numa=3,2,1,0 -q -- $work --csv=list.csv >/dev/null && cat mapping_check.log
part own
numalab latency --ranks 3 $work --csv=own.csv >/dev/null && cut -d, -f1,3,4 mapping_check.log
part spread
numalab bind --numa=0,2 --policy interleave -q -- numalab latency --ranks 2 $work --format=json
part shared
numalab bind --ranks 3 --cpus=0,1,0 --numa=0 -q -- $work; echo "exit $?"
part moved
numalab latency --ranks 1 --nodes 0 --size=4 --pages=4k --iterations=60000000 -q >/dev/null & rank=$!
while kill -0 $rank 2> /dev/null; do
  for process in $(grep -lx numalab /proc/[0-9]*/comm | cut -d/ -f3); do
    # Stopped meanwhile: on a busy host a rank was done before its pages were moved.
    kill -STOP $process; migratepages $process 0 1; kill -CONT $process
  done 2> /dev/null
  sleep 0.1
done
wait $rank; echo "exit $?"
part weighted
numalab bind --numa=0,1 --policy weighted -- true; echo "exit $?"
part absent
numalab bind --numa=4 -- true; echo "exit $?"
part scale
printf '%s' "$ARCHITECTURE" > arch
numalab scale --arch arch --sequential 0,3 --memory-sizes 1 --launcher local -q \
  --rank-option=--pages=4k --rank-option=--iterations=500; echo "exit $?"
cd results_scaling/local_*; ls *.csv; cat mapping_check.log
grep -h 'numalab: ' *.log
part end
"#;

struct Parts(String);

impl Parts {
    fn part(&self, name: &str) -> &str {
        let (_, rest) = self.0.split_once(&format!("== {name}\n")).unwrap_or_else(|| {
            panic!("no part `{name}` in {}", self.0);
        });
        rest.split_once("== ").map_or(rest, |(part, _)| part)
    }
}

#[test]
fn ranks_on_four_nodes_are_where_they_are_bound_and_prove_it() {
    let directory = tempfile::Builder::new().prefix("nl").tempdir_in("/tmp").expect("made");
    let machine = ["guest", "run", "--quiet", "--emulate", "4", "--cpus", "8", "--memory", "2G"];
    let tools = ["--with", "numactl"];
    let script = format!("ARCHITECTURE='{ARCHITECTURE}'\nexec 2>&1\n{WORK}");
    let output = Command::new(env!("CARGO_BIN_EXE_numalab"))
        .args(machine)
        .args(tools)
        .args(["--", "sh", "-c", &script])
        .env("XDG_RUNTIME_DIR", directory.path().join("run"))
        // The host's launcher does not launch in the guest.
        .env("SLURM_PROCID", "3")
        .env("SLURM_STEP_ID", "0")
        .env("SLURM_STEP_NUM_TASKS", "4")
        .stdin(Stdio::null())
        .output()
        .expect("numalab starts");
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.code() == Some(125) {
        let required = std::env::var_os("NUMALAB_REQUIRE_TOOLS").is_some_and(|v| v == "1");
        assert!(!required, "no guest can be booted here: {errors}");
        eprintln!("NOT RUN: no guest can be booted here: {errors}");
        return;
    }
    assert_eq!(output.status.code(), Some(0), "{errors}");
    let parts = Parts(String::from_utf8_lossy(&output.stdout).replace('\r', ""));
    check_bindings(&parts);
    check_refusals(&parts);
    check_scale(parts.part("scale"));
}

fn check_bindings(parts: &Parts) {
    const HEADER: &str = "rank,cpu_id,cpu_numa,memory_numa\n";
    let auto = "0,0,0,0\n1,1,0,1\n2,2,1,2\n3,3,1,3\n4,4,2,0\n5,5,2,1\n6,6,3,2\n7,7,3,3\n";
    assert_eq!(parts.part("auto"), format!("{HEADER}{auto}"));
    assert_eq!(parts.part("list"), format!("{HEADER}0,0,0,3\n1,2,1,2\n2,4,2,1\n3,6,3,0\n"));
    // Unbound ranks take separate cores, and memory on their core's node.
    assert_eq!(parts.part("own"), "rank,cpu_numa,memory_numa\n0,0,0\n1,0,0\n2,1,1\n");
    let spread = schemas::document(parts.part("spread"));
    for rank in 0..2 {
        assert_eq!(spread["launch"]["ranks"][rank]["policy"], "interleave:0,2");
        let placement = &spread["cells"][rank]["placements"][0];
        assert_eq!(placement["pages_per_node"], serde_json::json!({"0": 128, "2": 128}));
        assert_eq!(placement["method"], "move-pages");
    }
}

fn check_refusals(parts: &Parts) {
    let shared = parts.part("shared");
    assert!(shared.contains("cpu 0 twice"), "{shared}");
    assert!(shared.ends_with("exit 125\n"), "{shared}");
    // A rank that moves its memory is detected at the end at the latest.
    let moved = parts.part("moved");
    assert!(moved.contains("[Rank 0]") && moved.contains("on node 1"), "{moved}");
    assert!(moved.ends_with("exit 1\n"), "{moved}");
    let weighted = parts.part("weighted");
    assert!(weighted.contains("Linux 6.9") && weighted.ends_with("exit 125\n"), "{weighted}");
    let absent = parts.part("absent");
    assert!(absent.contains("node 4") && absent.ends_with("exit 125\n"), "{absent}");
}

fn check_scale(part: &str) {
    let expected = "exit 0\nsequential_domains0,3_2ranks_1MB.csv\n\
                    sequential_domains0,3_4ranks_1MB.csv\nrank,cpu_id,cpu_numa,memory_numa\n\
                    0,0,0,0\n1,1,0,0\n2,6,3,3\n3,7,3,3\n";
    assert_eq!(part, expected);
}
