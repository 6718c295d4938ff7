//! `numalab knobs restore`.

use numalab_host::knobs::{Restored, restore_stale, stale};

use crate::args::KnobRestoreArgs;
use crate::failure::Failure;
use crate::output;

/// Puts back what a killed run left, and says what it was.
pub(super) fn run(args: &KnobRestoreArgs) -> Result<(), Failure> {
    let root = args.root.root();
    if args.dry_run {
        let left = stale(&root)?;
        let lines = left.iter().map(|(path, value)| format!("would put back /{path}: {value}\n"));
        let lines: String = lines.collect();
        return output::print(if lines.is_empty() { "nothing to put back\n" } else { &lines });
    }
    let text = match restore_stale(&root)? {
        Restored::Nothing => "nothing to put back\n".to_owned(),
        Restored::Restarted { count } => format!(
            "{count} settings of a run before this machine was restarted: the kernel has \
             forgotten them, nothing to put back\n"
        ),
        Restored::Files(files) => files
            .iter()
            .map(|file| format!("/{}: {} again (was {})\n", file.path, file.value, file.found))
            .collect(),
    };
    output::print(&text)
}
