//! Checks that published figures belong to treatments of the study.

use super::{Fault, require};
use crate::definition::Study;
use crate::nearest::nearest;
use crate::plan::treatments;
use crate::study_place::StudyPlace;

/// Rejects figures of treatments that the study does not have, and values that no change in percent
/// follows from.
pub(super) fn check(study: &Study) -> Result<(), Fault> {
    if study.published.is_empty() {
        return Ok(());
    }
    let names: Vec<String> = treatments(study).into_iter().map(|of| of.name).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    for published in &study.published {
        let place = StudyPlace::keys(["published"]);
        for (name, value) in &published.values {
            let meant = nearest(name, &names).map(|name| format!("; did you mean `{name}`?"));
            let expected =
                format!("a treatment, one of {}{}", names.join(", "), meant.unwrap_or_default());
            require(names.contains(&name.as_str()), &place, name, &expected)?;
            let is_usable = value.is_finite() && *value > 0.0;
            require(is_usable, &place, format!("{value} for {name}"), "more than 0")?;
        }
    }
    Ok(())
}
