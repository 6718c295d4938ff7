//! Loads on the wrong path of a mispredicted branch.
//!
//! A core executes instructions on the wrong path until the branch is resolved. Both paths often
//! meet soon, so that lines which later instructions need are already in flight (O. Mutlu et al.,
//! "An Analysis of the Performance Impact of Wrong-Path Memory References on Out-of-Order and
//! Runahead Execution Processors", IEEE Transactions on Computers 54(12), 2005). As in S. Eyerman
//! et al., "Simulating Wrong-Path Instructions in Decoupled Functional-First Simulation" (ISPASS
//! 2023), an address on the wrong path equals the one on the right path after the two have met,
//! unless a register that it depends on was changed before that on either path or is still being
//! loaded.

use alloc::vec::Vec;

use super::Pipeline;
use super::flow::Flow;
use super::value::Value;
use crate::predictor::Prediction;

/// A block of the wrong path: its address, and the registers that blocks before it change.
pub(crate) type Passed = (u64, u64);

/// Maximum number of mispredicted branches that are tracked at a time.
const LONGEST: usize = 16;

/// The wrong path of a core between a mispredicted branch and its resolution.
#[derive(Clone, Copy, Debug, Default)]
struct WrongPath {
    /// Registers that differ from those of the right path, now and at the last mispredicted branch.
    registers: u64,
    before: u64,
    /// The lag of the right path behind the wrong one, and the time at which the branch was
    /// resolved.
    behind_ps: u64,
    resolved_ps: u64,
    /// The first instruction that the reorder buffer had no room for.
    until: u64,
}

/// A core that has mispredicted branches. Its path after the first one continues after the next
/// ones, which were mispredicted as well.
#[derive(Clone, Debug, Default)]
pub(crate) struct Astray {
    /// The wrong path after the last of the branches.
    path: Vec<Passed>,
    /// Index in `path` at which the two paths met; a meeting point in this round replaces one of a
    /// later round.
    met: Option<usize>,
    /// Registers that the right path has changed since the branch.
    changed: u64,
    /// The wrong path after each mispredicted branch.
    wrong_paths: Vec<WrongPath>,
    /// Loads of the block that have missed: no wrong path knows their values.
    loads: u64,
    /// Time at which the last address was translated on a wrong path.
    translated_ps: u64,
}

impl Astray {
    /// Mispredicts a branch, after which the core follows this path.
    fn begin(&mut self, path: Vec<Passed>) {
        if self.met.is_none() || self.wrong_paths.len() >= LONGEST {
            self.wrong_paths.clear();
        }
        self.wrong_paths.iter_mut().for_each(|path| path.before = path.registers);
        self.wrong_paths.push(WrongPath::default());
        (self.path, self.met, self.changed) = (path, None, 0);
    }

    /// Records that the last branch was resolved at `resolved_ps`, which delayed the right path by
    /// `lost_ps`, when instructions from `until` on had no room.
    pub(super) fn resolved(&mut self, resolved_ps: u64, lost_ps: u64, until: u64) {
        let Some(last) = self.wrong_paths.last_mut() else { return };
        (last.resolved_ps, last.until) = (resolved_ps, until);
        self.wrong_paths.iter_mut().for_each(|path| path.behind_ps += lost_ps);
    }

    /// Leaves a block of the right path; from now on, instructions begin with this one.
    fn passes(&mut self, flow: &Flow, instruction: u64) {
        let loads = core::mem::take(&mut self.loads);
        self.wrong_paths.retain(|path| instruction < path.until);
        self.changed |= flow.changed;
        for path in &mut self.wrong_paths {
            let differs = |value: &Value| {
                value.registers() & path.registers != 0 || value.loads() & loads != 0
            };
            let of = |all, (number, value): &(u8, Value)| all | u64::from(differs(value)) << number;
            path.registers = flow.results.iter().fold(path.registers & !flow.changed, of);
        }
    }

    /// Reaches a block of the right path, which may be on the wrong one as well.
    fn reaches(&mut self, address: u64) {
        let passed = &self.path[..self.met.unwrap_or(self.path.len())];
        let Some(at) = passed.iter().position(|(there, _)| *there == address) else { return };
        let changed = self.changed | passed[at].1;
        self.wrong_paths.iter_mut().for_each(|path| path.registers = path.before | changed);
        self.met = Some(at);
    }

    /// Follows the same paths as another core, with branches that were resolved at other times.
    fn shares(&mut self, other: &Self) {
        (self.met, self.loads) = (other.met, other.loads);
        // The oldest ones end first.
        self.wrong_paths.drain(..self.wrong_paths.len().saturating_sub(other.wrong_paths.len()));
        let wrong_paths = self.wrong_paths.iter_mut().rev().zip(other.wrong_paths.iter().rev());
        wrong_paths.for_each(|(mine, others)| mine.registers = others.registers);
    }

    /// Returns the time at which a wrong path first reached an access of the right path that can
    /// begin at `now_ps`, if one did.
    fn reached_ps(&self, address: &Value, now_ps: u64) -> Option<u64> {
        let reached = self.wrong_paths.iter().filter_map(|path| {
            let differs = address.registers() & path.registers | address.loads() & self.loads;
            let reached_ps = now_ps.saturating_sub(path.behind_ps);
            (differs == 0 && reached_ps < path.resolved_ps).then_some(reached_ps)
        });
        reached.min().filter(|_| self.met.is_some())
    }

    /// Returns the time at which the translation of this address, which could begin at `now_ps`,
    /// began.
    pub(super) fn translates_ps(&self, address: &Value, now_ps: u64) -> u64 {
        self.reached_ps(address, now_ps).unwrap_or(now_ps)
    }

