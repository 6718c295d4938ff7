//! The plugin's entry point.

use std::ffi::{c_char, c_int};
use std::process::Command;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use crate::api::{Api, Info, PluginId};
use crate::flows::Flows;
use crate::follow;
use crate::instrument::register;
use crate::plugin::Plugin;
use crate::pmu::Pmu;
use crate::present::Present;
use crate::program::{Began, Program, Schedule};
use crate::qemu::{Clock, Running, complain, text};
use crate::report::Host;
use crate::self_test::{self, Check};
use crate::target::Target;
use numalab_memory_model::address::Addressing;
use numalab_memory_model::arguments::{Arguments, Mode};
use numalab_memory_model::cost::ps;
use numalab_memory_model::engine::{Engine, PS_PER_INSTRUCTION};

/// Amounts that the clock's self-test charges.
const TRIALS_NS: [i64; 3] = [1, 100, 1 << 40];

/// Called by QEMU when it loads the plugin.
///
/// # Safety
/// Only QEMU may call it, with arguments as `qemu-plugin.h` specifies.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qemu_plugin_install(
    id: PluginId,
    info: *const Info,
    argc: c_int,
    argv: *const *const c_char,
) -> c_int {
    // SAFETY: QEMU passes a valid structure and `argc` C strings, all of which live during this
    // call.
    let (info, words) = unsafe {
        let count = usize::try_from(argc).unwrap_or(0);
        let words: Vec<String> = (0..count).map(|at| text(*argv.add(at))).collect();
        (&*info, words)
    };
    // SAFETY: QEMU's structure has null or a constant C string there.
    let target = unsafe { text(info.target_name) };
    match install(id, info, target, &words) {
        Ok(()) => 0,
        Err(reason) => {
            complain(reason);
            -1
        }
    }
}

fn install(id: PluginId, info: &Info, target: String, words: &[String]) -> Result<(), String> {
    let api = Api::load(info).map_err(|error| error.to_string())?;
    let words = words.iter().map(String::as_str);
    let read = |path: &str| std::fs::read_to_string(path).map_err(|error| error.to_string());
    let arguments = Arguments::parse(words, read);
    let arguments = arguments.map_err(|error| error.to_string())?;
    if !info.system_emulation {
        return install_for_program(id, info, api, arguments, target);
    }
    let vcpus = usize::try_from(info.vcpus_most).unwrap_or(0);
    let mut checks = vec![self_test::vcpus(arguments.machine.cpus.len(), vcpus)];
    let clock = match arguments.mode {
        Mode::Virtual => Some(Clock::find()?),
        Mode::Count | Mode::Sleep => None,
    };
    if let Some(clock) = &clock {
        checks.push(self_test::clock(&TRIALS_NS.map(|ns| (ns, clock.trial(ns)))));
    }
    refuse_failed(&checks)?;
    let pmu = arguments.pmu.as_ref().map(|place| {
        let open = Pmu::open(place, vcpus);
        open.map_err(|error| format!("pmu={}: {error}", place.file))
    });
    let pmu = pmu.transpose()?;
    let version = qemu_version();
    let addressing = Addressing::of_qemu(version.as_deref(), info.version);
    let ps_each =
        clock.as_ref().map_or(PS_PER_INSTRUCTION, |clock| 1000 * clock.ns_per_instruction());
    install_plugin(Plugin {
        program: None,
        api,
        id,
        target: Target::of(&target),
        flows: Flows::of(arguments.machine.core.as_ref(), Target::of(&target)),
        engine: Engine::new(arguments, addressing, ps_each, now),
        clock,
        pmu,
        running: Running::new(vcpus),
        ask_running: OnceLock::new(),
        checks,
        present: Present::default(),
        index_check: OnceLock::new(),
        first: Default::default(),
        host: Host { version, api: info.version, target, vcpus },
    })
}

/// Installs the plugin in QEMU's user mode, where a program runs in the host's time.
fn install_for_program(
    id: PluginId,
    info: &Info,
    api: Api,
    arguments: Arguments,
    target: String,
) -> Result<(), String> {
    if arguments.mode != Mode::Count {
        return Err("a program has no virtual clock to charge: expected mode=count".into());
    }
    let machine = &arguments.machine;
    let wake_ns = machine.calls.map_or(0.0, |calls| calls.wake_ns);
    let schedule = Schedule::new(&machine.cpus, &arguments.threads).waking_in(ps(wake_ns));
    let began = Began::read(arguments.report.as_deref());
    let own = Target::of(&target);
    let program = own.and_then(|own| Program::new(schedule.of_process(began), own));
    let (own, program) = own.zip(program).ok_or_else(|| {
        let known = Target::of_programs().join(" or ");
        format!("programs for {target} are not supported: expected {known}")
    })?;
    follow::register(id, &api).map_err(|error| error.to_string())?;
    let vcpus = arguments.machine.cpus.len();
    install_plugin(Plugin {
        api,
        id,
        target: Some(own),
        flows: Flows::of(arguments.machine.core.as_ref(), Some(own)),
        // The page frames are the model's: user mode has no physical addresses.
        engine: Engine::new(arguments, Addressing::Physical, PS_PER_INSTRUCTION, now).for_threads(),
        program: Some(program),
        clock: None,
        pmu: None,
        running: Running::new(0),
        ask_running: OnceLock::new(),
        checks: Vec::new(),
        present: Present::default(),
        index_check: OnceLock::new(),
        first: Default::default(),
        host: Host { version: None, api: info.version, target, vcpus },
    })
}

fn install_plugin(plugin: Plugin) -> Result<(), String> {
    plugin.publish(None);
    if !plugin.install() {
        return Err("already loaded; one plugin serves the whole machine".into());
    }
    if let Some(plugin) = Plugin::get() {
        register(plugin);
    }
    Ok(())
}

/// Returns the host's monotonic time since the first call.
fn now() -> Duration {
    static EPOCH: OnceLock<Instant> = OnceLock::new();
    EPOCH.get_or_init(Instant::now).elapsed()
}

/// Returns the version string of the running QEMU binary, which the interface does not report.
fn qemu_version() -> Option<String> {
    let output = Command::new("/proc/self/exe").arg("--version").output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let (_, version) = text.split_once("version ")?;
    let end = version.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(version.len());
    (end > 0).then(|| version[..end].to_owned())
}

fn refuse_failed(checks: &[Check]) -> Result<(), String> {
    checks.iter().find(|check| !check.passed).map_or(Ok(()), |check| {
        Err(format!("self-test `{}` failed: {}", check.check, check.detail))
    })
}
