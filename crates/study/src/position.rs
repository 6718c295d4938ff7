//! Positions in a study's text.

use std::fmt;
use std::ops::Range;

use crate::study_place::StudyPlace;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A position in a file, formatted as `, line 7, column 8`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// The line, counted from 1.
    pub line: usize,
    /// The column in characters, counted from 1.
    pub column: usize,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, ", line {}, column {}", self.line, self.column)
    }
}

impl Position {
    /// Finds a place in the text of a study; if some of its keys are missing, the deepest one that
    /// exists.
    pub fn of(place: &StudyPlace, text: &str) -> Option<Self> {
        let table = DeTable::parse(text).ok()?;
        let table = table.get_ref();
        let span = match place {
            StudyPlace::Keys(keys) => deepest(table, keys),
            StudyPlace::Factor(name) => named(table, "factor", name),
            StudyPlace::Workload(name) | StudyPlace::Sample { workload: name, .. } => {
                named(table, "workload", name)
            }
            StudyPlace::Setting(name) => setting(table, name),
            StudyPlace::Treatment(_) | StudyPlace::CommandLine(_) => None,
        }?;
        Some(Self::at(span.start, text))
    }

    fn at(offset: usize, text: &str) -> Self {
        let before = text.get(..offset).unwrap_or(text);
        let line_start = before.rfind('\n').map_or(0, |end| end + 1);
        Self {
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
        }
    }
}

fn tables<'a>(table: &'a DeTable<'a>, name: &str) -> Vec<&'a DeTable<'a>> {
    let array = table.get(name).and_then(|value| value.get_ref().as_array());
    let values = array.into_iter().flat_map(|array| array.iter());
    values.filter_map(|value| value.get_ref().as_table()).collect()
}

/// Returns the name, or else the tool, of the table with this name in an array.
fn named(table: &DeTable<'_>, array: &str, name: &str) -> Option<Range<usize>> {
    let tables = tables(table, array);
    // A workload without a name goes by that of its tool.
    let mut words = tables.iter().filter_map(|table| table.get("name").or(table.get("tool")));
    words.find(|word| word.get_ref().as_str() == Some(name)).map(Spanned::span)
}

/// Returns the position of a setting: that of a factor, or of a level that sets it.
fn setting(table: &DeTable<'_>, name: &str) -> Option<Range<usize>> {
    let in_levels = || {
        let factors = tables(table, "factor");
        factors.iter().flat_map(|factor| tables(factor, "levels")).find_map(|level| {
            let set = level.get("set").and_then(|set| set.get_ref().as_table())?;
            set.get_key_value(name).map(|(key, _)| key.span())
        })
    };
    // A factor with only named levels does not set anything under its own name.
    in_levels().or_else(|| named(table, "factor", name))
}

fn deepest(table: &DeTable<'_>, keys: &[String]) -> Option<Range<usize>> {
    let (first, rest) = keys.split_first()?;
    let (key, value) = table.get_key_value(first.as_str())?;
    let below = match value.get_ref() {
        DeValue::Table(below) => deepest(below, rest),
        _ => None,
    };
    Some(below.unwrap_or_else(|| key.span()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "name = \"s\"\n[backend.linux-guest]\nemulate = \"x\"\n[rules]\nblocks = 0\n\
                        margins.\"w.t\" = 9\n[[factor]]\nname = \"aslr\"\nlevels = [0, 1]\n\
                        [[factor]]\nname = \"p\"\nlevels = [{ name = \"ü\", set = { k = 1 } }]\n\
                        [[workload]]\ntool = \"redis\"\n";

    #[test]
    fn the_place_of_an_error_is_found() {
        let at = |place: &StudyPlace| Position::of(place, TEXT).map(|at| (at.line, at.column));
        let keys = |keys: &[&str]| at(&StudyPlace::keys(keys.iter().copied()));
        assert_eq!(keys(&["name"]), Some((1, 1)));
        assert_eq!(keys(&["backend", "linux-guest", "emulate"]), Some((3, 1)));
        assert_eq!(keys(&["backend", "linux-guest", "nothing"]), Some((2, 10)));
        assert_eq!(keys(&["rules", "blocks"]), Some((5, 1)));
        assert_eq!(keys(&["rules", "margins", "w.t"]), Some((6, 9)));
        assert_eq!(at(&StudyPlace::Factor("aslr".to_owned())), Some((8, 8)));
        assert_eq!(at(&StudyPlace::Factor("p".to_owned())), Some((11, 8)));
        assert_eq!(at(&StudyPlace::Setting("aslr".to_owned())), Some((8, 8)));
        assert_eq!(at(&StudyPlace::Setting("k".to_owned())), Some((12, 33)));
        assert_eq!(at(&StudyPlace::Workload("redis".to_owned())), Some((14, 8)));
        assert_eq!(at(&StudyPlace::Workload("other".to_owned())), None);
        assert_eq!(Position::of(&StudyPlace::keys(["name"]), "no toml"), None);
    }

    #[test]
    fn a_position_is_shown_as_the_tail_of_a_file_name() {
        assert_eq!(Position { line: 7, column: 8 }.to_string(), ", line 7, column 8");
    }
}
