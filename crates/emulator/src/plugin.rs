//! The plugin as QEMU holds it: the model, and the ways to QEMU.

use std::ffi::c_uint;
use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::api::{Api, PluginId};
use crate::flows::Flows;
use crate::pmu::Pmu;
use crate::present::Present;
use crate::program::{self, Program, program_memory};
use crate::qemu::{Clock, Running, complain, refuse};
use crate::report::{Host, Report};
use crate::self_test::{self, Check};
use numalab_memory_model::engine::{Active, Engine, Step};
use numalab_memory_model::gate::Change;
use numalab_memory_model::marker::Marker;
use numalab_memory_model::outcome::Effect;

/// Everything that QEMU's callbacks need.
#[derive(Debug)]
pub struct Plugin {
    /// The program, where it is no machine that runs.
    pub program: Option<Program>,
    /// QEMU's functions.
    pub api: Api,
    /// QEMU's name for us.
    pub id: PluginId,
    /// The model.
    pub engine: Engine,
    /// How values flow through blocks, where that matters and is known.
    pub flows: Option<Flows>,
    /// The guest's clock, in virtual mode.
    pub clock: Option<Clock>,
    /// The virtual PMU, if it is published.
    pub pmu: Option<Pmu>,
    /// Which vCPU runs, where QEMU's word cannot be taken.
    pub running: Running,
    /// Whether `running` must be asked; decided when the first vCPU starts.
    pub ask_running: OnceLock<bool>,
    /// The vCPU that is in the model, where they take turns on one thread.
    pub present: Present,
    /// Checks passed when the plugin was loaded.
    pub checks: Vec<Check>,
    /// That of the vCPUs' indices.
    pub index_check: OnceLock<Check>,
    /// First accesses: on a node, and elsewhere.
    pub first: [AtomicU64; 2],
    /// The QEMU that it is.
    pub host: Host,
}

static PLUGIN: OnceLock<Plugin> = OnceLock::new();

