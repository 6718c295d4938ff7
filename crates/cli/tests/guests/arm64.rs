//! Guests for aarch64: one boot that looks at itself, and one through UEFI firmware, with
//! memory that takes the time of its HMAT.
//!
//! They need QEMU for aarch64 (fetched from Debian's backports into the cache where the system has
//! none, or one older than 10), Debian's arm64 kernel, and numalab built for aarch64. With
//! `NUMALAB_REQUIRE_TOOLS=1` their lack is a failure; otherwise it is printed.

mod emulated;
mod lab;
mod pages;
mod study;

use std::fs;

use numalab_topology::{Machine, NodeId};

use lab::{Lab, booted, build, numalab, run, stderr};

use crate::schemas;

#[test]
fn nodes_cpus_memory_and_distances_of_an_aarch64_guest_are_those_asked_for() {
    let Some(booted) = booted() else { return };
    assert!(booted.kernel.ends_with("-arm64 aarch64\n"), "{}", booted.errors);
    assert!(booted.errors.contains("differs from this machine's"), "{}", booted.errors);
    assert!(booted.errors.ends_with("to errors\n"), "{}", booted.errors);
    assert!(booted.listed.contains("2 nodes, 4 cpus, 768 MiB: sh -c"), "{}", booted.listed);
    let found = schemas::document(&booted.topology);
    let machine: Machine = serde_json::from_value(found["machine"].clone()).expect("a machine");
    let cpus: Vec<String> = machine.nodes.iter().map(|node| node.cpus.to_string()).collect();
    assert_eq!(cpus, ["0,1", "2,3"]);
    assert_eq!(found["machine"]["distances"], serde_json::json!([[10, 21], [21, 10]]));
    for (node, mib) in [(0, 512_u64), (1, 256)] {
        let bytes = machine.node(NodeId(node)).expect("a node").memory_bytes;
        // The kernel itself takes part of the memory.
        assert!(bytes <= mib << 20 && bytes > (mib - 48) << 20, "node {node}: {bytes}");
    }
}

#[test]
fn a_program_of_an_arm64_package_sees_both_nodes_and_a_module_of_its_kernel_is_loaded() {
    let Some(booted) = booted() else { return };
    let text = &booted.numactl;
    assert!(text.contains("available: 2 nodes (0-1)"), "{text}");
    assert!(text.contains("node 1 cpus: 2 3"), "{text}");
    assert_eq!(booted.modules, "/dev/ram0\n");
}

#[test]
fn options_that_an_aarch64_guest_lacks_are_refused_before_the_boot() {
    // Its absence would be reported first.
    build(&["-p", "numalab-emulator"], &[]);
    let directory = tempfile::tempdir().expect("made");
    fs::write(directory.path().join("numalab-aarch64"), "").expect("written");
    let this = env!("CARGO_BIN_EXE_numalab");
    for (arguments, words) in [
        (&["--kernel", "numalab"][..], "expected a Linux guest"),
        (&["--kernel", this, "--raw"], "expected a Linux guest, without --raw"),
        (&["--emulate-tiers", "512M@100ns,256M@300ns", "--cxl"], "does not support CXL memory"),
        (&["--accel", "kvm"], "does not support KVM"),
        (&["--with", this], "a program for x86_64, expected one for aarch64"),
    ] {
        let dry = ["guest", "run", "--arch", "aarch64", "--dry-run"];
        let output = run(directory.path(), &[&dry, arguments, &["--", "true"]].concat());
        let errors = stderr(&output);
        assert_eq!(output.status.code(), Some(125), "{arguments:?}: {errors}");
        assert!(errors.contains(words), "{arguments:?}: {errors}");
    }
    for (arguments, code, words) in [
        (&["run", "--arch", "riscv64"][..], 125, "expected x86_64 or aarch64"),
        (&["image", "--arch", "aarch64", "--iso", "x.iso"], 2, "own kernel runs on x86_64 only"),
    ] {
        let output = run(directory.path(), &[&["guest"], arguments].concat());
        let errors = stderr(&output);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {errors}");
        assert!(errors.contains(words), "{arguments:?}: {errors}");
    }
}

#[test]
fn options_of_the_other_architecture_are_refused_and_a_missing_numalab_names_its_build() {
    let lab = Lab::open();
    let here = lab.path();
    let own = here.join("numalab-aarch64");
    let own = own.to_str().expect("UTF-8");
    for (arguments, words) in [
        (&["--", own][..], "a program for aarch64, expected one for x86_64"),
        (&["--kernel", own, "--", "true"], "a kernel for aarch64, expected one for x86_64"),
    ] {
        let output = run(here, &[&["guest", "run"], arguments].concat());
        assert_eq!(output.status.code(), Some(125), "{arguments:?}");
        assert!(stderr(&output).contains(words), "{arguments:?}: {}", stderr(&output));
    }
    for (program, words) in [
        (env!("CARGO_BIN_EXE_numalab"), "a program for x86_64, expected one for aarch64"),
        ("/no/such", "build it with `make aarch64` in numalab's source"),
    ] {
        let mut command = numalab(here, &["guest", "run", "--arch", "aarch64", "--", "true"]);
        let output = command.env("NUMALAB_AARCH64", program).output().expect("numalab starts");
        assert_eq!(output.status.code(), Some(125), "{program}");
        assert!(stderr(&output).contains(words), "{program}: {}", stderr(&output));
    }
}
