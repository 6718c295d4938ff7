"""Runs test programs, one per CPU at a time, and reports where the time went."""

import json
import os
import re
import signal
import subprocess
import tempfile
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# A program that takes longer is taken to hang, and is killed; none takes half of this.
LIMIT_S = 1500
# A program that takes this long has a row in the table at the end.
SLOW_S = 10
# CPU seconds of the longest programs (2 CPUs of an AMD EPYC): the longest start first.
COST_S = {
    "cli guests emulated": 305, "cli guests arm64": 250, "cli guests emulated::like": 200,
    "cli guests advise": 105, "cli guests emulated::surface": 120, "cli guests guest": 160,
    "cli guests kernel": 70, "cli guests xen": 100, "cli guests rank_guest": 70,
    "cli guests profile_guest": 90, "cli commands": 90, "cli guests emulated::machines": 90,
    "guest boot": 84, "cli guests raw": 70, "cli guests backends": 65, "cli slurm": 64,
    "cli commands everyday": 61, "cli guests emulate": 60, "memory-model unit tests of lib": 60,
    "cli kills": 58, "emulator qemu": 54, "cli guests killed_advice": 47, "measure live": 45,
    "formats readers": 42, "checked frames threads": 37, "acpi tables": 36, "cli guests bisect": 35,
    "kernel boot": 32, "cli commands machines": 30, "checked frames oracle": 28, "cli documented": 24,
    "cli commands health": 13,
}

# Programs that mostly wait: these run one at a time, in addition to one program per CPU.
WAITING = ("cli commands", "cli containers", "cli slurm")


class Job:
    """A program with its command line, and the result of its run."""

    def __init__(self, name, command, directory=ROOT, env=None):
        self.name, self.command, self.directory, self.env = name, list(command), directory, dict(env or {})
        self.passed = self.failed = 0
        self.wall_s = self.cpu_s = 0.0

    def long(self):
        """Selects the long versions of its tests, and returns the job."""
        self.env["NUMALAB_LONG"] = "1"
        return self

    def tests(self):
        """Returns the names of its tests."""
        listed = subprocess.run([*self.command, "--list", "--format=terse"], cwd=self.directory,
                                env=os.environ | self.env, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL,
                                text=True, check=True)
        return [line.removesuffix(": test") for line in listed.stdout.splitlines() if line.endswith(": test")]

    def part(self, name, tests):
        """Returns a job that runs only these tests."""
        return Job(name, [*self.command, "--exact", *tests], self.directory, self.env)

    def modules(self, apart, inner):
        """Returns a job for each module in `apart` (for each module if that is None), one for all others, and
        one for each module within them in `inner`, which has whole paths: `emulated::cxl`."""
        parts = {}
        for test in self.tests():
            module = test.split("::")[0]
            name = f"{self.name} {module}" if apart is None or module in apart else self.name
            within = [path for path in inner if f"{test}::".startswith(f"{path}::")]
            parts.setdefault(f"{self.name} {within[0]}" if within else name, []).append(test)
        return [self.part(name, tests) for name, tests in parts.items()]

    def under(self, interpreter):
        """Runs it under an interpreter of its instructions, and returns the job."""
        self.command.insert(0, interpreter)
        return self

    def count(self, text, status):
        """Counts the tests that the program reports; a program that reports none counts as one test."""
        results = re.findall(r"^test result: .*? (\d+) passed; (\d+) failed;", text, re.M)
        self.passed = sum(int(passed) for passed, _ in results)
        self.failed = sum(int(failed) for _, failed in results)
        if status != 0:
            self.failed = max(self.failed, 1)
        elif not results:
            self.passed = 1


def step(name, *command, directory=ROOT, env=None):
    """Returns the job of a command that is itself a test."""
    return Job(name, command, directory, env)


def cargo_tests(*words, label="", env=None):
    """Builds test programs, and returns a job for each."""
    command = ["cargo", "test", "--no-run", "--message-format=json-render-diagnostics", *words]
    begun = time.monotonic()
    built = subprocess.run(command, cwd=ROOT, env=os.environ | (env or {}), stdout=subprocess.PIPE,
                           stdin=subprocess.DEVNULL, text=True, check=False)
    print(f"built  {time.monotonic() - begun:6.1f} s  {' '.join(words)}", flush=True)
    if built.returncode != 0:
        failed = Job(f"build of {' '.join(words)}", ["false"])
        failed.failed = 1
        return [failed]
    return [tests_of(message, label, env) for message in map(json.loads, built.stdout.splitlines())
            if message.get("executable") and message["profile"]["test"]]


