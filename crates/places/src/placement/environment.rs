//! Environment variables that a treatment sets.

use std::process::Command;

use numalab_study::BackendError;

use super::{ENVIRONMENT, bad};

/// Variables with their values, in the order in which they are written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Environment {
    variables: Vec<(String, String)>,
}

impl Environment {
    /// Reads `OMP_PLACES=cores OMP_PROC_BIND=close`.
    pub(super) fn of(text: &str) -> Result<Self, BackendError> {
        let expected = "NAME=VALUE, separated by spaces";
        let variable = |word: &str| match word.split_once('=') {
            Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
            _ => Err(bad(ENVIRONMENT.name, word, expected)),
        };
        let variables = text.split_whitespace().map(variable).collect::<Result<_, _>>()?;
        Ok(Self { variables })
    }

    pub(super) fn apply(&self, command: &mut Command) {
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
    }
}

#[cfg(test)]
mod tests;
