//! `numalab knobs list`.

use numalab_host::knobs::{Acts, FileState, Knob, Listed, list};
use numalab_record::Kind;
use serde_json::{Value, json};

use crate::args::{KnobFormat, KnobListArgs};
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
    match args.format {
        KnobFormat::Text => output::print(&text(&shown)),
        KnobFormat::Json => output::print(&output::json_line(serde_json::to_string_pretty(
            &json!({ "schema": Kind::Knobs, "knobs": shown.iter().map(object).collect::<Vec<_>>() }),
        ))?),
    }
}

/// What a knob holds, in words.
pub(super) fn state_words(state: &FileState) -> &str {
    match state {
        FileState::Value(value) if value.is_empty() => "(empty)",
        FileState::Value(value) => value,
        FileState::WriteOnly => "(write-only)",
        FileState::Absent => "-",
        FileState::Denied(_) => "(denied)",
    }
}

/// Those that can act, then the others with the reason.
fn text(shown: &[Listed]) -> String {
    let name_width = shown.iter().map(|listed| listed.knob.name().len()).max().unwrap_or(0);
    let value = |listed: &Listed| state_words(&listed.state).to_owned();
    let value_width = shown.iter().map(|listed| value(listed).len()).max().unwrap_or(0).min(24);
    let line = |listed: &Listed, last: &str| {
        let name = listed.knob.name();
        format!("  {name:name_width$}  {:value_width$}  {last}", value(listed))
            .trim_end()
            .to_owned()
            + "\n"
    };
    let mut can = String::new();
    let mut cannot = String::new();
    for listed in shown {
        match &listed.acts {
            Acts::Yes => can += &line(listed, &listed.summary),
            Acts::No(reason) => cannot += &line(listed, reason),
        }
    }
    let section = |title: &str, lines: String| {
        if lines.is_empty() { lines } else { format!("{title}\n{lines}") }
    };
    section("can act here", can) + &section("cannot act here, because", cannot)
}

fn object(listed: &Listed) -> Value {
    let (state, value) = match &listed.state {
        FileState::Value(value) => ("value", Some(value)),
        FileState::WriteOnly => ("write-only", None),
        FileState::Absent => ("absent", None),
        FileState::Denied(_) => ("denied", None),
    };
    let reason = match &listed.acts {
        Acts::Yes => None,
        Acts::No(reason) => Some(reason),
    };
    let files: Vec<String> = listed.knob.files().iter().map(|file| format!("/{file}")).collect();
    json!({
        "name": listed.knob.name(),
        "files": files,
        "state": state,
        "value": value,
        "acts": reason.is_none(),
        "why_not": reason,
        "summary": listed.summary,
    })
}
