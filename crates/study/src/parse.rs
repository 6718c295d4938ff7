//! Parses a study, and rejects one that cannot be run.

mod metrics;
mod published;

use std::collections::{BTreeMap, BTreeSet};

use numalab_record::study::FactorKind;
use numalab_workload::{SpecError, Workload};

use toml::de::DeTable;

use crate::backend::Backends;
use crate::definition::{Factor, Study};
use crate::position::Position;
use crate::study_place::StudyPlace;

/// Maximum number of treatments in one block: with more, the machine's drift dominates.
const MOST_TREATMENTS: usize = 256;
/// Largest number of blocks; more would take longer than any user waits.
const MOST_BLOCKS: usize = 100_000;
/// The placeholder that a workload's runner fills in itself: a directory.
const SCRATCH: &str = "scratch";
/// Maximum number of attempts: more do not help on a busy machine.
const MOST_REPEATS: usize = 20;

/// Former names of keys, with the present ones.
const RENAMED: [(&str, &str); 1] = [("world", "`backend`, as in [backend.linux-guest]")];

/// Reason why a file is not a study.
#[derive(Debug, thiserror::Error)]
pub enum ParseError {
    /// The text is not TOML, has an unknown key, or lacks one.
    #[error("{origin}: {message}")]
    Toml { origin: String, message: String },
    #[error("{origin}: {fault}")]
    Workload { origin: String, fault: SpecError },
    #[error("{origin}: {place}: {found}: expected {expected}")]
    Invalid { origin: String, place: StudyPlace, found: String, expected: String },
}

/// Reads a study; `origin` is the file that errors name, and `backends` are those that it may name.
///
/// # Errors
/// [`ParseError`] with the place, the text found there and the expected form.
pub fn parse(text: &str, origin: &str, backends: Backends) -> Result<Study, ParseError> {
    check_spelling(text, origin)?;
    let study: Study = toml::from_str(text).map_err(|error| ParseError::Toml {
        origin: origin.to_owned(),
        message: plainly(error.to_string().trim_end()),
    })?;
    let invalid = |fault: Fault| ParseError::Invalid {
        origin: placed(origin, &fault.place, text),
        place: fault.place,
        found: fault.found,
        expected: fault.expected,
    };
    check(&study).map_err(invalid)?;
    let resolved = study.workloads.iter().map(|workload| {
        workload.resolve().map_err(|fault| ParseError::Workload {
            origin: placed(origin, &StudyPlace::Workload(workload.name().to_owned()), text),
            fault,
        })
    });
    // A missing backend is refused when it is opened.
    let own = backends.kind(&study.backend.kind).map_or(&[][..], |kind| kind.own_metrics);
    let workloads: Vec<Workload> = resolved.collect::<Result<_, _>>()?;
    metrics::check(&study, &workloads, own).map_err(invalid)?;
    published::check(&study).map_err(invalid)?;
    Ok(study)
}

/// Returns the parser's message without its names for types.
fn plainly(message: &str) -> String {
    let whole = "expected a whole number, 0 or more";
    ["usize", "u64", "u32"]
        .iter()
        .fold(message.to_owned(), |text, kind| text.replace(&format!("expected {kind}"), whole))
}

/// Rejects keys that earlier versions had under other names.
fn check_spelling(text: &str, origin: &str) -> Result<(), ParseError> {
    // Invalid TOML is rejected by the parser, with its position.
    let is_key =
        |key: &str| DeTable::parse(text).is_ok_and(|table| table.get_ref().contains_key(key));
    match RENAMED.iter().find(|(old, _)| is_key(old)) {
        None => Ok(()),
        Some((old, new)) => Err(ParseError::Invalid {
            origin: placed(origin, &StudyPlace::keys([*old]), text),
            place: StudyPlace::keys([*old]),
            found: "the name of earlier versions".to_owned(),
            expected: (*new).to_owned(),
        }),
    }
}

/// Returns `mine.toml, line 7, column 8`, or the file alone if the position is not found.
fn placed(origin: &str, place: &StudyPlace, text: &str) -> String {
    Position::of(place, text).map_or_else(|| origin.to_owned(), |at| format!("{origin}{at}"))
}

struct Fault {
    place: StudyPlace,
    found: String,
    expected: String,
}

/// Returns a fault unless `holds`.
fn require(
    holds: bool,
    place: &StudyPlace,
    found: impl ToString,
    expected: &str,
) -> Result<(), Fault> {
    if holds {
        return Ok(());
    }
    Err(Fault { place: place.clone(), found: found.to_string(), expected: expected.to_owned() })
}

