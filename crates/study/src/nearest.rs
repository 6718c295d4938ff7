//! Suggests the name that was probably meant.

/// Returns the nearest of these names, if at most a third of its letters differ.
pub(crate) fn nearest<'a>(wanted: &str, names: &[&'a str]) -> Option<&'a str> {
    let distances = names.iter().map(|known| (distance(wanted, known), *known));
    let (distance, nearest) = distances.min()?;
    (distance <= wanted.len() / 3).then_some(nearest)
}

/// Returns the edit distance: letters to insert, remove or change to turn one word into the other.
fn distance(one: &str, other: &str) -> usize {
    // One row of the table is enough: a cell depends on no row but the one above.
    let mut row: Vec<usize> = (0..=other.chars().count()).collect();
    for (line, a) in one.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], line + 1);
        for (column, b) in other.chars().enumerate() {
            let changed = diagonal + usize::from(a != b);
            diagonal = row[column + 1];
            row[column + 1] = changed.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_distance_of_words_counts_inserted_removed_and_changed_letters() {
        let distances = [("cpus", "cpus"), ("cpu", "cpus"), ("pcus", "cpus"), ("", "abc")];
        assert_eq!(distances.map(|(one, other)| distance(one, other)), [0, 1, 2, 3]);
    }

    #[test]
    fn a_name_is_suggested_if_at_most_a_third_of_its_letters_differ() {
        let names = ["guests", "guest-memory", "numa", "machine"];
        for (wanted, meant) in [
            ("guest", Some("guests")),
            ("guest_memory", Some("guest-memory")),
            ("nume", Some("numa")),
            ("nu", None),
            ("machin", Some("machine")),
            ("mach", None),
            ("xyz", None),
            ("", None),
        ] {
            assert_eq!(nearest(wanted, &names), meant, "{wanted}");
        }
        assert_eq!(nearest("numa", &[]), None);
    }

    #[test]
    fn the_distance_is_the_same_both_ways_and_at_most_the_longer_word() {
        let words = ["", "a", "ab", "ba", "cpus", "cpu", "memory", "über", "uber"];
        for one in words {
            for other in words {
                let there = distance(one, other);
                assert_eq!(there, distance(other, one), "{one} {other}");
                let longer = one.chars().count().max(other.chars().count());
                assert!(there <= longer, "{one} {other}: {there}");
                assert_eq!(there == 0, one == other, "{one} {other}");
            }
        }
        assert_eq!(distance("über", "uber"), 1, "letters, not bytes");
    }
}
