//! The emulator's report, as JSON.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use serde::Serialize;

use crate::self_test::Check;
use numalab_memory_model::arguments::{Mode, Start};
use numalab_memory_model::counters::{NodeFigures, VcpuFigures};
use numalab_memory_model::engine::Engine;
use numalab_memory_model::gate::Tally;
use numalab_memory_model::machine::Machine;
use numalab_record::{
    EmulatedAccesses, EmulatedCpu, EmulatedPhase, EmulatedTranslation, ProgramMemory,
};

/// Name and version of the report's format.
pub const SCHEMA: &str = "numalab-emulator/1";

/// The QEMU that ran the guest.
#[derive(Clone, Debug, Serialize)]
pub struct Host {
    /// QEMU's version, if known.
    pub version: Option<String>,
    /// Version of its plugin interface.
    pub api: i32,
    /// The guest's architecture.
    pub target: String,
    /// Number of vCPUs.
    pub vcpus: usize,
}

/// The emulator's report of one run.
#[derive(Debug, Serialize)]
pub struct Report<'a> {
    schema: &'static str,
    plugin: &'static str,
    qemu: &'a Host,
    mode: Mode,
    start: Start,
    sample: u32,
    overlap: u32,
    time_source: &'static str,
    self_test: &'a [Check],
    machine: &'a Machine,
    markers: Tally,
    phases: Vec<EmulatedPhase>,
    /// Only of QEMU's user mode.
    #[serde(skip_serializing_if = "Option::is_none")]
    program: Option<ProgramMemory>,
}

impl<'a> Report<'a> {
    /// Builds the report of the model's counts so far.
    pub fn new(
        engine: &'a Engine,
        qemu: &'a Host,
        self_test: &'a [Check],
        program: Option<ProgramMemory>,
    ) -> Self {
        let arguments = &engine.arguments;
        let phase = |(phase, vcpus): (usize, &[VcpuFigures])| {
            let vcpus = vcpus.iter().enumerate();
            // For a program, only cpus that a thread used.
            let vcpus = vcpus.filter(|(_, figures)| program.is_none() || !figures.is_empty());
            let vcpus = vcpus.map(|(vcpu, figures)| vcpu_of(&arguments.machine, vcpu, figures));
            let name = engine.phase_name(phase);
            EmulatedPhase { phase: phase as u64, name, vcpus: vcpus.collect() }
        };
        let seen = |(_, vcpus): &(usize, &[VcpuFigures])| !vcpus.iter().all(VcpuFigures::is_empty);
        Self {
            schema: SCHEMA,
            plugin: env!("CARGO_PKG_VERSION"),
            qemu,
            mode: arguments.mode,
            start: arguments.start,
            sample: arguments.sample,
            overlap: arguments.overlap,
            time_source: match arguments.mode {
                Mode::Count => "none",
                Mode::Virtual => "icount bias",
                Mode::Sleep => "host sleep",
            },
            self_test,
            machine: &arguments.machine,
            markers: engine.gate.tally(),
            phases: engine.counters.phases().filter(seen).map(phase).collect(),
            program,
        }
    }

    /// Returns the report as indented JSON.
    pub fn to_json(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).unwrap_or_default();
        text.push('\n');
        text
    }

    /// Writes the report to a file, atomically, or to standard error.
    ///
    /// # Errors
    /// The system's error.
    pub fn write(&self, file: Option<&Path>) -> io::Result<()> {
        let text = self.to_json();
        let Some(file) = file else { return io::stderr().write_all(text.as_bytes()) };
        if file.metadata().is_ok_and(|there| !there.is_file()) {
            // A device or a pipe must be written to; a rename would replace it.
            return fs::write(file, text);
        }
        // Next to the file, because a rename does not cross file systems.
        let mut half = file.as_os_str().to_owned();
        half.push(".part");
        fs::write(&half, text)?;
        fs::rename(&half, file)
    }
}