    /// Records the end of that translation.
    pub(super) fn translated(&mut self, done_ps: u64) {
        self.translated_ps = done_ps;
    }

    /// Returns the time at which a line at this address that is missed at `now_ps` was requested.
    pub(super) fn asked_ps(&self, address: &Value, now_ps: u64) -> u64 {
        let reached_ps = self.reached_ps(address, now_ps);
        reached_ps.map_or(now_ps, |ps| ps.max(self.translated_ps).min(now_ps))
    }

    /// Records that the load of this number has missed.
    pub(super) fn misses(&mut self, load: u8) {
        self.loads |= 1 << load;
    }
}

impl Pipeline {
    /// Returns true if paths after mispredicted branches are worth knowing for the next block.
    #[inline]
    pub(crate) fn expects_paths(&mut self) -> bool {
        self.expected = self.expected.saturating_sub(1);
        self.expected > 0
    }

    /// Records that the next block, at an address, was mispredicted, and the path that the core follows
    /// meanwhile.
    pub(crate) fn goes_astray(&mut self, path: Vec<Passed>, address: u64) {
        if path.is_empty() {
            self.astray = None;
            return;
        }
        let astray = self.astray.get_or_insert_default();
        astray.begin(path);
        astray.reaches(address);
    }

    /// Moves from a block to the one at an address, which begins with this instruction.
    #[inline]
    pub(crate) fn follows(&mut self, from: Option<&Flow>, address: u64, instruction: u64) {
        if let Some(astray) = &mut self.astray {
            match from {
                Some(flow) => astray.passes(flow, instruction),
                None => astray.wrong_paths.clear(),
            }
            astray.reaches(address);
            if astray.wrong_paths.is_empty() {
                self.astray = None;
            }
        }
    }

    /// Returns true if it may still be on the wrong path of a branch.
    pub(crate) fn is_astray(&self) -> bool {
        self.astray.is_some()
    }

    /// Follows the same paths as another core.
    pub(crate) fn strays_with(&mut self, other: &Self) {
        let is_wrong = self.prediction == Prediction::Wrong;
        match (&mut self.astray, &other.astray) {
            (mine, others) if is_wrong || others.is_none() => mine.clone_from(others),
            (Some(mine), Some(others)) => mine.shares(others),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Core;
    use crate::pipeline::speeds::Speeds;
    use crate::pipeline::x86::decode;

    fn flow(code: &[&[u8]]) -> Flow {
        Flow::new(code.iter().map(|bytes| decode(bytes)), &Speeds::of(&Core::TYPICAL))
    }

    #[test]
    fn an_address_that_is_the_same_on_both_paths_is_reached_before_the_branch_is_resolved() {
        // The wrong path changes %rcx (1) before it meets the right one, which changes %rdx (2).
        let mut astray = Astray::default();
        astray.begin(vec![(0x10, 0), (0x20, 1 << 1)]);
        astray.resolved(90_000, 100_000, 500);
        let of = Value::of_register;
        let asked_ps = |astray: &Astray, number| astray.asked_ps(&of(number), 150_000);
        astray.reaches(0x30);
        assert_eq!(asked_ps(&astray, 3), 150_000, "they have not met");
        // mov %rax,%rdx
        astray.passes(&flow(&[&[0x48, 0x89, 0xc2]]), 0);
        astray.reaches(0x20);
        assert_eq!([1, 2, 3].map(|number| asked_ps(&astray, number)), [150_000, 150_000, 50_000]);
        assert_eq!(astray.asked_ps(&of(3), 200_000), 200_000, "the branch was resolved before");
        // mov %rcx,%rsi; mov %rax,%rdx
        astray.passes(&flow(&[&[0x48, 0x89, 0xce], &[0x48, 0x89, 0xc2]]), 0);
        let differs = [1, 2, 6].map(|number| asked_ps(&astray, number) == 150_000);
        assert_eq!(differs, [true, false, true]);
        astray.misses(0);
        assert_eq!(astray.asked_ps(&Value::of_load(0), 150_000), 150_000, "it is being loaded");
        astray.translated(70_000);
        assert_eq!(asked_ps(&astray, 3), 70_000, "after the walk");
        astray.passes(&flow(&[]), 499);
        assert_eq!(astray.wrong_paths.len(), 1);
        astray.passes(&flow(&[]), 500);
        assert_eq!(astray.wrong_paths.len(), 0);
    }

    #[test]
    fn a_wrong_path_that_has_met_the_right_one_continues_after_the_next_mispredicted_branch() {
        let mut astray = Astray::default();
        for (resolved_ps, lost_ps) in [(90_000, 100_000), (210_000, 60_000)] {
            astray.begin(vec![(0x20, 0)]);
            astray.resolved(resolved_ps, lost_ps, 500);
            astray.reaches(0x20);
        }
        let of = Value::of_register;
        let asked_ps = [240_000, 260_000].map(|now_ps| astray.asked_ps(&of(3), now_ps));
        assert_eq!(asked_ps, [80_000, 200_000], "by the first, and only by the second");
        astray.begin(vec![(0x20, 0), (0x30, 1 << 3)]);
        astray.resolved(300_000, 100_000, 500);
        astray.reaches(0x30);
        assert_eq!(astray.asked_ps(&of(3), 360_000), 360_000, "of another round");
        astray.reaches(0x20);
        assert_eq!(astray.asked_ps(&of(3), 360_000), 200_000, "of the first branch's");
        astray.begin(vec![(0x20, 0)]);
        astray.begin(vec![(0x20, 0)]);
        assert_eq!(astray.wrong_paths.len(), 1, "the one before has never met the right path");
    }
}