def tests_of(message, label, env):
    directory = Path(message["manifest_path"]).parent
    target = message["target"]
    name = target["name"] if target["kind"] == ["test"] else f"unit tests of {target['kind'][0]}"
    # Programs that pass print what they did not run; `--show-output` keeps those lines.
    command = [message["executable"], "--test-threads=1", "--show-output"]
    return Job(f"{label}{directory.name} {name}", command, directory, env)


class Runner:
    """Runs jobs and sums up."""

    def __init__(self):
        self.done, self.running, self.lock = [], {}, threading.Lock()
        self.begun, self.limit_s = time.monotonic(), LIMIT_S
        os.environ |= {"NUMALAB_REQUIRE_TOOLS": "1", "INSTA_UPDATE": "no"} | toolchain()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self.ended)

    def first(self, jobs):
        """Runs jobs one after the other; each has all CPUs."""
        for job in jobs:
            self.run(job)

    def side_by_side(self, jobs):
        """Runs jobs, the longest first, one per CPU at a time, plus one that mostly waits."""
        self.done += [job for job in jobs if job.failed]
        queued = sorted((job for job in jobs if not job.failed), key=lambda job: -COST_S.get(job.name, 0))
        waits = [job for job in queued if job.name in WAITING]
        works = [job for job in queued if job.name not in WAITING]

        def work(queue):
            while queue:
                try:
                    job = queue.pop(0)
                except IndexError:
                    return
                self.run(job)

        queues = [works] * (os.cpu_count() or 1) + [waits]
        workers = [threading.Thread(target=work, args=(queue,), daemon=True) for queue in queues]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()

    def run(self, job):
        """Runs one job and prints its row; if it failed, also its output."""
        begun = time.monotonic()
        with tempfile.TemporaryFile() as log:
            status, job.cpu_s = self.wait(job, log)
            log.seek(0)
            text = log.read().decode(errors="replace")
        job.wall_s = time.monotonic() - begun
        job.count(text, status)
        word = "FAILED" if job.failed else "ok"
        left_out = dict.fromkeys(line.strip() for line in text.splitlines() if "NOT RUN" in line)
        with self.lock:
            self.done.append(job)
            print(f"{word:6} {job.wall_s:6.1f} s, cpu {job.cpu_s:6.1f} s, {job.passed:4} passed  {job.name}")
            print(text if job.failed else "".join(f"       {line}\n" for line in left_out), end="", flush=True)

    def wait(self, job, log):
        """Runs a job to its end; returns its status, and its CPU seconds with those of its children."""
        # The kernel ends the program when this process ends, for whatever reason.
        command = ["setpriv", "--pdeathsig", "TERM", "timeout", "-k", "30", str(self.limit_s), *job.command]
        child = subprocess.Popen(command, cwd=job.directory, env=os.environ | job.env, stdin=subprocess.DEVNULL,
                                 stdout=log, stderr=subprocess.STDOUT, start_new_session=True)
        with self.lock:
            self.running[child.pid] = job.name
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        with self.lock:
            del self.running[child.pid]
        return child.returncode, used.ru_utime + used.ru_stime

    def ended(self, number, _frame):
        """Ends the running jobs, and prints their names."""
        for pid in list(self.running):
            try:
                os.killpg(pid, signal.SIGTERM)
            except ProcessLookupError:
                pass
        print(f"\nended by signal {number}; unfinished: {', '.join(self.running.values()) or 'none'}")
        self.table()
        os._exit(128 + number)

    def table(self):
        """Prints the time of each job, and the jobs that failed."""
        print(f"\n{'wall':>8} {'cpu':>8}  program")
        for job in sorted(self.done, key=lambda job: -job.wall_s):
            if job.wall_s >= SLOW_S:
                print(f"{job.wall_s:6.0f} s {job.cpu_s:6.0f} s  {job.name}")
        cpu_s = sum(job.cpu_s for job in self.done)
        print(f"{time.monotonic() - self.begun:6.0f} s {cpu_s:6.0f} s  all; the first includes the builds")
        for job in self.done:
            if job.failed:
                print(f"failed: {job.name}")

    def close(self):
        """Prints the table and the sums; returns the exit status."""
        self.table()
        passed, failed = sum(job.passed for job in self.done), sum(job.failed for job in self.done)
        print(f"\n{passed} passed, {failed} failed", flush=True)
        return 1 if failed else 0


def toolchain():
    """Returns the variable with which cargo passes its toolchain on, so that tests that call cargo use the same."""
    root = subprocess.run(["rustc", "--print", "sysroot"], stdout=subprocess.PIPE, text=True, check=True)
    return {"RUSTUP_TOOLCHAIN": Path(root.stdout.strip()).name}
