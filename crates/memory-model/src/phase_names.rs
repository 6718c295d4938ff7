//! Names of phases, which a guest spells letter by letter with markers.

use crate::marker::PHASES;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

/// Maximum number of letters kept of a name.
const LETTERS: usize = 64;
/// First number given to a named phase. Lower numbers are reserved for guests that number their
/// phases, until all others are used.
const FIRST: usize = 128;

/// The letters spelled by each vCPU, and the numbers of the names so far.
#[derive(Debug)]
pub struct PhaseNames {
    spelled: Vec<Vec<u8>>,
    names: Vec<(usize, String)>,
}

impl PhaseNames {
    /// Creates an empty table for a machine with `vcpus`.
    pub fn new(vcpus: usize) -> Self {
        Self { spelled: vec![Vec::new(); vcpus], names: Vec::new() }
    }

    /// Appends a letter to the name that this vCPU spells.
    pub fn spell(&mut self, vcpu: usize, letter: u8) {
        let spelled = &mut self.spelled[vcpu];
        if spelled.len() < LETTERS {
            spelled.push(letter);
        }
    }

    /// Returns the number of the phase that this vCPU has spelled, assigning an unused one to a new
    /// name. Returns phase 0 if nothing was spelled or no number is left.
    pub fn number(&mut self, vcpu: usize, is_taken: impl Fn(usize) -> bool) -> usize {
        let name = core::mem::take(&mut self.spelled[vcpu]);
        let name = String::from_utf8_lossy(&name).into_owned();
        if name.is_empty() {
            return 0;
        }
        if let Some((number, _)) = self.names.iter().find(|(_, known)| *known == name) {
            return *number;
        }
        let free = |number: &usize| !is_taken(*number) && self.of(*number).is_none();
        let Some(number) = (FIRST..PHASES).chain(1..FIRST).find(free) else { return 0 };
        self.names.push((number, name));
        number
    }

    /// Returns the name of a phase, if it has one.
    pub fn of(&self, number: usize) -> Option<&str> {
        let found = self.names.iter().find(|(named, _)| *named == number);
        found.map(|(_, name)| name.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(names: &mut PhaseNames, vcpu: usize, name: &str) -> usize {
        name.bytes().for_each(|letter| names.spell(vcpu, letter));
        names.number(vcpu, |number| number == 129)
    }

    #[test]
    fn a_name_has_the_same_number_on_every_vcpu() {
        let mut names = PhaseNames::new(2);
        names.spell(1, b'w');
        assert_eq!(name(&mut names, 0, "build"), 128);
        assert_eq!(name(&mut names, 1, "alk"), 130, "129 is taken by a guest's number");
        assert_eq!(name(&mut names, 1, "build"), 128);
        assert_eq!((names.of(128), names.of(130)), (Some("build"), Some("walk")));
        assert_eq!(name(&mut names, 0, ""), 0);
        assert_eq!(names.of(129), None);
    }

    #[test]
    fn more_names_than_numbers_are_phase_0_and_long_ones_are_cut() {
        let mut names = PhaseNames::new(1);
        let numbers: Vec<usize> =
            (0..240).map(|at| name(&mut names, 0, &format!("p{at}"))).collect();
        assert_eq!(numbers.iter().filter(|number| **number == 0).count(), 2);
        let mut distinct = numbers.clone();
        distinct.sort_unstable();
        distinct.dedup();
        assert_eq!(distinct.len(), 239);
        let mut names = PhaseNames::new(1);
        let number = name(&mut names, 0, &"x".repeat(1000));
        assert_eq!(names.of(number).map(str::len), Some(LETTERS));
    }
}
