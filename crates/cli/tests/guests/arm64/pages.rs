//! A guest of Debian's arm64 kernel with 16 KiB pages. Debian builds none with 64 KiB.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::lab::{Lab, run, stderr, stdout, was_booted};

const SUITE: &str = "bookworm-backports";
const META: &str = "linux-image-arm64-16k";
const LOOK: &str = "uname -r
numalab topology | grep 'huge pages'
numalab latency --size 1M --pages 4k --budget 1s
numalab latency --size 64K --pages 16k --cpus 0 --nodes 0 --budget 2s";

/// Fetches the kernel's package with lists that are kept apart from the system's.
fn package(directory: &Path) -> Option<PathBuf> {
    for part in ["state/lists/partial", "cache/archives/partial"] {
        fs::create_dir_all(directory.join(part)).expect("made");
    }
    let keys = "/usr/share/keyrings/debian-archive-keyring.gpg";
    let line =
        format!("deb [arch=arm64 signed-by={keys}] http://deb.debian.org/debian {SUITE} main\n");
    fs::write(directory.join("sources.list"), line).expect("written");
    let at = |name: &str| directory.join(name).display().to_string();
    let apt = |program: &str, words: &[&str]| {
        let mut command = Command::new(program);
        for option in [
            format!("Dir::State={}", at("state")),
            format!("Dir::Cache={}", at("cache")),
            format!("Dir::Etc::sourcelist={}", at("sources.list")),
            "Dir::Etc::sourceparts=/dev/null".to_owned(),
            "APT::Architecture=arm64".to_owned(),
            "APT::Architectures=arm64".to_owned(),
            "APT::Sandbox::User=root".to_owned(),
            "Acquire::Languages=none".to_owned(),
        ] {
            command.args(["-o", &option]);
        }
        command.args(words).current_dir(directory).output().ok().filter(|out| out.status.success())
    };
    apt("apt-get", &["-q", "update"])?;
    let shown = stdout(&apt("apt-cache", &["depends", META])?);
    let name = shown.lines().find_map(|line| line.trim().strip_prefix("Depends: linux-image-"))?;
    apt("apt-get", &["-q", "download", &format!("linux-image-{name}")])?;
    let mut files = fs::read_dir(directory).ok()?.filter_map(|entry| Some(entry.ok()?.path()));
    files.find(|file| file.extension().is_some_and(|end| end == "deb"))
}

#[test]
fn a_kernel_with_larger_pages_shows_and_takes_its_own_sizes() {
    let lab = Lab::open();
    let Some(kernel) = package(lab.path()) else {
        let required = std::env::var_os("NUMALAB_REQUIRE_TOOLS").is_some_and(|value| value == "1");
        assert!(!required, "{META} of {SUITE} cannot be fetched");
        eprintln!("NOT RUN: {META} of {SUITE} cannot be fetched");
        return;
    };
    let kernel = kernel.to_str().expect("UTF-8");
    let machine =
        ["--arch", "aarch64", "--emulate", "512M,512M", "--cpus", "2", "--kernel", kernel];
    let output = run(
        lab.path(),
        &[&["guest", "run"], &machine[..], &["--timeout", "600s", "--", "sh", "-c", LOOK]].concat(),
    );
    if !was_booted(&output) {
        return;
    }
    let (shown, errors) = (stdout(&output), stderr(&output));
    assert!(shown.contains("-arm64-16k\n"), "{shown}{errors}");
    assert!(shown.contains("their sizes are 2M, 32M, 1G"), "{shown}{errors}");
    let all = format!("{shown}{errors}");
    assert!(all.contains("no pages of 4k: expected one of 16k, thp, 2m, 32m, 1g"), "{all}");
    assert!(shown.contains("over 64K, 16k pages"), "{all}");
}