fn check(study: &Study) -> Result<(), Fault> {
    require(
        is_name(&study.name),
        &StudyPlace::keys(["name"]),
        &study.name,
        "letters, digits, `-`, `_` and `.`",
    )?;
    check_factors(&study.factors)?;
    check_workloads(study)?;
    let rules = &study.rules;
    let blocks = (1..=MOST_BLOCKS).contains(&rules.blocks);
    require(blocks, &rule("blocks"), rules.blocks, "1 to 100000")?;
    require(rules.warm_ups <= rules.blocks, &rule("warm-ups"), rules.warm_ups, "at most blocks")?;
    let repeats = rules.repeats <= MOST_REPEATS;
    require(repeats, &rule("repeats"), rules.repeats, "0 to 20")?;
    let positive = |value: Option<f64>| value.is_none_or(|value| value > 0.0 && value.is_finite());
    let found = |value: Option<f64>| value.unwrap_or_default();
    let precision = rules.precision_percent;
    require(positive(precision), &rule("precision-percent"), found(precision), "more than 0")?;
    let margin = rules.margin_percent;
    let fits = (0.0..=1000.0).contains(&margin);
    require(fits, &rule("margin-percent"), margin, "0 to 1000")?;
    let about = rules.about_block_s;
    require(positive(about), &rule("about-block-s"), found(about), "more than 0")?;
    require(positive(rules.budget_s), &rule("budget-s"), found(rules.budget_s), "more than 0")
}

/// Returns the place of a key of the study's rules.
fn rule(key: &str) -> StudyPlace {
    StudyPlace::keys(["rules", key])
}

fn is_name(name: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    !name.is_empty() && !name.starts_with('.') && name.len() <= 80 && name.chars().all(fits)
}

fn check_factors(factors: &[Factor]) -> Result<(), Fault> {
    require(!factors.is_empty(), &StudyPlace::keys(["factor"]), "none", "at least one [[factor]]")?;
    let mut names = BTreeSet::new();
    let mut set_by: BTreeMap<String, &str> = BTreeMap::new();
    for factor in factors {
        let place = StudyPlace::Factor(factor.name.clone());
        require(is_name(&factor.name), &place, &factor.name, "letters, digits, `-`, `_` and `.`")?;
        require(names.insert(&factor.name), &place, "twice", "each factor once")?;
        check_levels(factor, &place)?;
        let settings = factor.levels.iter().flat_map(|level| level.settings(&factor.name));
        for (setting, _) in settings {
            let by = *set_by.entry(setting.clone()).or_insert(&factor.name);
            let found = format!("{setting}, which factor {by} sets too");
            require(by == factor.name, &place, found, "each setting in one factor")?;
        }
    }
    let treatments = factors.iter().map(|f| f.levels.len()).try_fold(1_usize, usize::checked_mul);
    // Checked, because a few factors with many levels overflow the product.
    let few = treatments.is_some_and(|treatments| treatments <= MOST_TREATMENTS);
    require(few, &StudyPlace::keys(["factor"]), "too many combinations", "at most 256 of them")
}

fn check_levels(factor: &Factor, place: &StudyPlace) -> Result<(), Fault> {
    let count = factor.levels.len();
    require(
        count >= 2,
        place,
        if count == 1 { "1 level".to_owned() } else { format!("{count} levels") },
        "two levels or more, the baseline first",
    )?;
    let mut names = BTreeSet::new();
    for level in &factor.levels {
        let name = level.name();
        require(!name.is_empty(), place, "a level without a name", "a name for each level")?;
        let found = format!("level {name} twice");
        require(names.insert(name), place, found, "each level once")?;
    }
    if factor.kind == FactorKind::Scale {
        let numbers: Option<Vec<f64>> = factor.levels.iter().map(|level| level.number()).collect();
        let growing = numbers.is_some_and(|numbers| {
            numbers[0] > 0.0 && numbers.windows(2).all(|pair| pair[0] < pair[1])
        });
        let found = factor.levels.iter().map(|level| level.name()).collect::<Vec<_>>().join(", ");
        require(growing, place, found, "increasing positive numbers, for kind = \"scale\"")?;
    }
    Ok(())
}

fn check_workloads(study: &Study) -> Result<(), Fault> {
    let workloads = &study.workloads;
    require(
        !workloads.is_empty(),
        &StudyPlace::keys(["workload"]),
        "none",
        "at least one [[workload]]",
    )?;
    let mut names = BTreeSet::new();
    for workload in workloads {
        let place = StudyPlace::Workload(workload.name().to_owned());
        require(names.insert(workload.name()), &place, "twice", "a separate `name` for each")?;
        let words = workload.command.iter().chain(&workload.arguments).flatten();
        let is_set = |name: &&str| *name != SCRATCH;
        for name in words.flat_map(|word| placeholders(word)).filter(is_set) {
            let sets = |factor: &Factor| {
                factor.levels.iter().all(|level| level.settings(&factor.name).contains_key(name))
            };
            let known = study.factors.iter().any(sets);
            let found = format!("{{{name}}} in the command");
            require(known, &place, found, "a setting of every level of a factor")?;
        }
    }
    Ok(())
}

/// Returns the names in `{...}` that look like names of settings; a shell's braces do not.
fn placeholders(word: &str) -> Vec<&str> {
    let parts = word.split('{').skip(1);
    parts.filter_map(|part| Some(part.split_once('}')?.0)).filter(|name| is_name(name)).collect()
}
