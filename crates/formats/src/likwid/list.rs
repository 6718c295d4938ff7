//! Lists and sizes in the output of `likwid-topology`.

use numalab_topology::MAX_ID;

use crate::size::parse_reported;

/// Groups of numbers: `( 0 12 ) ( 1 13 )`, `10 21`, or `0 12,1 13` in the table of `-O`.
#[derive(Debug, Default)]
pub(super) struct List {
    groups: Vec<Vec<u32>>,
    /// True while a parenthesis is open.
    is_open: bool,
    /// True if a line had the list.
    is_given: bool,
}

impl List {
    /// Adds the text of a line; `None` if it is not a part of a list.
    pub(super) fn add(&mut self, text: &str) -> Option<()> {
        self.is_given = true;
        let spaced = ["(", ")", ","]
            .iter()
            .fold(text.to_owned(), |text, mark| text.replace(mark, &format!(" {mark} ")));
        for word in spaced.split_whitespace() {
            match word {
                "(" if !self.is_open => {
                    self.is_open = true;
                    self.groups.push(Vec::new());
                }
                ")" if self.is_open => self.is_open = false,
                "," => self.groups.push(Vec::new()),
                word => {
                    let number = number(word)?;
                    match self.groups.last_mut() {
                        Some(group) => group.push(number),
                        None => self.groups.push(vec![number]),
                    }
                }
            }
        }
        Some(())
    }

    /// Returns true if the list has begun and ended.
    pub(super) fn is_closed(&self) -> bool {
        self.is_given && !self.is_open
    }

    /// Returns the groups with numbers.
    pub(super) fn groups(&self) -> impl Iterator<Item = &Vec<u32>> {
        self.groups.iter().filter(|group| !group.is_empty())
    }

    /// Returns the numbers of all groups.
    pub(super) fn all(&self) -> impl Iterator<Item = u32> {
        self.groups.iter().flatten().copied()
    }
}

/// Returns true if a line has only numbers and the marks of lists and tables.
pub(super) fn is_part(line: &str) -> bool {
    line.chars().all(|c| c.is_ascii_digit() || " \t(),*".contains(c))
}

/// Returns the number of a cpu, a core, a socket or a node, or a distance.
pub(super) fn number(word: &str) -> Option<u32> {
    word.parse().ok().filter(|&number| number <= MAX_ID)
}

/// Returns a size in bytes, such as `32 kB` or `1.03159e+06 MB`: C's `%g` writes exponents from a million.
pub(super) fn size(text: &str) -> Option<u64> {
    let (value, unit) = text.split_once(' ')?;
    if !matches!(unit, "kB" | "MB" | "GB") {
        return None;
    }
    let (mantissa, exponent) = value.split_once("e+").unwrap_or((value, "0"));
    let factor = 10_u64.checked_pow(exponent.parse().ok()?)?;
    parse_reported(&format!("{mantissa} {unit}"))?.checked_mul(factor)
}
