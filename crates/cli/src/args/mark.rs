//! Arguments of `mark`.

use clap::Args;

/// Phases that the emulator tells apart.
const PHASES: i64 = 240;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  numalab mark -- ./solver                   charge its accesses and no others
  numalab mark --phase 1 -- make             count them apart, as phase 1
  numalab guest run --emulate 2 --cpus 2 --emulate-latency 100 --emulate-report m.json -- \\
    sh -c 'numalab mark --phase 1 -- ./build; numalab mark --phase 2 -- ./walk'
  numalab report m.json                      what each phase accessed

Markers are instructions that do nothing elsewhere than under the memory emulator (the
QEMU plugin libnumalab_emulator.so). `numalab guest run` marks its command by itself.
The exit code is the command's.")]
pub(crate) struct MarkArgs {
    /// Count what it does as this phase, 0 to 239; afterwards it is phase 0 again
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(0..PHASES))]
    pub phase: Option<u8>,
    /// The command, with its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub command: Vec<String>,
}
