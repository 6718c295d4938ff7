//! Real programs: they write and return the same as without the emulator.

use std::process::{Command, Output};

use super::MACHINE;
use crate::programs::lab::{Lab, lab};

impl Lab {
    /// Runs a command with the emulator and without; returns its output and result, which must be
    /// the same.
    fn as_ever(&self, command: &[&str]) -> Output {
        let mut plain = Command::new(command[0]);
        plain.args(&command[1..]).env("OMP_NUM_THREADS", "4");
        let plain = plain.output().expect("it starts");
        let emulated = self.run(&MACHINE, command);
        let report = String::from_utf8_lossy(&emulated.stderr);
        assert_eq!(emulated.status.code(), plain.status.code(), "{command:?}: {report}");
        let wrote = |output: &Output| String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(wrote(&emulated), wrote(&plain), "{command:?}: {report}");
        assert!(report.contains("Memory cost of "), "{command:?}: {report}");
        emulated
    }

    fn file(&self, name: &str) -> String {
        self.directory.join(name).to_string_lossy().into_owned()
    }
}

#[test]
fn a_compiler_a_database_and_a_compressor_of_two_threads_work() {
    let Some(lab) = lab() else { return };
    lab.as_ever(&["gcc", "-O1", "-S", "-o", "-", &lab.file("small.c")]);
    lab.as_ever(&["sqlite3", ":memory:", &format!(".read {}", lab.file("rows.sql"))]);
    lab.as_ever(&["xz", "-T2", "--block-size=100KiB", "-1", "-c", &lab.file("text")]);
}

#[test]
fn threads_processes_and_signals_work_as_on_the_machine() {
    let Some(lab) = lab() else { return };
    assert_eq!(lab.as_ever(&[&lab.program("children")]).status.code(), Some(3));
    let script = "import threading, multiprocessing\n\
        def add(n): return sum(range(n))\n\
        threads = [threading.Thread(target=add, args=(9000,)) for _ in range(4)]\n\
        [thread.start() for thread in threads]; [thread.join() for thread in threads]\n\
        with multiprocessing.Pool(2) as pool: print(pool.map(add, [1000, 2000, 3000]))\n";
    lab.as_ever(&["/usr/bin/python3", "-c", script]);
}

#[test]
fn a_program_sees_the_cpus_of_the_machine_and_openmp_uses_them() {
    let Some(lab) = lab() else { return };
    let output = lab.run(&MACHINE, &[&lab.program("cpus")]);
    let expected = "0 1 2 3 on 0 of node 0\n3 on 3 of node 1\nin time\n";
    assert_eq!(String::from_utf8_lossy(&output.stdout), expected);
    lab.as_ever(&[&lab.program("omp")]);
}

#[test]
fn a_worker_bound_to_the_cpu_of_the_thread_that_waits_for_it_has_the_machines_time() {
    let Some(lab) = lab() else { return };
    let output = lab.run(&MACHINE, &[&lab.program("probes"), "chase", "16"]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let ns: f64 = text.trim().parse().expect("ns of a load");
    // A few instructions of a nanosecond each; the emulator needs a hundred for a load.
    assert!((1.0..10.0).contains(&ns), "{ns} ns");
}

#[test]
fn a_sample_of_a_long_program_takes_as_long_as_all_of_it() {
    let Some(lab) = lab() else { return };
    let machine = ["--emulate", "2", "--cpus", "4"];
    let ns = |more: &[&str], probe: &[&str]| {
        let program = lab.program("probes");
        let command = [&[program.as_str()], probe].concat();
        let output = lab.run(&[&machine, more].concat(), &command);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        text.trim().parse::<f64>().expect("ns of an operation")
    };
    for probe in [&["sorts"][..], &["chase", "4096"], &["reads", "2"]] {
        let (all, sample) = (ns(&["--exact"], probe), ns(&[], probe));
        assert!((sample / all - 1.0).abs() < 0.05, "{probe:?}: {sample} instead of {all} ns");
    }
}

#[test]
fn sysbench_measures_the_time_of_the_machine_and_about_the_same_each_time() {
    let Some(lab) = lab() else { return };
    let words = ["sysbench", "mutex", "--threads=4", "--mutex-num=8", "--mutex-locks=200"];
    let words = [&words[..], &["--mutex-loops=10", "run"]].concat();
    let total = || {
        let output = lab.run(&MACHINE, &words);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{text}");
        let line = text.lines().find(|line| line.contains("total time:")).expect("a time");
        let seconds = line.split_whitespace().last().expect("a word").trim_end_matches('s');
        seconds.parse::<f64>().expect("seconds")
    };
    let (first, second) = (total(), total());
    assert!(first > 0.0 && first < 0.1, "{first} s: of the machine, not of the emulator");
    // The program prints tenths of a millisecond.
    assert!((first - second).abs() <= 1.1e-4 + 0.02 * first, "{first} and {second} s");
}

#[test]
fn a_server_answers_its_clients() {
    let Some(lab) = lab() else { return };
    let socket = lab.file("redis.socket");
    let script = format!(
        "redis-server --port 0 --unixsocket {socket} --save '' >{socket}.log & server=$!\n\
         for i in $(seq 200); do redis-cli -s {socket} ping >/dev/null 2>&1 && break; sleep 0.1; done\n\
         redis-cli -s {socket} set key value; redis-cli -s {socket} get key\n\
         redis-benchmark -s {socket} -q -n 500 -c 4 -t set,get >/dev/null || echo failed\n\
         redis-cli -s {socket} shutdown nosave; wait $server; echo server $?"
    );
    let output = lab.run(&MACHINE, &["sh", "-c", &script]);
    let report = String::from_utf8_lossy(&output.stderr);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "OK\nvalue\nserver 0\n", "{report}");
}
