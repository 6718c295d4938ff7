//! A real SLURM on loopback for tests: slurmctld and a slurmd for each node, on this machine and as
//! this user, stopped when the test program ends.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// A running SLURM; dropping it stops it.
pub struct Lab {
    /// Removed by the supervisor: a static lab is never dropped.
    directory: PathBuf,
    supervisor: Child,
    /// Closing this stops everything, and so does our own end.
    input: Option<ChildStdin>,
}

/// Programs that a lab needs.
const PROGRAMS: [&str; 4] = ["slurmctld", "slurmd", "srun", "sbatch"];

/// Returns the lab of this test program: nodes n1 and n2 (partition lab) and m1 (partition big);
/// `None`, after printing why, if SLURM is not installed.
pub fn lab() -> Option<&'static Lab> {
    static LAB: OnceLock<Option<Lab>> = OnceLock::new();
    LAB.get_or_init(|| Lab::start(&["n1", "n2", "m1"])).as_ref()
}

/// Returns a lock that a test holds while its jobs run: they need whole nodes, and two tests would
/// block each other.
pub fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Converts output to text.
pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

impl Lab {
    /// Starts a lab with these nodes; n* have 4 sockets of 2 cores, m* 16 CCDs of 8.
    pub fn start(nodes: &[&str]) -> Option<Self> {
        let places = std::env::var("PATH").unwrap_or_default() + ":/usr/sbin:/sbin";
        let is_there = |name: &&str| places.split(':').any(|at| Path::new(at).join(name).exists());
        if let Some(missing) = PROGRAMS.iter().find(|name| !is_there(name)) {
            let required = std::env::var_os("NUMALAB_REQUIRE_TOOLS").is_some_and(|v| v == "1");
            assert!(!required, "{missing} is not installed: scripts/setup test installs it");
            eprintln!("NOT RUN: {missing} is not installed: scripts/setup test installs it");
            return None;
        }
        let directory = tempfile::Builder::new().prefix("nl").tempdir_in("/tmp").expect("made");
        let directory = directory.keep();
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/slurm/lab/lab.sh");
        // Each lab uses five ports; the numbers leave room for four labs of this process, apart
        // from those of others.
        static LABS: AtomicU32 = AtomicU32::new(0);
        let lab = LABS.fetch_add(1, Ordering::Relaxed);
        // Below the ports that Linux gives to outgoing connections, from 32768.
        let port = 10_000 + std::process::id() % 1_000 * 20 + lab % 4 * 5;
        let mut supervisor = Command::new(script)
            .arg(&directory)
            .arg(port.to_string())
            .args(nodes)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("bash is there");
        let input = supervisor.stdin.take();
        let mut said = String::new();
        let output = supervisor.stdout.take().expect("piped");
        BufReader::new(output).read_line(&mut said).expect("it says how it went");
        assert_eq!(said.trim(), "ready", "SLURM does not start");
        Some(Self { directory, supervisor, input })
    }

    /// Returns a program of SLURM, or one that starts it, in this lab.
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.env("SLURM_CONF", self.directory.join("slurm.conf"));
        command.current_dir(&self.directory).stdin(Stdio::null());
        // Tasks and MPI run as root: no other user takes part.
        command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
        command
    }

    /// Returns a directory for results, removed with the lab.
    pub fn directory(&self) -> PathBuf {
        self.directory.clone()
    }

    /// Returns the process that supervises the daemons.
    pub fn supervisor(&self) -> u32 {
        self.supervisor.id()
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        drop(self.input.take());
        let _ = self.supervisor.wait();
    }
}
