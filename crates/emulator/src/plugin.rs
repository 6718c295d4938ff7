//! The plugin's state: the model, and the interfaces to QEMU.

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
use crate::target::Target;
use numalab_memory_model::engine::{Active, Engine, Step};
use numalab_memory_model::gate::Change;
use numalab_memory_model::marker::Marker;
use numalab_memory_model::outcome::Effect;

/// Everything that QEMU's callbacks need.
#[derive(Debug)]
pub struct Plugin {
    /// The program, in QEMU's user mode.
    pub program: Option<Program>,
    pub api: Api,
    /// The plugin's id in QEMU.
    pub id: PluginId,
    pub engine: Engine,
    /// The processor, if it is a known one.
    pub target: Option<&'static Target>,
    /// Data flows of blocks, if cores are modelled and code can be decoded.
    pub flows: Option<Flows>,
    /// The guest's clock, in virtual time.
    pub clock: Option<Clock>,
    /// The virtual PMU, if it is published.
    pub pmu: Option<Pmu>,
    /// Identifies the running vCPU if QEMU's index is wrong.
    pub running: Running,
    /// If true, `running` must be used; decided when the first vCPU starts.
    pub ask_running: OnceLock<bool>,
    /// The vCPU that is active in the model, if vCPUs share one thread.
    pub present: Present,
    /// Checks passed when the plugin was loaded.
    pub checks: Vec<Check>,
    /// Check of the vCPU indices.
    pub index_check: OnceLock<Check>,
    /// The first accesses: to nodes, and elsewhere.
    pub first: [AtomicU64; 2],
    pub host: Host,
}

static PLUGIN: OnceLock<Plugin> = OnceLock::new();

impl Plugin {
    /// Returns this process's only plugin, once installed.
    #[inline]
    pub fn get() -> Option<&'static Self> {
        PLUGIN.get()
    }

    /// Installs this as the only plugin; returns false if there is one already.
    pub fn install(self) -> bool {
        PLUGIN.set(self).is_ok()
    }

    /// Returns the vCPU that is executing, given the index that QEMU passed.
    #[inline]
    pub fn vcpu(&self, index: c_uint) -> usize {
        if self.ask_running.get() == Some(&true) {
            self.running.vcpu().unwrap_or_else(|| refuse("an unknown vCPU is running"))
        } else {
            index as usize
        }
    }

    /// Applies a marker; returns the vCPU and what changed. `index` is the index that QEMU passed.
    ///
    /// # Safety
    /// As for [`Self::act`].
    pub unsafe fn mark(&'static self, index: c_uint, marker: Marker) -> (usize, Change) {
        if let Some(program) = &self.program {
            return (0, program.mark(&self.engine, index, marker));
        }
        let vcpu = self.vcpu(index);
        if self.vcpus_stay() {
            // SAFETY: guaranteed by the caller; vCPUs share its thread.
            unsafe { self.present.leave() };
        }
        let (change, clock_ns) = self.engine.mark(vcpu, marker);
        self.move_clock(clock_ns);
        (vcpu, change)
    }

    /// Runs `action` with the vCPU's active part of the model.
    ///
    /// # Safety
    /// The calling thread is running a vCPU, in one of our callbacks, and not within `action`.
    #[inline]
    pub unsafe fn act<T>(
        &'static self,
        vcpu: usize,
        action: impl FnOnce(&mut Active<'_>) -> T,
    ) -> T {
        if self.vcpus_stay() {
            // SAFETY: guaranteed by the caller; vCPUs share its thread.
            action(unsafe { self.present.of(&self.engine, vcpu) })
        } else {
            action(&mut self.engine.enter(vcpu))
        }
    }

    /// Returns true if all vCPUs share one thread and none needs what another holds in the model.
    #[inline]
    fn vcpus_stay(&self) -> bool {
        self.clock.is_some() && self.ask_running.get() == Some(&true)
    }

    /// Applies the effect of an access.
    #[inline]
    pub fn apply(&self, vcpu: usize, effect: Effect) {
        match effect {
            Effect::None => {}
            Effect::Advance(ns) => self.move_clock(i64::try_from(ns).unwrap_or(0)),
            Effect::Sleep(time) => {
                // A sleep may last longer than requested, so its real length is subtracted from the
                // debt.
                let begun = std::time::Instant::now();
                std::thread::sleep(time);
                self.engine.slept(vcpu, begun.elapsed());
            }
        }
    }

    /// Applies the effect of a block's start.
    #[inline]
    pub fn step(&self, step: Step) {
        self.move_clock(step.clock_ns);
        if step.over {
            self.running.end_turn();
        }
    }

    /// Advances the guest's clock, in virtual time.
    #[inline]
    pub fn move_clock(&self, ns: i64) {
        if let (Some(clock), true) = (&self.clock, ns != 0) {
            clock.advance(ns);
        }
    }

    /// Decides how to identify the running vCPU, and refuses to run if it cannot be done. Called on
    /// a vCPU's thread before it runs any code.
    pub fn tell_vcpus_apart(&self) {
        if self.program.is_some() {
            return;
        }
        self.ask_running.get_or_init(|| {
            let vcpus = self.host.vcpus;
            let by_translator = self.api.version >= crate::api::INDEX_OF_TRANSLATOR;
            let one_thread = Running::one_thread();
            if one_thread == Some(false) {
                return self.index_passed("QEMU identifies the running vCPU", false);
            }
            // A clock that counts instructions implies that vCPUs share a thread. Without it, one
            // thread would read another's state.
            if one_thread.is_none() && self.clock.is_none() && by_translator && vcpus > 1 {
                refuse("this QEMU does not export whether vCPUs share one thread");
            }
            let known = self.running.learn();
            if vcpus == 1 || (!by_translator && known.is_err()) {
                return self.index_passed("QEMU identifies the running vCPU", false);
            }
            let check = self_test::index(vcpus, known);
            if by_translator && !check.passed {
                refuse(&format!("self-test `{}` failed: {}", check.check, check.detail));
            }
            // Older versions pass the right index, but only `Running` can end a turn.
            let _ = self.index_check.set(check);
            by_translator
        });
    }

    fn index_passed(&self, detail: &str, ask: bool) -> bool {
        let check = Check { check: "vcpu index", passed: true, detail: detail.to_owned() };
        let _ = self.index_check.set(check);
        ask
    }

    /// Checks the ranges by the first accesses, and refuses to run if they do not match.
    #[inline]
    pub fn watch_ranges(&self, address: u64) {
        let [on_nodes, elsewhere] = &self.first;
        // Not atomic together: vCPUs on several threads may pass the limit unseen. The report
        // repeats the check, so a mismatch is never lost.
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

    /// Returns the current result of the check of the ranges.
    fn range_check(&self) -> Check {
        self_test::ranges(self.first[0].load(Relaxed), self.first[1].load(Relaxed))
    }

    pub fn report(&self) {
        let mut checks = self.checks.clone();
        checks.extend(self.index_check.get().cloned());
        if self.program.is_none() {
            checks.push(self.range_check());
        }
        let program = self.program.as_ref().and_then(program_memory);
        let path = self.engine.arguments.report.as_deref();
        if let Some(program) = &program {
            // A parent that waits for this process continues at this time.
            program::has_come_to(path, program.elapsed_ns * 1000);
        }
        let report = Report::new(&self.engine, &self.host, &checks, program);
        let file = path.map(|file| match self.program {
            // Processes that a program starts load this plugin too, and need separate files.
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

    /// Publishes the vCPU's block of the virtual PMU, or the header if there is no vCPU.
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
