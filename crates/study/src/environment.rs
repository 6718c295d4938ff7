//! What must be the same for a study to go on.

use numalab_record::Environment;

/// What differs between two environments, as a reader needs it: `kernel was 6.1, is 6.2`.
pub(crate) fn differences(began: &Environment, now: &Environment) -> Vec<String> {
    let shown = |value: Option<&str>| value.unwrap_or("absent").to_owned();
    began
        .differences(now)
        .into_iter()
        .filter(|(name, ..)| Environment::lasts(name))
        .filter(|(_, began, now)| began.map(lasting) != now.map(lasting))
        .map(|(name, began, now)| format!("{name} was {}, is {}", shown(began), shown(now)))
        .collect()
}

/// The part of a value that stays: of `7 (3 free)`, how many pages there are.
fn lasting(value: &str) -> &str {
    match value.strip_suffix(" free)") {
        Some(whole) => whole.split(" (").next().unwrap_or(whole),
        None => value,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(facts: &[(&str, &str)]) -> Environment {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        Environment { facts: facts.iter().map(owned).collect() }
    }

    #[test]
    fn what_changes_by_itself_is_no_difference() {
        let began = facts(&[("load_average", "1"), ("huge_pages_2048kb", "7 (3 free)")]);
        let now = facts(&[("load_average", "2"), ("huge_pages_2048kb", "7 (7 free)")]);
        assert!(differences(&began, &now).is_empty());
    }

    #[test]
    fn what_differs_is_said_with_both_values() {
        let began = facts(&[("kernel", "6.1"), ("huge_pages_2048kb", "7 (3 free)")]);
        let now = facts(&[("kernel", "6.2")]);
        let expected = ["huge_pages_2048kb was 7 (3 free), is absent", "kernel was 6.1, is 6.2"];
        assert_eq!(differences(&began, &now), expected);
    }
}
