//! An image that a PC boots by BIOS and by UEFI.

use numalab_host::Classed;
use std::path::Path;

use numalab_image::own_kernel::iso;
use numalab_kernel::results::{Reader, Results};

use crate::qemu::{DONE, Qemu};

const FIRMWARE: [&str; 2] = ["/usr/share/OVMF/OVMF_CODE_4M.fd", "/usr/share/OVMF/OVMF_VARS_4M.fd"];

/// Returns the kernel's results from among the messages of firmware and boot loader.
fn results(text: &str) -> Results {
    let mut reader = Reader::default();
    for line in text.lines() {
        // Escape sequences of a screen may precede the first line.
        let line = line.find("@numalab").map_or(line, |at| &line[at..]);
        reader.line(line).unwrap_or_else(|error| panic!("{error}\n{text}"));
    }
    reader.finish().unwrap_or_else(|| panic!("no last line\n{text}"))
}

#[test]
fn an_image_boots_by_bios_and_by_uefi() {
    let Some(qemu) = Qemu::open() else { return };
    let directory = tempfile::tempdir().expect("made");
    let file = directory.path().join("numalab.iso");
    let words = "work=test_numa,exhaust size=2M count=1000 runs=1";
    if let Err(error) = iso::write(qemu.kernel(), words, &file) {
        let required = std::env::var_os("NUMALAB_REQUIRE_TOOLS").is_some_and(|v| v == "1");
        assert!(!required && error.remedy().is_some(), "{error}");
        eprintln!("NOT RUN: {error}");
        return;
    }
    let nodes = [
        "-smp",
        "2",
        "-m",
        "512M",
        "-object",
        "memory-backend-ram,id=a,size=256M",
        "-object",
        "memory-backend-ram,id=b,size=256M",
        "-numa",
        "node,memdev=a,cpus=0",
        "-numa",
        "node,memdev=b,cpus=1",
    ];
    let mut machine: Vec<String> = nodes.map(str::to_owned).to_vec();
    machine.extend(["-cdrom".to_owned(), file.display().to_string()]);
    let mut firmwares = vec![machine.clone()];
    if FIRMWARE.iter().all(|file| Path::new(file).is_file()) {
        let [code, variables] = FIRMWARE;
        machine.extend([
            "-drive".to_owned(),
            format!("if=pflash,format=raw,readonly=on,file={code}"),
            "-drive".to_owned(),
            format!("if=pflash,format=raw,snapshot=on,file={variables}"),
        ]);
        firmwares.push(machine);
    } else {
        let required = std::env::var_os("NUMALAB_REQUIRE_TOOLS").is_some_and(|v| v == "1");
        assert!(!required, "no UEFI firmware: apt-get install ovmf");
        eprintln!("NOT RUN: no UEFI firmware: apt-get install ovmf");
    }
    for arguments in firmwares {
        let boot = qemu.boot_image(&arguments);
        assert_eq!(boot.status, Some(DONE), "{}", boot.text);
        let results = results(&boot.text);
        let said = results.boot.as_ref().expect("it booted");
        assert_eq!((said.loader.as_str(), said.command.as_str()), ("multiboot2", words));
        assert_eq!((said.nodes, said.started), (2, 2));
        assert_eq!(results.runs[0].held, [[512, 0], [0, 512]]);
        assert_eq!(results.refill.as_ref().expect("the end").refused_at, 0);
    }
}
