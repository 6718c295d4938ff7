//! `numalab knobs list`.

use numalab_host::knobs::{FileState, Knob, list};
use numalab_record::system::KnobList;
use numalab_results::system::knob_value;

use crate::args::KnobListArgs;
use crate::failure::Failure;
use crate::output;

/// Prints every knob, or only the given ones.
pub(super) fn run(args: &KnobListArgs) -> Result<(), Failure> {
    let root = args.root.root()?;
    let named = list(&root);
    let mut shown = Vec::new();
    for name in &args.knobs {
        shown.push(match named.iter().find(|known| known.name == *name) {
            Some(known) => known.clone(),
            None => {
                let knob = Knob::find(&root, name)?;
                knob.now(&root, String::new())
            }
        });
    }
    let knobs = if args.knobs.is_empty() { named } else { shown };
    output::show(&KnobList { knobs }, args.format)
}

/// Describes the value of a knob.
pub(super) fn state_words(state: FileState) -> String {
    let (state, value) = state.into_parts();
    knob_value(state, value.as_deref()).to_owned()
}
