//! What trials judge by: the program's time on the machine, or a number that it prints.

use numalab_host::Ran;
use numalab_record::study::Reading;
use numalab_workload::{
    Ending, Finished, MetricSpec, OutputError, Pattern, Workload, WorkloadSpec,
};

use crate::args::AdviseArgs;
use crate::failure::Failure;

/// What is judged, as the workload of a study.
#[derive(Clone)]
pub(super) struct Judged {
    /// As it is written in a study.
    pub spec: WorkloadSpec,
    workload: Workload,
}

impl Judged {
    /// The command with the one metric that was asked for.
    pub(super) fn of(args: &AdviseArgs) -> Result<Self, Failure> {
        if let Some(pattern) = &args.metric {
            let checked = Pattern::parse(pattern);
            checked.map_err(|error| Failure::bad_input(format!("--metric: {error}")))?;
        }
        let metric = MetricSpec::of_command(args.metric.clone(), args.better);
        let spec = WorkloadSpec {
            name: Some("program".to_owned()),
            command: Some(args.command.clone()),
            metric: vec![metric],
            ..WorkloadSpec::default()
        };
        let workload = spec.resolve().map_err(Failure::bad_input)?;
        Ok(Self { spec, workload })
    }

    /// What a run gave that took so long on its machine.
    pub(super) fn read(&self, ran: &Ran, elapsed_ns: u64) -> Result<Vec<Reading>, OutputError> {
        self.workload.read(&Finished {
            ending: Ending::Exited(0),
            stdout: &ran.stdout,
            stderr: &ran.stderr,
            elapsed_s: elapsed_ns as f64 / 1e9,
        })
    }

    /// Whether it is a number that the program prints.
    pub(super) fn is_printed(&self) -> bool {
        self.spec.metric.iter().any(|metric| !metric.exit_time)
    }
}
