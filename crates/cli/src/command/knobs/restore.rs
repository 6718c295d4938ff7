//! `numalab knobs restore`.

use numalab_host::knobs::{Restored, restore_stale, stale};

use crate::args::KnobRestoreArgs;
use crate::failure::Failure;
use crate::output;

/// Restores the settings that a killed run left behind, and reports them.
pub(super) fn run(args: &KnobRestoreArgs) -> Result<(), Failure> {
    let root = args.root.root()?;
    if args.dry_run {
        let left = stale(&root)?;
        let lines = left.iter().map(|(path, value)| format!("would restore /{path}: {value}\n"));
        let lines: String = lines.collect();
        return output::print(if lines.is_empty() { "nothing to restore\n" } else { &lines });
    }
    let text = match restore_stale(&root)? {
        Restored::Nothing => "nothing to restore\n".to_owned(),
        Restored::Restarted { count } => format!(
            "{count} settings are from a run before the last boot, which reset them: nothing to \
             restore\n"
        ),
        Restored::Files(files) => files
            .iter()
            .map(|file| format!("/{}: {} again (was {})\n", file.path, file.value, file.found))
            .collect(),
    };
    output::print(&text)
}
