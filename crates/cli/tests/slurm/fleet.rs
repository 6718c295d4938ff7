//! `numalab fleet` as a real job array.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use crate::{classes, lab, schemas};

const NUMALAB: &str = env!("CARGO_BIN_EXE_numalab");

fn prints(command: &mut Command) -> String {
    let output = command.output().expect("it starts");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{command:?}: {errors}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Lets the lab's daemons run a health check, for which node m1 has a baseline five times as fast,
/// and all others a slower one.
fn check_health_of(lab: &lab::Lab) {
    use std::os::unix::fs::PermissionsExt;
    let place = lab.directory();
    let run = classes::measured(&place);
    let fast = classes::class(&run, &place.join("fast"), 0.2, 1);
    let slow = classes::class(&run, &place.join("slow"), 5.0, 1);
    let check =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../integrations/slurm/numalab-health");
    let script = format!(
        "#!/bin/bash\nexport NUMALAB={NUMALAB} SLURM_CONF={0}/slurm.conf TMPDIR={0}\n\
         export NUMALAB_HEALTH_OPTIONS='--budget 2s' NUMALAB_HEALTH_BASELINE={1}\n\
         [ \"$SLURMD_NODENAME\" = m1 ] || NUMALAB_HEALTH_BASELINE={2}\n\
         exec {3}\n",
        place.display(),
        fast.display(),
        slow.display(),
        check.display(),
    );
    let program = place.join("health");
    fs::write(&program, script).expect("written");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("executable");
    let file = place.join("slurm.conf");
    let configuration = fs::read_to_string(&file).expect("slurm.conf");
    let check = format!("HealthCheckProgram={}\nHealthCheckInterval=5\n", program.display());
    fs::write(&file, check + &configuration).expect("written");
    prints(lab.command("scontrol").arg("reconfigure"));
}

#[test]
fn a_node_slower_than_its_class_is_drained_by_slurm_with_the_reason() {
    // A separate lab: the drained node would not take jobs of other tests.
    let Some(lab) = lab::Lab::start(&["n1", "n2", "m1"]) else { return };
    check_health_of(&lab);
    let state = |node: &str| {
        let mut sinfo = lab.command("sinfo");
        prints(sinfo.args(["--noheader", "--nodes", node, "--format", "%T|%E"])).trim().to_owned()
    };
    let begun = Instant::now();
    while !state("m1").starts_with("drain") {
        assert!(begun.elapsed() < Duration::from_secs(120), "not drained: {}", state("m1"));
        thread::sleep(Duration::from_millis(200));
    }
    let drained = state("m1");
    let reason = drained.split_once('|').expect("a reason").1;
    assert!(reason.starts_with("numalab: node "), "{drained}");
    assert!(reason.contains(" latency ") && reason.ends_with("above the baseline"), "{drained}");
    for node in ["n1", "n2"] {
        assert!(!state(node).contains("drain"), "{}", state(node));
    }
}

/// Both nodes are this machine; the test needs only a separate task on each.
#[test]
fn a_job_array_measures_every_host_of_a_partition_and_is_collected_as_it_grows() {
    let Some(lab) = lab::lab() else { return };
    let place = lab.directory().join("fleet");
    let place = place.to_str().expect("UTF-8");
    let in_lab = |arguments: &[&str]| {
        let mut command = lab.command(NUMALAB);
        command.arg("fleet").args(arguments);
        command
    };
    let measure = ["--", "latency", "--size", "64K,1M", "--cpus", "0", "--budget", "2s"];
    let submitted =
        prints(&mut in_lab(&[&["submit", "--partition", "lab", place][..], &measure].concat()));
    assert!(submitted.contains(": 2 hosts\n"), "{submitted}");
    let begun = Instant::now();
    while !prints(lab.command("squeue").arg("--noheader")).trim().is_empty() {
        assert!(begun.elapsed() < Duration::from_secs(120), "the jobs do not end");
        thread::sleep(Duration::from_millis(200));
    }
    for host in ["n1", "n2"] {
        let hosts = Path::new(place).join("hosts").join(host);
        let runs = fs::read_dir(&hosts).unwrap_or_else(|error| panic!("{host}: {error}"));
        assert_eq!(runs.count(), 1, "{host} was measured once");
    }
    let collected = prints(&mut in_lab(&["collect", place]));
    assert!(collected.contains(": 2 runs read, 0 unchanged, 0 unreadable"), "{collected}");
    let again = prints(&mut in_lab(&["collect", place]));
    assert!(again.contains(": 0 runs read, 2 unchanged"), "{again}");
    let report = prints(&mut in_lab(&["report", place, "--format", "json"]));
    let json = schemas::document(&report);
    assert_eq!((&json["schema"], &json["hosts"]), (&"numalab/fleet-2".into(), &2.into()));
    assert_eq!(json["untested"][0]["alike"], 2);
    let page = prints(&mut in_lab(&["report", place]));
    assert!(page.contains("n2") && page.contains("2 hosts of its kind; a test needs 10"), "{page}");
}
