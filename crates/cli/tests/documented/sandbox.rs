//! A directory with the files that the documents' commands name.

use std::env;
use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use tempfile::TempDir;

/// Replacements for names in documents that a test cannot use: places below the root, and the
/// id of a process. `@` is the sandbox.
const STAND_INS: [(&str, &str); 5] = [
    ("/scratch/fleet", "@/fleet"),
    ("/etc/numalab/baseline", "@/results/good"),
    ("/tmp/copy", "@/copy"),
    ("/run/vm.qmp", "@/vm.qmp"),
    ("~", "@"),
];

/// Programs that readers have but this machine lacks.
const PROGRAMS: [&str; 5] = ["solver", "old", "new", "a.out", "build"];

pub struct Sandbox {
    directory: TempDir,
    /// A process to look at, and a QEMU that is paused at its start.
    children: [Child; 2],
    /// Port on which that QEMU answers.
    port: u16,
}

impl Sandbox {
    /// Creates a sandbox with results of real runs, under the names in the documents.
    pub fn new() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let process = Command::new("sleep").arg("600").spawn().expect("sleep starts");
        let port = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr());
        let port = port.expect("a free port").port();
        let socket = directory.path().join("vm.qmp");
        let qemu = Command::new("qemu-system-x86_64")
            .args("-S -display none -nodefaults -m 64 -smp 8 -qmp".split(' '))
            .arg(format!("unix:{},server=on,wait=off", socket.display()))
            .args(["-qmp", &format!("tcp:localhost:{port},server=on,wait=off")])
            .spawn()
            .expect("QEMU starts");
        let sandbox = Self { directory, children: [process, qemu], port };
        sandbox.write_inputs();
        sandbox.fetch_qemu();
        sandbox.measure();
        sandbox
    }

    /// Unpacks a newer QEMU into the cache if the distribution's is too old for the emulator, as
    /// the documents recommend.
    fn fetch_qemu(&self) {
        for arch in ["x86_64", "aarch64"] {
            let guest =
                format!("numalab guest run --arch {arch} --emulate 2 --emulate-latency 100");
            let plan = self.run(&format!("{guest} --dry-run"));
            if String::from_utf8_lossy(&plan.stderr).contains("--fetch-qemu") {
                self.sh(&format!("numalab guest image --fetch-qemu --arch {arch}"));
            }
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("below the sandbox")).expect("made");
        fs::write(path, text).expect("written");
    }

    fn write_inputs(&self) {
        for program in PROGRAMS {
            self.write(program, "#!/bin/sh\necho 'Time elapsed: 0.5 s'; echo 'rate 3 x/s'\n");
            self.sh(&format!("chmod +x {program}"));
        }
        let numbers = |factor: f64| -> String {
            (0..20).map(|i| format!("{}\n", factor * (100.0 + f64::from(i * 7 % 5)))).collect()
        };
        let log = |factor: f64| -> String {
            numbers(factor).lines().map(|n| format!("Time elapsed: {n} s\n")).collect()
        };
        for (name, factor) in [("before", 1.0), ("after", 0.9), ("old", 1.0), ("new", 0.9)] {
            self.write(&format!("{name}.txt"), &numbers(factor));
            self.write(&format!("{name}.log"), &log(factor));
        }
        let lscpu = "SYSTEM_NAME=\"Laptop\"\nPARTITION=\"P\"\nCCDS_PER_NUMA=1\nArchitecture: x86_64\n\
            CPU(s): 2\nThread(s) per core: 1\nCore(s) per socket: 2\nSocket(s): 1\n\
            L3 cache: 8 MiB (1 instance)\nNUMA node(s): 1\nNUMA node0 CPU(s): 0-1\n";
        self.write("laptop", lscpu);
        self.write("FILE", lscpu);
        let csv = "size (MB),0,1\n16,1.50,1.52\n";
        self.write("sequential_domain0_8ranks_16MB.csv", csv);
        self.write("kernel.elf", "it is named, and not booted");
        self.write("linux-image-without.deb", "");
        self.write("linux-image-with.deb", "");
        // Writes the part of a kernel that tells a dry run how to boot it.
        self.write("my.elf", &format!("{}HdrS", " ".repeat(0x202)));
        self.sh("mkdir -p copy && cp -r --parents /sys/devices/system/node /sys/devices/system/cpu /proc/meminfo copy 2>/dev/null || true");
    }

    /// Makes real results, each in a second or two.
    fn measure(&self) {
        self.sh(
            "set -e
             numalab topology --emulate 2 --cpus 4 --format toml > machine.toml
             numalab profile --source referenced -o profile.json -- true
             numalab machine acpi build --emulate 2 --cpus 4 -o built && cp built/*.bin . && cp -r built tables
             numalab scale --arch laptop --sequential 0 --launcher local --memory-sizes 1 >/dev/null
             job=$(echo results_scaling/*); cp -r $job results_scaling/job_123456_test_run
             mv $job results_scaling/job_123456
             numalab measure --quick --budget 500ms -q
             numalab study new mine >/dev/null
             numalab study run mine.toml --blocks 1 -q
             cd results
             study=$(echo mine-*) run=$(echo measure-*)
             for name in A B before after; do cp -r $run $name; done
             # Runs of an hour each count as separate.
             for name in good new measure-20261121-024500-good; do
               mkdir $name; for copy in 1 2 3; do
                 cp -r $run $name/$copy
                 hour=$((copy * 3600000)); test $name = new && hour=$((hour + 18000000))
                 sed -i -E 's/(\"started_unix_ms\": ?)[0-9]+/\\1'$((1795000000000 + hour))'/' $name/$copy/*.json
               done
             done
             for name in mine-1 mine-2 noise-20261121-024500; do cp -r $study $name; done
             mv $study mine-20261121-024500; mv $run measure-20261121-024500
             numalab machine capture -q --from A > ../captured.toml
             mkdir -p ../fleet/hosts/one; cp -r A ../fleet/hosts/one/measure-1",
        );
    }

    fn sh(&self, script: &str) {
        let output = self.run(script);
        let message = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{script}: {message}");
    }

    /// Runs a line as a reader's shell would.
    pub fn run(&self, line: &str) -> Output {
        let process = self.children[0].id().to_string();
        if line == "numalab study new mine" {
            // The command does not overwrite an existing file.
            let _ = fs::remove_file(self.path("mine.toml"));
        }
        let mut line = line.replace("4242", &process).replace("4444", &self.port.to_string());
        let place = self.directory.path().to_str().expect("UTF-8");
        for (shown, there) in STAND_INS {
            line = line.replace(shown, &there.replace('@', place));
        }
        let file = self.path("kernel.elf");
        let own = Path::new(env!("CARGO_BIN_EXE_numalab")).parent().expect("a directory");
        let path = format!("{}:{}", own.display(), env::var("PATH").unwrap_or_default());
        let mut command = Command::new("timeout");
        command.args(["60", "bash", "-c", &line]).current_dir(place).env("PATH", path);
        command.env("NUMALAB_KERNEL", &file).env("NUMALAB_EMULATOR", &file);
        command.stdin(Stdio::null()).output().expect("a shell")
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        for child in &mut self.children {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
