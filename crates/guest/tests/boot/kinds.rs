//! Other kinds of guests: a user's shell, a kernel other than Linux, other host memory.

use numalab_host::Classed;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use numalab_guest::{Accelerator, Guest, GuestError, HostMemory, HostPages, Launch, Runtime};
use numalab_guest_agent::{Exit, Stream};
use numalab_image::BootFiles;

use crate::lab::{Lab, PARENT, shell, small};

/// Builds a kernel by the Multiboot specification (version 0.6.96, with load addresses in the
/// header) that prints a string on the serial port and writes 3 to the exit port.
fn tiny_kernel(text: &str) -> Vec<u8> {
    const LOAD: u32 = 0x10_0000;
    const MAGIC: u32 = 0x1bad_b002;
    const FLAGS: u32 = 1 << 16;
    const CODE_AT: u32 = 32;
    #[rustfmt::skip]
    let code: [u8; 26] = [
        0xbe, 0, 0, 0, 0,             // mov esi, text
        0xac,                         // next: lodsb
        0x84, 0xc0,                   // test al, al
        0x74, 0x07,                   // jz done
        0x66, 0xba, 0xf8, 0x03,       // mov dx, 0x3f8
        0xee,                         // out dx, al
        0xeb, 0xf4,                   // jmp next
        0x66, 0xba, 0xf4, 0x00,       // done: mov dx, 0xf4
        0xb0, 0x03,                   // mov al, 3
        0xee,                         // out dx, al
        0xf4, 0xf4,                   // hlt
    ];
    let length = CODE_AT + 26 + u32::try_from(text.len()).unwrap() + 1;
    let checksum = 0u32.wrapping_sub(MAGIC).wrapping_sub(FLAGS);
    let header = [MAGIC, FLAGS, checksum, LOAD, LOAD, LOAD + length, 0, LOAD + CODE_AT];
    let mut image: Vec<u8> = header.into_iter().flat_map(u32::to_le_bytes).collect();
    image.extend(code);
    image[33..37].copy_from_slice(&(LOAD + CODE_AT + 26).to_le_bytes());
    image.extend(text.as_bytes());
    image.push(0);
    image
}

fn run_tiny(lab: &Lab, text: &str) -> Result<String, GuestError> {
    let kernel = lab.directory.path().join("kernel");
    fs::write(&kernel, tiny_kernel(text)).unwrap();
    let files = BootFiles { kernel, initramfs: None };
    let launch = Launch::plan(small(), lab.qemu.clone(), Accelerator::tcg(), &files).unwrap();
    let mut serial = Vec::new();
    let mut sink = |_: Stream, bytes: &[u8]| serial.extend_from_slice(bytes);
    let ended = launch.run_bare(&lab.runtime, "ALL DONE", &mut sink, &|| false);
    lab.nothing_is_left();
    ended.map(|_| String::from_utf8(serial).unwrap())
}

#[test]
fn a_bare_kernel_must_print_its_end_marker() {
    let Some(lab) = Lab::open() else { return };
    let serial = run_tiny(&lab, "ok 1\nALL DONE\n").unwrap();
    assert_eq!(serial, "ok 1\nALL DONE\n");
    let error = run_tiny(&lab, "ok 1\nALL D").unwrap_err();
    assert!(matches!(error, GuestError::Silent { .. }), "{error}");
    assert!(error.to_string().contains("  | ok 1"), "{error}");
}

/// Not a test by itself: a process with a terminal attached to a guest.
#[test]
fn child_with_a_terminal() {
    let Some(parent) = std::env::var_os(PARENT).map(PathBuf::from) else {
        return;
    };
    let Some(mut lab) = Lab::open() else { return };
    lab.runtime = Runtime::at(parent.join("run")).unwrap();
    let mut task = shell("");
    task.job.command = vec!["sh".to_owned()];
    let outcome = lab.launch(small()).shell(&lab.runtime, &task, &|| false).unwrap();
    fs::write(parent.join("exit"), outcome.exit.code().to_string()).unwrap();
}

/// Opens a new terminal, with the test's end and the child's.
fn terminal() -> (File, File) {
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    let ours: OwnedFd = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&ours).unwrap();
    unlockpt(&ours).unwrap();
    let name = ptsname(&ours, Vec::new()).unwrap();
    let theirs = File::options().read(true).write(true).open(name.to_str().unwrap()).unwrap();
    (File::from(ours), theirs)
}

#[test]
fn a_users_terminal_is_attached_to_the_guest() {
    let Some(lab) = Lab::open() else { return };
    let (mut ours, theirs) = terminal();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "kinds::child_with_a_terminal", "--nocapture"])
        .env(PARENT, lab.directory.path())
        .stdin(Stdio::from(theirs.try_clone().unwrap()))
        .stdout(Stdio::from(theirs))
        .spawn()
        .unwrap();
    let mut seen = String::new();
    let mut wait_for = |text: &str, seen: &mut String| {
        while !seen.contains(text) {
            let mut bytes = [0; 1024];
            let count = ours.read(&mut bytes).unwrap();
            seen.push_str(&String::from_utf8_lossy(&bytes[..count]));
        }
        ours.try_clone().unwrap()
    };
    // The prompt of the guest's shell.
    let mut writer = wait_for("~ # ", &mut seen);
    writer.write_all(b"tty; echo $((6 * 7)) | cat; exit 3\n").unwrap();
    wait_for("\n42", &mut seen);
    assert!(seen.contains("/dev/hvc0"), "{seen}");
    assert!(child.wait().unwrap().success(), "{seen}");
    let exit = fs::read_to_string(lab.directory.path().join("exit")).unwrap();
    assert_eq!(exit, "3");
    fs::remove_file(lab.directory.path().join("exit")).unwrap();
    lab.nothing_is_left();
}

fn with_pages(pages: HostPages) -> Guest {
    let memory = HostMemory { pages, prealloc: true, ..HostMemory::default() };
    Guest { memory, ..small() }
}

#[test]
fn shared_and_huge_memory_is_there_before_the_guest_starts() {
    let Some(lab) = Lab::open() else { return };
    let pool = "/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages";
    let free: u64 = fs::read_to_string(pool).map_or(0, |text| text.trim().parse().unwrap());
    let mut kinds = vec![(HostPages::Shared, 4096)];
    let page_bytes = 2 << 20;
    if free >= 128 {
        kinds.push((HostPages::Huge { page_bytes }, page_bytes));
    } else {
        eprintln!("NOT RUN: huge pages: 128 free pages of 2 MiB needed, {free} there");
        let qemu = lab.qemu.clone();
        let guest = with_pages(HostPages::Huge { page_bytes });
        let error = Launch::plan(guest, qemu, Accelerator::tcg(), &lab.files).unwrap_err();
        assert!(error.remedy().unwrap().contains("nr_hugepages"), "{error}");
    }
    for (pages, page_bytes) in kinds {
        let ran = lab.run(with_pages(pages), &shell("true")).unwrap();
        assert_eq!(ran.outcome.exit, Exit::Code(0));
        let memory = ran.outcome.memory.unwrap();
        let present: Vec<_> = memory[0].bytes_by_page.iter().collect();
        assert_eq!(present, [(&page_bytes, &(256 << 20))], "{memory:?}");
    }
}
