//! The front end of a core: how far it has fetched ahead, and where it restarts after a branch that it
//! has not predicted.

use super::Pipeline;
use super::flow::Flow;
use crate::predictor::Prediction;

/// Minimum cost of a misprediction for which following the wrong path is worthwhile, and the number
/// of blocks in which more such mispredictions are expected.
const LONG_PS: u64 = 20_000;
const EXPECTED: u32 = 1 << 16;

impl Pipeline {
    /// Returns the time that a block saves because its instructions were fetched while earlier ones
    /// ran.
    #[inline]
    pub fn saves_ps(&mut self, flow: Option<&Flow>) -> u64 {
        let Some(Flow { takes_ps, parts, .. }) = flow else { return 0 };
        let saved_ps = self.ahead_ps.min(takes_ps - parts.back_ps);
        let ahead_ps = self.ahead_ps + takes_ps - saved_ps - parts.front_ps;
        self.ahead_ps = ahead_ps.min(self.most_ahead_ps);
        saved_ps
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
        if self.prediction != Prediction::Known {
            self.ahead_ps = 0;
        }
        match core::mem::take(&mut self.prediction) {
            Prediction::Known => now_ps,
            Prediction::Late => now_ps + self.late_ps,
            Prediction::Wrong => {
                let decided_ps = self.flow.map_or(0, |flow| self.known_ps(&flow.decided));
                let decided_ps = now_ps.max(decided_ps);
                let lost_ps = decided_ps + self.branch_ps - now_ps;
                if lost_ps >= LONG_PS {
                    self.expected = EXPECTED;
                }
                if let Some(astray) = &mut self.astray {
                    astray.resolved(decided_ps, lost_ps, self.window.full(instruction, now_ps));
                }
                now_ps + lost_ps
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::{Core, Family};
    use crate::pipeline::speeds::Speeds;
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
        let mut saved_ps = |flow| pipeline.saves_ps(Some(flow));
        assert_eq!([adds, jump, jump, adds].map(&mut saved_ps), [0, 50, 0, 0]);
        let most = [adds; 100].map(&mut saved_ps);
        assert_eq!(most, [0; 100], "nothing waits for the front end");
        assert_eq!(saved_ps(jump), 112);
        pipeline.predicts(Prediction::Wrong);
        pipeline.begin(Some(adds), 0, 1);
        assert_eq!(pipeline.saves_ps(Some(jump)), 0);
    }
}
