//! The front end of a core: how far it has fetched ahead, and where it restarts after a branch that it
//! has not predicted.

use super::Pipeline;
use super::flow::Flow;
use super::operands::Ends;
use super::parts::Parts;
use crate::predictor::Prediction;

/// Minimum cost of a misprediction for which simulating the wrong path is worthwhile, and the
/// number of blocks within which more of them are expected.
const LONG_PS: u64 = 20_000;
const EXPECTED: u32 = 1 << 16;

impl Pipeline {
    /// Returns the time that a block which begins at `begin_ps` takes: less than on its own if its
    /// instructions were fetched while earlier ones ran, or its stores find room in the queue in
    /// front of the cache; more if that queue is still full.
    #[inline]
    pub fn takes_ps(&mut self, flow: &Flow, begin_ps: u64) -> u64 {
        let Parts { front_ps, jumps_ps, jumps, back_ps, stores_ps } = flow.parts;
        let is_open = flow.ends == Ends::Conditional;
        let front_ps = if jumps && !is_open { jumps_ps } else { front_ps };
        self.stored_ps = self.stored_ps.max(begin_ps) + stores_ps;
        let stored_ps = self.stored_ps.max(self.lined_ps);
        let back_ps = back_ps.max(stored_ps.saturating_sub(begin_ps + self.queue_ps));
        // The front end fetches while the core waits, too, until its queue is full.
        let fetches_ps = self.fetched_ps.max(begin_ps.saturating_sub(self.most_ahead_ps));
        self.fetched_ps = fetches_ps + front_ps;
        back_ps.max(self.fetched_ps.saturating_sub(begin_ps))
    }

    /// Records that the conditional branch at the end of a block was taken: no core fetches past it in the
    /// same cycle.
    #[inline]
    pub(crate) fn jumps(&mut self, flow: &Flow) {
        self.fetched_ps += flow.parts.jumps_ps - flow.parts.front_ps;
    }

    /// Records how the branch at the block's end was predicted.
    pub(crate) fn predicts(&mut self, prediction: Prediction) {
        self.prediction = prediction;
    }

    /// Returns how that branch was predicted, until the next block begins.
    pub(crate) fn prediction(&self) -> Prediction {
        self.prediction
    }

