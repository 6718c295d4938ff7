//! Machines with tiers of memory, without booting them.

use crate::command::{numalab, prints, run, stderr};

const TIERS: &str = "2G@100ns,20G/s,8G@300ns,10G/s,cache=64M";

#[test]
fn tiers_are_shown_with_the_cost_of_their_memory() {
    let text = prints(&["topology", "--emulate-tiers", TIERS, "--cpus", "4"]);
    let tiers: Vec<&str> = text
        .lines()
        .skip_while(|line| *line != "Memory tiers")
        .skip(3)
        .take_while(|line| !line.is_empty())
        .collect();
    let rows: Vec<Vec<&str>> = tiers.iter().map(|row| row.split_whitespace().collect()).collect();
    assert_eq!(rows, [["4", "0", "2G", "100.0", "20.0"], ["27", "1", "8G", "300.0", "10.0"]]);
}

#[test]
fn the_drawing_names_the_tier_of_each_node() {
    let drawn = prints(&["topology", "--emulate-tiers", TIERS, "--format", "svg"]);
    let names = ["node 0 · tier 4", "node 1 · tier 27"];
    assert!(names.iter().all(|name| drawn.contains(name)), "{drawn}");
}

#[test]
fn the_same_machine_comes_back_from_its_description() {
    let toml = prints(&["topology", "--emulate-tiers", TIERS, "--format", "toml"]);
    let directory = tempfile::tempdir().expect("made");
    let file = directory.path().join("tiers.toml");
    std::fs::write(&file, &toml).expect("written");
    let file = file.to_str().expect("UTF-8");
    let machine = |source: [&str; 2]| {
        let text = prints(&[&["topology", "--format", "json"], &source[..]].concat());
        let topology: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        topology["machine"].clone()
    };
    assert_eq!(machine(["--topology", file]), machine(["--emulate-tiers", TIERS]));
}

#[test]
fn qemu_gets_latencies_bandwidths_and_the_cache() {
    let words = prints(&["topology", "--emulate-tiers", TIERS, "--format", "qemu"]);
    for word in [
        "hmat-lb,initiator=0,target=1,hierarchy=memory,data-type=access-latency,latency=300",
        "hmat-lb,initiator=0,target=1,hierarchy=memory,data-type=access-bandwidth,bandwidth=10000M",
        "hmat-cache,node-id=1,size=67108864,level=1",
        "dist,src=0,dst=1,val=30",
    ] {
        assert!(words.contains(word), "{word} is not in:\n{words}");
    }
}

#[test]
fn tiers_that_linux_could_not_have_are_bad_input() {
    let seventeen: Vec<String> = (1..=17).map(|n| format!("64M@{}ns", n * 100)).collect();
    for (tiers, expected) in [
        ("2G@100ns,8G", "`8G` in `2G@100ns,8G`: a tier without a latency"),
        ("2G@100ns", "1 tiers: expected 2 to 16"),
        (&seventeen.join(","), "17 tiers: expected 2 to 16"),
        ("2G@100ns,8G@105ns", "tier 1, 105 ns at 20000 MB/s: Linux puts it into the tier"),
        ("2G@100ns,8G@300ns,10", "`10` in"),
    ] {
        let shown = run(&["topology", "--emulate-tiers", tiers]);
        let guest = ["guest", "run", "--kernel", "backports", "--emulate-tiers", tiers];
        let booted = run(&[&guest[..], &["--", "true"]].concat());
        // A command that runs another uses the codes of env(1) for its own failures.
        for (output, code) in [(shown, 2), (booted, 125)] {
            let error = stderr(&output);
            assert_eq!(output.status.code(), Some(code), "{tiers}: {error}");
            assert!(error.contains(expected), "{tiers}: {error}");
        }
    }
}

/// Returns the head of a Linux 6.1.99, in a separate directory.
fn old_kernel() -> (tempfile::TempDir, String) {
    let directory = tempfile::tempdir().expect("made");
    let kernel = directory.path().join("bzImage");
    let mut image = vec![0; 0x400];
    image[0x202..0x206].copy_from_slice(b"HdrS");
    image[0x20f] = 1;
    image[0x300..0x306].copy_from_slice(b"6.1.99");
    std::fs::write(&kernel, image).expect("written");
    let kernel = kernel.to_str().expect("UTF-8").to_owned();
    (directory, kernel)
}

