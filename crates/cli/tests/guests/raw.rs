//! Foreign kernels from outside: `numalab guest run --raw`.
//!
//! The tests need what `kernel` needs, `grub-mkrescue`, and packages that are downloaded into the
//! cache once.

mod ostd;
mod x86_64;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use numalab_image::package::ensure_with_libraries;
use numalab_image::{Cache, Kernel, KernelChoice};

use crate::code::{Then, elf, firmware};
use crate::kernel_lab::{Lab, text};

/// Options common to all boots here; TCG makes them independent of the host.
const RAW: [&str; 5] = ["guest", "run", "--raw", "--accel", "tcg"];

fn boots(lab: &Lab, file: &str, options: &[&str]) -> Output {
    lab.numalab(&[&RAW[..], &["--memory", "256M", "--kernel", file], options].concat())
}

fn kept(lab: &Lab, name: &str, content: &[u8]) -> String {
    let path = lab.path(name);
    fs::write(&path, content).expect("written");
    path
}

fn errors(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn the_end_of_a_kernel_is_reported_and_becomes_the_exit_code() {
    let Some(lab) = Lab::open() else { return };
    let exits = kept(&lab, "exits.elf", &elf("3 of 4 tests\n", Then::Exit(7)));
    let faults = kept(&lab, "faults.elf", &elf("on the way\n", Then::TripleFault));
    let silent = kept(&lab, "silent.elf", &elf("", Then::Halt));
    let prompt = kept(&lab, "prompt.elf", &elf("login: ", Then::Halt));
    let firmware = kept(&lab, "firmware.bin", &firmware("reset vector\n", 0));
    let short = ["--timeout", "1s"];
    let cases: [(&str, &[&str], i32, &str, &str); 9] = [
        (&exits, &[], 7, "3 of 4 tests\n", "the guest wrote 7 to its exit port, after "),
        (
            &exits,
            &["--expect", r"^\d of 4"],
            0,
            "3 of 4 tests\n",
            "the expected line: 3 of 4 tests",
        ),
        (&exits, &["--fail", "3 of"], 4, "3 of 4 tests\n", "shows a failure: 3 of 4 tests"),
        (
            &exits,
            &["--expect", "4 of"],
            4,
            "3 of 4 tests\n",
            "no line of the console: the guest wrote 7",
        ),
        (&faults, &[], 125, "on the way\n", "the guest ended with a triple fault"),
        (&silent, &short, 125, "", "did not end within 1s; its first serial port printed nothing"),
        (&silent, &["--expect", "x", "--timeout", "1s"], 4, "", "--expect matches no line"),
        (&prompt, &["--expect", "^login:$"], 0, "login: ", "the expected line: login:"),
        (&firmware, &[], 0, "reset vector\n", "boots as firmware"),
    ];
    for (file, options, code, console, said) in cases {
        let output = boots(&lab, file, options);
        assert_eq!(text(&output, code), console, "{file} {options:?}");
        assert!(errors(&output).contains(said), "{file} {options:?}: {}", errors(&output));
    }
    let quiet = boots(&lab, &exits, &["--quiet"]);
    assert_eq!((text(&quiet, 7).as_str(), errors(&quiet).as_str()), ("3 of 4 tests\n", ""));
}

#[test]
fn accesses_of_a_kernel_are_counted_by_node_from_power_on() {
    let Some(lab) = Lab::open() else { return };
    let report = lab.path("report.json");
    let shape = ["--emulate", "2", "--cpus", "2", "--distances=10,20;20,10"];
    let charged = ["--emulate-latency", "100", "--emulate-report", &report];
    let words = ["--", "work=test_numa", "size=2M", "count=2000", "runs=1"];
    let kernel = lab.kernel.display().to_string();
    let output = boots(&lab, &kernel, &[&shape[..], &charged, &words].concat());
    // Our kernel writes this to the port at its end.
    let console = text(&output, 16);
    assert!(console.starts_with("@numalab 0 ") && console.contains("\n@numalab-end "), "{console}");
    let said = errors(&output);
    assert!(said.contains("boots as a PVH kernel"), "{said}");
    assert!(said.contains("Emulated memory of 2 cpus and 2 nodes"), "{said}");
    let counted = fs::read_to_string(&report).expect("kept");
    let counted: serde_json::Value = serde_json::from_str(&counted).expect("JSON");
    // Before the first marker the kernel reads its tables, on node 0.
    let first = &counted["phases"][0]["vcpus"][0]["nodes"][0];
    assert!(first["loads"].as_u64() > Some(1_000), "{counted}");
}

#[test]
fn an_iso_boots_by_itself_and_with_custom_firmware() {
    let Some(lab) = Lab::open() else { return };
    let iso = lab.path("numalab.iso");
    let made = lab.numalab(&["guest", "image", "--iso", &iso, "--", "work=none"]);
    if made.status.code() == Some(3) {
        let required = std::env::var_os("NUMALAB_REQUIRE_TOOLS").is_some_and(|v| v == "1");
        assert!(!required, "{}", errors(&made));
        eprintln!("NOT RUN: {}", errors(&made));
        return;
    }
    assert_eq!(made.status.code(), Some(0), "{}", errors(&made));
    let by_itself = boots(&lab, &iso, &["--expect", "^@numalab-end "]);
    let console = text(&by_itself, 0);
    assert!(console.contains("Booting `numalab'"), "{console}");
    let seabios = "/usr/share/seabios/bios-256k.bin";
    let options = ["--disk", &iso, "--timeout", "120s"];
    let by_firmware = boots(&lab, seabios, &options);
    assert!(text(&by_firmware, 16).contains("\n@numalab-end "), "{}", errors(&by_firmware));
    let refused = boots(&lab, &iso, &["--", "words"]);
    assert_eq!(refused.status.code(), Some(125));
    assert!(errors(&refused).contains("an ISO image does not take them"), "{}", errors(&refused));
}

#[test]
fn memtest86_plus_draws_its_screen_on_the_console() {
    let Some(lab) = Lab::open() else { return };
    let cache = Cache::open().expect("a cache");
    let package = ensure_with_libraries(&cache, "memtest86+", &mut |text| eprintln!("{text}"));
    let file = package.expect("a package of Debian's").own.join("boot/memtest86+x64.bin");
    let options = ["--cpus", "1", "--expect", "Memory  :  255MB", "--timeout", "120s"];
    let words = ["--", "console=ttyS0,115200"];
    let output = boots(&lab, &file.display().to_string(), &[&options[..], &words].concat());
    assert!(text(&output, 0).contains("Memtest86+ v6"), "{output:?}");
}

/// Process 1 of a user's own Linux.
const INIT: &str = "#!/bin/busybox sh
/bin/busybox mkdir -p /dev /sys /proc
/bin/busybox mount -t devtmpfs dev /dev
exec > /dev/ttyS0 2>&1
/bin/busybox mount -t sysfs sys /sys
/bin/busybox mount -t proc proc /proc
echo nodes $(/bin/busybox cat /sys/devices/system/node/online) of $(/bin/busybox uname -s)
echo word $(/bin/busybox grep -o 'my.word=[0-9]*' /proc/cmdline)
/bin/busybox poweroff -f
";

fn initramfs(lab: &Lab, busybox: &Path) -> PathBuf {
    let tree = PathBuf::from(lab.path("tree"));
    fs::create_dir_all(tree.join("bin")).expect("made");
    fs::copy(busybox, tree.join("bin/busybox")).expect("copied");
    let init = tree.join("init");
    fs::write(&init, INIT).expect("written");
    let archive = PathBuf::from(lab.path("initramfs"));
    let script = "chmod +x init && find . | ./bin/busybox cpio -o -H newc > \"$0\"";
    let made = Command::new("sh").args(["-c", script]).arg(&archive).current_dir(&tree).status();
    assert!(made.expect("a shell").success());
    archive
}

#[test]
fn a_custom_linux_has_the_requested_nodes_and_host_placement() {
    let Some(lab) = Lab::open() else { return };
    let cache = Cache::open().expect("a cache");
    let mut note = |text: &str| eprintln!("{text}");
    let busybox = ensure_with_libraries(&cache, "busybox-static", &mut note).expect("unpacked");
    let initramfs = initramfs(&lab, &busybox.own.join("bin/busybox"));
    let linux = Kernel::ensure(&cache, &KernelChoice::Distribution, &mut note).expect("Debian's");
    let linux = linux.file.display().to_string();
    let initramfs = initramfs.display().to_string();
    let shape = ["--emulate", "2", "--cpus", "2", "--pin", "auto", "--initrd", &initramfs];
    let words = ["--", "console=ttyS0", "quiet", "no_timer_check", "my.word=42"];
    let output = boots(&lab, &linux, &[&shape[..], &words].concat());
    let console = text(&output, 0);
    assert!(console.contains("nodes 0-1 of Linux\r\nword my.word=42\r\n"), "{console}");
    let said = errors(&output);
    for words in ["boots as a Linux image", "vCPU 1 of node 1: thread ", "memory ram1 of 128 MiB: "]
    {
        assert!(said.contains(words), "{words}: {said}");
    }
    assert!(said.contains("the guest powered off, after "), "{said}");
}

/// A kernel that prints its command line, which contains the factor.
const STUDY: &str = r#"
name = "own-kernel"
question = "Is the second level faster?"

[backend.kernel]
file = "FILE"
expect = "^speed: "
where = "plain"
emulate = "1"
cpus = 1
memory = "128M"

[rules]
blocks = 6

[[factor]]
name = "speed"
levels = ["100", "110"]

[[workload]]
name = "echo"
command = ["kernel", "speed: {speed} of 1"]
[[workload.metric]]
name = "rate"
better = "higher"
pattern = "speed: {x/s} of"
"#;

#[test]
fn a_study_boots_the_users_kernel_and_reads_its_console() {
    let Some(lab) = Lab::open() else { return };
    let kernel = kept(&lab, "echo.elf", &elf("", Then::Echo));
    let study = kept(&lab, "study.toml", STUDY.replace("FILE", &kernel).as_bytes());
    let results = lab.path("results");
    let output = lab.numalab(&["study", "run", &study, "-q", "--format", "json", "-o", &results]);
    let found: serde_json::Value = serde_json::from_str(&text(&output, 0)).expect("JSON");
    let rate = &found["effects"][0]["found"];
    assert_eq!(rate["verdict"], "better", "{found}");
    let percent = rate["change_percent"].as_f64().expect("a number");
    assert!((percent - 10.0).abs() < 1e-6, "{percent} %");
    let facts = found["run"]["environment"]["facts"].to_string() + &found.to_string();
    assert!(facts.contains("echo.elf sha256 "), "{found}");

    let silent = kept(&lab, "silent.elf", &elf("", Then::Exit(3)));
    let failing = kept(&lab, "failing.toml", STUDY.replace("FILE", &silent).as_bytes());
    let failed = lab.numalab(&["study", "run", &failing, "-q", "--blocks", "1", "-o", &results]);
    let said = errors(&failed) + &String::from_utf8_lossy(&failed.stdout);
    assert!(said.contains("the guest wrote 3 to its exit port"), "{said}");
    let absent = kept(&lab, "absent.toml", STUDY.replace("FILE", "/no/such").as_bytes());
    let refused = lab.numalab(&["study", "run", "--dry-run", &absent]);
    assert_eq!(refused.status.code(), Some(2), "{}", errors(&refused));
    assert!(errors(&refused).contains("/no/such"), "{}", errors(&refused));
}

#[test]
fn images_that_no_pc_boots_and_options_of_other_guests_are_refused() {
    let Some(lab) = Lab::open() else { return };
    let script = kept(&lab, "script", b"#!/bin/sh\n");
    let kernel = kept(&lab, "kernel.elf", &elf("", Then::Halt));
    let cases: [(&[&str], &str); 5] = [
        (&["--kernel", &script], "not bootable, expected a Linux bzImage"),
        (&["--kernel", &kernel, "--disk", "/no/such"], "/no/such: No such file"),
        (&["--kernel", &kernel, "--with", "perf"], "this guest does not contain numalab"),
        (&["--kernel", "numalab"], "--raw: expected --kernel FILE, the file to boot"),
        (&["--kernel", &kernel, "--expect", "("], "unclosed group"),
    ];
    for (options, words) in cases {
        let output = lab.numalab(&[&RAW[..], options].concat());
        assert_eq!(output.status.code(), Some(125), "{options:?}");
        assert!(errors(&output).contains(words), "{options:?}: {}", errors(&output));
    }
    let without = lab.numalab(&["guest", "run", "--fail", "x", "--", "true"]);
    assert_eq!(without.status.code(), Some(125));
    let disk = ["--kernel", &kernel, "--disk", &script, "--initrd", "modules", "--dry-run"];
    let shown = text(&lab.numalab(&[&RAW[..], &disk, &["--", "a", "b"]].concat()), 0);
    for words in
        ["format=raw,snapshot=on", "ide-hd,drive=disk0", "-initrd modules", "-append 'a b'"]
    {
        assert!(shown.contains(words), "{words}: {shown}");
    }
    // In virtual time QEMU exits when a kernel sets an x2APIC's timer.
    let charged = ["--kernel", &kernel, "--emulate-latency", "100", "--dry-run"];
    let charged = text(&lab.numalab(&[&RAW[..], &charged].concat()), 0);
    assert!(charged.contains("-cpu max,-x2apic ") && shown.contains("-cpu max "), "{charged}");
}
