//! `numalab knobs list`.

use numalab_host::knobs::{Acts, FileState, Knob, Listed, list};
use numalab_record::system::{KnobList, KnobNow, KnobState};

use crate::args::KnobListArgs;
use crate::failure::Failure;
use crate::output;

/// Prints every knob, or those asked for.
pub(super) fn run(args: &KnobListArgs) -> Result<(), Failure> {
    let root = args.root.root();
    let named = list(&root);
    let mut shown = Vec::new();
    for name in &args.knobs {
        let known = named.iter().find(|listed| listed.knob.name() == name).cloned();
        shown.push(match known {
            Some(listed) => listed,
            None => {
                let knob = Knob::find(&root, name).map_err(numalab_host::Error::from)?;
                let (state, acts) = (knob.state(&root), knob.acts(&root));
                Listed { knob, summary: String::new(), state, acts }
            }
        });
    }
    let shown = if args.knobs.is_empty() { named } else { shown };
    output::show(&KnobList { knobs: shown.iter().map(now).collect() }, args.format)
}

/// What a knob holds, in words.
pub(super) fn state_words(state: &FileState) -> &str {
    let (state, value) = state_of(state);
    numalab_report::from::system::knob_value(state, value)
}

fn state_of(state: &FileState) -> (KnobState, Option<&str>) {
    match state {
        FileState::Value(value) => (KnobState::Value, Some(value)),
        FileState::WriteOnly => (KnobState::WriteOnly, None),
        FileState::Absent => (KnobState::Absent, None),
        FileState::Denied(_) => (KnobState::Denied, None),
    }
}

fn now(listed: &Listed) -> KnobNow {
    let (state, value) = state_of(&listed.state);
    let why_not = match &listed.acts {
        Acts::Yes => None,
        Acts::No(reason) => Some(reason.clone()),
    };
    KnobNow {
        name: listed.knob.name().to_owned(),
        files: listed.knob.files().iter().map(|file| format!("/{file}")).collect(),
        state,
        value: value.map(str::to_owned),
        acts: why_not.is_none(),
        why_not,
        summary: listed.summary.clone(),
    }
}