impl Plugin {
    /// The one plugin of this process.
    #[inline]
    pub fn get() -> Option<&'static Self> {
        PLUGIN.get()
    }

    /// Becomes the one plugin; false if there is one.
    pub fn install(self) -> bool {
        PLUGIN.set(self).is_ok()
    }

    /// The vCPU that executes us, given what QEMU says.
    #[inline]
    pub fn vcpu(&self, said: c_uint) -> usize {
        if self.ask_running.get() == Some(&true) {
            self.running.vcpu().unwrap_or_else(|| refuse("an unknown vCPU runs"))
        } else {
            said as usize
        }
    }

    /// A marker of the vCPU, given what QEMU says: the vCPU, and what changed.
    pub fn mark(&'static self, said: c_uint, marker: Marker) -> (usize, Change) {
        if let Some(program) = &self.program {
            return (0, program.mark(&self.engine, said, marker));
        }
        let vcpu = self.vcpu(said);
        if self.vcpus_stay() {
            // SAFETY: a vCPU that runs calls this.
            unsafe { self.present.leave() };
        }
        let (change, clock_ns) = self.engine.mark(vcpu, marker);
        self.move_clock(clock_ns);
        (vcpu, change)
    }

    /// Has a vCPU that runs do something in the model.
    #[inline]
    pub fn act<T>(&'static self, vcpu: usize, does: impl FnOnce(&mut Active<'_>) -> T) -> T {
        if self.vcpus_stay() {
            // SAFETY: a vCPU that runs calls this, and nothing that it does comes here again.
            does(unsafe { self.present.of(&self.engine, vcpu) })
        } else {
            does(&mut self.engine.enter(vcpu))
        }
    }

    /// Whether all vCPUs run on one thread, and nobody else needs what one holds in the model.
    #[inline]
    fn vcpus_stay(&self) -> bool {
        self.clock.is_some() && self.ask_running.get() == Some(&true)
    }

    /// Does what an access asks for.
    #[inline]
    pub fn apply(&self, vcpu: usize, effect: Effect) {
        match effect {
            Effect::None => {}
            Effect::Advance(ns) => self.move_clock(i64::try_from(ns).unwrap_or(0)),
            Effect::Sleep(time) => {
                let begun = std::time::Instant::now();
                std::thread::sleep(time);
                self.engine.slept(vcpu, begun.elapsed());
            }
        }
    }

    /// Does what a block asks for that begins.
    #[inline]
    pub fn step(&self, step: Step) {
        self.move_clock(step.clock_ns);
        if step.over {
            self.running.end_turn();
        }
    }

    /// Moves the guest's clock, in virtual mode.
    #[inline]
    pub fn move_clock(&self, ns: i64) {
        if let (Some(clock), true) = (&self.clock, ns != 0) {
            clock.advance(ns);
        }
    }

    /// Decides how vCPUs are told apart; refuses if they cannot be. Called on a thread
    /// that runs a vCPU, before it runs any code.
    pub fn tell_vcpus_apart(&self) {
        if self.program.is_some() {
            return;
        }
        self.ask_running.get_or_init(|| {
            let vcpus = self.host.vcpus;
            let by_translator = self.api.version >= crate::api::INDEX_OF_TRANSLATOR;
            let one_thread = Running::one_thread();
            if one_thread == Some(false) {
                return self.index_passed("QEMU says which vCPU runs", false);
            }
            // A clock that counts instructions has them take turns. Else one thread would read what
            // another one runs.
            if one_thread.is_none() && self.clock.is_none() && by_translator && vcpus > 1 {
                refuse("this QEMU does not export whether vCPUs share one thread");
            }
            let known = self.running.learn();
            if vcpus == 1 || (!by_translator && known.is_err()) {
                return self.index_passed("QEMU says which vCPU runs", false);
            }
            let check = self_test::index(vcpus, known);
            if by_translator && !check.passed {
                refuse(&format!("self-test `{}` failed: {}", check.check, check.detail));
            }
            // Older versions say it right, but a turn can be ended only here.
            let _ = self.index_check.set(check);
            by_translator
        });
    }

    fn index_passed(&self, detail: &str, ask: bool) -> bool {
        let check = Check { check: "vcpu index", passed: true, detail: detail.to_owned() };
        let _ = self.index_check.set(check);
        ask
    }

    /// Judges the ranges by the first accesses; refuses if they are others'.
    #[inline]
    pub fn watch_ranges(&self, address: u64) {
        let [on_nodes, elsewhere] = &self.first;
        let (so_far, other) = (on_nodes.load(Relaxed), elsewhere.load(Relaxed));
        if so_far + other >= self_test::RANGE_ACCESSES {
            return;
        }
        let on_node = self.engine.node_of(address).is_some();
        self.first[usize::from(!on_node)].fetch_add(1, Relaxed);
        if so_far + other + 1 == self_test::RANGE_ACCESSES {
            let check = self.range_check();
            if !check.passed {
                refuse(&format!("self-test `{}` failed: {}", check.check, check.detail));
            }
        }
    }

    /// The check of the ranges as it stands.
    fn range_check(&self) -> Check {
        self_test::ranges(self.first[0].load(Relaxed), self.first[1].load(Relaxed))
    }

    /// Writes the report.
    pub fn report(&self) {
        let mut checks = self.checks.clone();
        checks.extend(self.index_check.get().cloned());
        if self.program.is_none() {
            checks.push(self.range_check());
        }
        let program = self.program.as_ref().and_then(program_memory);
        let told = self.engine.arguments.report.as_deref();
        if let Some(program) = &program {
            program::has_come_to(told, program.elapsed_ns * 1000);
        }
        let report = Report::new(&self.engine, &self.host, &checks, program);
        let file = told.map(|file| match self.program {
            // Processes that a program starts have this plugin too.
            Some(_) => program::report_file(file),
            None => file.to_owned(),
        });
        if let Err(error) = report.write(file.as_deref().map(Path::new)) {
            complain(format_args!(
                "report={}: {error}",
                file.as_deref().unwrap_or("standard error")
            ));
        }
    }

    /// Writes the vCPU's block of the virtual PMU, and the header if `header`.
    pub fn publish(&self, vcpu: Option<usize>) {
        let Some(pmu) = &self.pmu else { return };
        let written = match vcpu {
            Some(vcpu) => pmu.publish(&self.engine, vcpu),
            None => pmu.describe(&self.engine),
        };
        if let Err(error) = written {
            complain(format_args!("pmu: {error}"));
        }
    }
}
