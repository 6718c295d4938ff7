//! Shows remarks and the progress of trials on standard error while advice is made.

use std::time::Duration;

use numalab_advise::{Remark, Watch};
use numalab_host::note;
use numalab_page::number::seconds_words;
use numalab_record::study::Notice;
use numalab_study::Observer;

use crate::output;
use crate::progress::SampleProgress;

/// Duration from which a wait is announced.
const WORTH_SAYING: Duration = Duration::from_secs(3);

/// Keeps a progress bar while trials run.
#[derive(Default)]
pub(super) struct Watcher {
    progress: Option<SampleProgress>,
}

impl Watcher {
    fn progress(&mut self) -> &mut SampleProgress {
        self.progress.get_or_insert_with(|| SampleProgress::new(None))
    }
}

impl Observer for Watcher {
    fn starting(&mut self, notices: &[Notice]) {
        self.progress().starting(notices);
    }

    fn sampled(&mut self, done: usize, in_all: usize) {
        self.progress().sampled(done, in_all);
    }

    fn first_block(&mut self, rest: Duration) {
        let rest = seconds_words(rest.as_secs_f64());
        self.progress()
            .say(format_args!("judging by the first block, at most about {rest} more\n"));
    }
}

impl Watch for Watcher {
    fn remark(&mut self, remark: &Remark) {
        match remark {
            Remark::Trying { .. } | Remark::Following { .. } if output::quiet() => {}
            // Too short to be worth announcing.
            Remark::Following { most, .. } if *most < WORTH_SAYING => {}
            other => note(other),
        }
    }

    fn tried(&mut self) {
        self.progress = None;
    }
}
