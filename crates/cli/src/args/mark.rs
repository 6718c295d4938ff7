//! Arguments of `mark`.

use std::str::FromStr;

use clap::Args;
use numalab_marks::mark::PHASES;

/// Longest phase name that the emulator keeps, in characters.
const LETTERS: usize = 64;

/// The phase that counts a command's accesses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    Number(u8),
    Name(String),
}

impl FromStr for Phase {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.bytes().all(|byte| byte.is_ascii_digit()) && !text.is_empty() {
            let number = text.parse().ok().filter(|number| *number < PHASES);
            return number.map(Self::Number).ok_or_else(|| format!("expected 0 to {}", PHASES - 1));
        }
        let fits = (1..=LETTERS).contains(&text.len());
        if !fits || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(format!(
                "expected a name of at most {LETTERS} ASCII letters, digits and punctuation marks, \
                 or 0 to {}",
                PHASES - 1
            ));
        }
        Ok(Self::Name(text.to_owned()))
    }
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  numalab mark -- ./solver                   charge only its accesses
  numalab mark --phase make -- make          count its accesses separately, under this name
  numalab guest run --emulate 2 --cpus 2 --emulate-latency 100 --emulate-report m.json -- \\
    sh -c 'numalab mark --phase build -- ./build; numalab mark --phase walk -- ./walk'
  numalab report m.json                      what each phase accessed

Markers are instructions that have no effect outside the memory emulator (the
QEMU plugin libnumalab_emulator.so). `numalab guest run` marks its own command.
The exit code is the command's.")]
pub(crate) struct MarkArgs {
    /// Count its accesses under the phase with this name or number (0 to 239); phase 0 follows
    #[arg(long, value_name = "NAME|N")]
    pub phase: Option<Phase>,
    /// Show what would be marked; start nothing
    #[arg(long)]
    pub dry_run: bool,
    /// The command, with its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub command: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_phase_is_a_number_or_a_name() {
        assert_eq!("239".parse(), Ok(Phase::Number(239)));
        assert_eq!("step-2".parse(), Ok(Phase::Name("step-2".to_owned())));
        assert_eq!("240".parse::<Phase>(), Err("expected 0 to 239".to_owned()));
        let long = "x".repeat(LETTERS + 1);
        for bad in ["", "two words", "tab\t", "größe", &long] {
            assert!(bad.parse::<Phase>().is_err(), "{bad:?}");
        }
    }
}