#[test]
fn a_kernel_too_old_for_tiers_is_refused_before_the_boot() {
    let (_directory, kernel) = old_kernel();
    let kernel = kernel.as_str();
    let words = ["guest", "run", "--kernel", kernel, "--emulate-tiers", TIERS, "--", "true"];
    // An existing file as plugin: the command is refused before QEMU loads it.
    let output = numalab(&words).env("NUMALAB_EMULATOR", kernel).output().expect("it starts");
    let error = stderr(&output);
    assert_eq!(output.status.code(), Some(125), "{error}");
    let expected = "Linux 6.1.99 does not build memory tiers from HMAT's latencies: expected 6.10 or later; \
                    --kernel backports";
    assert!(error.contains(expected), "{error}");
}

#[test]
fn a_kernel_too_old_for_tiers_is_refused_with_the_setting_that_gets_a_newer_one() {
    let (directory, kernel) = old_kernel();
    let set = format!("kernel={kernel}");
    let mut study = numalab(&["study", "run", "tiering", "--set", &set]);
    study.env("NUMALAB_EMULATOR", &kernel).current_dir(directory.path());
    let output = study.output().expect("it starts");
    let error = stderr(&output);
    assert_eq!(output.status.code(), Some(3), "{error}");
    if error.contains("--fetch-qemu") || error.contains("apt-get install") {
        eprintln!("NOT RUN: {error}");
        return;
    }
    let expected = "Linux 6.1.99 does not build memory tiers from HMAT's latencies: expected 6.10 or later; \
                    --set kernel=backports, or kernel = \"backports\" where a level sets it";
    assert!(error.contains(expected), "{error}");
}

#[test]
fn tiers_cover_the_whole_machine() {
    for other in [["--emulate", "2"], ["--source", "sysfs"], ["--memory", "2G"]] {
        let output = run(&[&["topology", "--emulate-tiers", TIERS][..], &other].concat());
        assert_eq!(output.status.code(), Some(2), "{other:?}");
    }
}

#[test]
fn weights_are_advised_by_bandwidth() {
    let text = prints(&["topology", "--emulate-tiers", TIERS]);
    let weights = text.lines().skip_while(|line| *line != "Weights for interleaving").skip(3);
    let rows: Vec<Vec<&str>> =
        weights.take(2).map(|row| row.split_whitespace().collect()).collect();
    assert_eq!(rows, [["0", "20.0", "2"], ["1", "10.0", "1"]]);
}

#[test]
fn weights_that_cannot_be_set_are_refused() {
    for (arguments, code, expected) in [
        (&["--weights", "2,0"][..], 2, "`2,0`: expected auto, or a weight from 1 to 255"),
        (&["--weights", "auto"], 2, "--weights: expected --policy weighted as well"),
        (
            &["--policy", "weighted", "--weights", "1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1"],
            2,
            "17 weights for",
        ),
    ] {
        let output = run(&[&["bind"][..], arguments, &["--", "true"]].concat());
        let error = stderr(&output);
        assert!(error.contains(expected), "{arguments:?}: {error}");
        assert!([Some(code), Some(125)].contains(&output.status.code()), "{arguments:?}: {error}");
    }
}

#[test]
fn a_machine_with_one_tier_is_named_where_the_probe_needs_two() {
    let output = run(&["study", "probe", "tiering"]);
    let error = stderr(&output);
    if output.status.code() != Some(0) {
        assert_eq!(output.status.code(), Some(3), "{error}");
        assert!(error.contains("--emulate-tiers"), "{error}");
    }
    let output = run(&["study", "probe", "tiering", "--size", "8M", "--hot", "6M"]);
    let error = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{error}");
    assert!(
        error.contains("--hot: a hot set of 6 MiB: expected at least a page and at most half"),
        "{error}"
    );
}