fn vcpu_of(machine: &Machine, vcpu: usize, figures: &VcpuFigures) -> EmulatedCpu {
    let home = machine.cpus[vcpu];
    let all: u64 = figures.nodes.iter().map(NodeFigures::all).sum();
    let nodes = figures.nodes.iter().zip(&machine.nodes);
    EmulatedCpu {
        vcpu: vcpu as u64,
        node: machine.nodes[home].id.into(),
        instructions: figures.instructions.get(),
        time_ns: figures.time_ps.get() / 1000,
        cost_ns: figures.cost_ps.get() / 1000,
        io: figures.io.get(),
        other: figures.other.get(),
        translation: machine.tlb.as_ref().map(|_| EmulatedTranslation {
            walks: figures.walks.get(),
            walk_references: figures.references.get(),
            translation_ns: figures.translation_ps.get() / 1000,
        }),
        local_share: share(figures.nodes[home].all(), all),
        nodes: nodes.map(|(figures, node)| node_of(node.id, figures)).collect(),
    }
}

fn node_of(node: u32, figures: &NodeFigures) -> EmulatedAccesses {
    EmulatedAccesses {
        node: node.into(),
        loads: figures.accesses[0].get(),
        stores: figures.accesses[1].get(),
        load_misses: figures.misses[0].get(),
        store_misses: figures.misses[1].get(),
        lines_written_back: figures.written_back.get(),
        cost_ns: figures.cost_ps.get() / 1000,
        queue_ns: figures.queue_ps.get() / 1000,
    }
}

#[expect(clippy::cast_precision_loss, reason = "a share needs no more than 52 bits")]
fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::self_test;
    use numalab_memory_model::address::Addressing;
    use numalab_memory_model::arguments::Arguments;
    use numalab_memory_model::counters::Kind;
    use numalab_memory_model::engine::{Access, PS_PER_INSTRUCTION};
    use numalab_memory_model::marker::Marker;

    #[test]
    fn a_report_has_all_settings_and_counts() {
        let arguments = "cpus=0.1,memory=1M.1M,latency=100.250/250.100,mode=virtual,start=marker";
        let arguments = Arguments::parse(arguments.split(','), |_| unreachable!()).unwrap();
        let engine = Engine::new(arguments, Addressing::Physical, PS_PER_INSTRUCTION, || {
            std::time::Duration::ZERO
        });
        engine.mark(0, Marker::Begin);
        engine.mark(0, Marker::Phase(2));
        engine.block(1, 5);
        for (address, kind) in [(0, Kind::Load), (1 << 20, Kind::Store), (1 << 30, Kind::Load)] {
            engine.enter(1).access(Access {
                address,
                virtual_address: address,
                kind,
                bytes: 8,
                position: 0,
                table: None,
            });
        }
        engine.io(1);
        b"walk".iter().for_each(|letter| assert_eq!(engine.mark(1, Marker::Letter(*letter)).1, 0));
        engine.mark(1, Marker::NamedPhase);
        engine.io(0);
        let host =
            Host { version: Some("10.0.2".into()), api: 4, target: "x86_64".into(), vcpus: 2 };
        let report = Report::new(&engine, &host, &[self_test::vcpus(2, 2)], None).to_json();
        let version = format!("\"plugin\": \"{}\"", env!("CARGO_PKG_VERSION"));
        insta::assert_snapshot!(report.replace(&version, "\"plugin\": \"VERSION\""));
    }

    #[test]
    fn a_report_replaces_the_one_before_it() {
        let arguments =
            Arguments::parse("cpus=0,memory=1M,distances=10".split(','), |_| unreachable!())
                .unwrap();
        let engine = Engine::new(arguments, Addressing::Physical, PS_PER_INSTRUCTION, || {
            std::time::Duration::ZERO
        });
        let host = Host { version: None, api: 1, target: String::new(), vcpus: 1 };
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("report.json");
        fs::write(&file, "old").unwrap();
        let report = Report::new(&engine, &host, &[], None);
        report.write(Some(&file)).unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), report.to_json());
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1, "no half file is left");
        assert!(report.write(Some(Path::new("/nowhere/report.json"))).is_err());
        // A link, so that a failing test replaces the link and not the machine's device.
        let device = directory.path().join("null");
        std::os::unix::fs::symlink("/dev/null", &device).unwrap();
        report.write(Some(&device)).unwrap();
        assert!(device.symlink_metadata().unwrap().is_symlink(), "a device stays one");
    }
}