    /// Returns the time at which a core that has reached the block's end at `now_ps` continues
    /// after its branch.
    pub(super) fn restarts_ps(&mut self, now_ps: u64, instruction: u64) -> u64 {
        let lost_ps = match core::mem::take(&mut self.prediction) {
            Prediction::Known => return now_ps,
            Prediction::Late => self.late_ps,
            Prediction::Wrong => {
                let decided_ps = self.flow.map_or(0, |flow| self.known_ps(&flow.decided));
                let decided_ps = now_ps.max(decided_ps);
                let lost_ps = decided_ps + self.branch_ps - now_ps;
                if lost_ps >= LONG_PS {
                    self.expected = EXPECTED;
                }
                if let Some(astray) = &mut self.astray {
                    let full = self.window.full(instruction + self.further_slots, now_ps);
                    astray.resolved(decided_ps, lost_ps, full.saturating_sub(self.further_slots));
                }
                lost_ps
            }
        };
        self.fetched_ps = now_ps + lost_ps;
        self.fetched_ps
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::{Core, Family};
    use crate::pipeline::speeds::Speeds;
    use crate::pipeline::stores::Bytes;
    use crate::pipeline::x86::decode;

    #[test]
    fn a_branch_is_fetched_while_earlier_instructions_run_unless_the_one_before_was_wrong() {
        let core = Core { timing: Some(Family::Zen3.timing(0.1)), ..Core::TYPICAL };
        let of = |code: &[&[u8]], addresses| -> &'static Flow {
            let block = code.iter().map(|bytes| decode(bytes));
            Box::leak(Box::new(Flow::at(block, addresses, &Speeds::of(&core))))
        };
        // Six additions are fetched in one cycle; cmp and jb are in two pieces of code.
        let add: &[u8] = &[0x48, 0x01, 0xd8];
        let adds = of(&[add; 6], (0, 18));
        let jump = of(&[&[0x48, 0x39, 0xd8], &[0x72, 0xfb]], (60, 65));
        assert_eq!([adds.takes_ps, jump.takes_ps], [150, 212]);
        let mut pipeline = Pipeline::new(core, None);
        let mut now_ps = 0;
        let mut all = |pipeline: &mut Pipeline, flows: &[&'static Flow]| -> Vec<u64> {
            let mut takes_ps = |flow: &&'static Flow| {
                let takes_ps = pipeline.takes_ps(flow, now_ps);
                now_ps += takes_ps;
                if flow.ends == Ends::Conditional {
                    pipeline.jumps(flow);
                }
                takes_ps
            };
            flows.iter().map(&mut takes_ps).collect()
        };
        let of_loop = all(&mut pipeline, &[adds, jump, jump, jump, adds]);
        assert_eq!(
            of_loop,
            [150, 100, 100, 190, 296],
            "each jump is fetched before what follows it"
        );
        let most = all(&mut pipeline, &[adds; 100]);
        assert_eq!(most, [150; 100], "nothing waits for the front end");
        assert_eq!(all(&mut pipeline, &[jump]), [100]);
        pipeline.predicts(Prediction::Wrong);
        let begin_ps = pipeline.begin(Some(adds), 100_000, 1).at_ps;
        assert_eq!(pipeline.takes_ps(adds, begin_ps), 150);
        pipeline.jumps(jump);
        assert_eq!(pipeline.takes_ps(adds, begin_ps + 150), 246, "behind a jump");
        assert_eq!(pipeline.takes_ps(adds, begin_ps + 5_000), 150, "fetched while the core waited");
    }

    #[test]
    fn later_instructions_run_while_stores_wait_in_their_queue_until_it_is_full() {
        let core = Core { timing: Some(Family::Zen4.timing(0.1)), ..Core::TYPICAL };
        // movaps %xmm0,(%rax) twelve times: three addresses a cycle, and one store.
        let code: [&[u8]; 12] = [&[0x0f, 0x29, 0x00]; 12];
        let flow = Flow::new(code.into_iter().map(decode), &Speeds::of(&core));
        assert_eq!(flow.takes_ps, 1200);
        let mut pipeline = Pipeline::new(core, None);
        let mut now_ps = 0;
        let mut takes_ps = || {
            let takes_ps = pipeline.takes_ps(&flow, now_ps);
            now_ps += takes_ps;
            takes_ps
        };
        let found: Vec<u64> = (0..8).map(|_| takes_ps()).collect();
        assert_eq!(found, [400, 400, 400, 400, 1200, 1200, 1200, 1200]);
    }

    #[test]
    fn stores_to_different_lines_take_a_cycle_each_on_zen_4() {
        let core = Core { timing: Some(Family::Zen4.timing(0.1)), ..Core::TYPICAL };
        // add %rax,(%rbx); add %rax,(%rcx)
        let code: [&[u8]; 2] = [&[0x48, 0x01, 0x03], &[0x48, 0x01, 0x01]];
        let flow = Flow::new(code.into_iter().map(decode), &Speeds::of(&core));
        let takes_ps = |addresses: [u64; 2]| {
            let mut pipeline = Pipeline::new(core, None);
            let mut now_ps = 0;
            for _ in 0..1000 {
                now_ps += pipeline.takes_ps(&flow, now_ps);
                for (accessor, address) in flow.accessors.iter().zip(addresses) {
                    pipeline.stores(accessor, Bytes::new(address, 8), (now_ps, 1));
                }
            }
            now_ps / 1000
        };
        assert_eq!(takes_ps([64, 72]), 133, "three accesses a cycle");
        let of_lines_ps = takes_ps([64, 128]);
        assert!((195..=200).contains(&of_lines_ps), "{of_lines_ps}");
    }

    #[test]
    fn a_store_whose_value_a_load_gets_at_renaming_takes_a_cycle_on_zen_4() {
        let core = Core { timing: Some(Family::Zen4.timing(0.1)), ..Core::TYPICAL };
        // mov %rax,(%rbx); mov (%rbx),%rcx; the same with %rdx
        let code: [&[u8]; 4] =
            [&[0x48, 0x89, 0x03], &[0x48, 0x8b, 0x0b], &[0x48, 0x89, 0x02], &[0x48, 0x8b, 0x0a]];
        let flow = Flow::new(code.into_iter().map(decode), &Speeds::of(&core));
        let takes_ps = |loaded: u64| {
            let mut pipeline = Pipeline::new(core, None);
            let mut now_ps = 0;
            for number in 0..1000 {
                now_ps += pipeline.takes_ps(&flow, now_ps);
                for (at, address) in [64, 72].into_iter().enumerate() {
                    let stored = Bytes::new(address, 8);
                    pipeline.stores(&flow.accessors[2 * at], stored, (now_ps, 4 * number));
                    let loaded = Bytes::new(address + loaded, 8);
                    let forwarded = pipeline.forwarded(loaded, (4 * number + 1, true));
                    pipeline.renames(forwarded, loaded);
                }
            }
            now_ps / 1000
        };
        assert_eq!(takes_ps(128), 133, "three accesses a cycle");
        assert!((195..=200).contains(&takes_ps(0)), "{}", takes_ps(0));
    }
}
