//! Reads one subject repeatedly.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use numalab_host::Root;
use numalab_record::explore::{NodesView, View};

use crate::error::ExploreError;
use crate::ranks::WhichRank;
use crate::{read_guests, read_heap, read_nodes, read_nodes_since, read_process, read_ranks};

/// The subject of a view.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    /// The nodes of this machine.
    Nodes,
    /// A process, by its id.
    Process(u32),
    /// The guests on this host.
    Guests,
    /// The ranks of one job, or of all.
    Ranks {
        /// The job's id; `None` for all jobs.
        job: Option<String>,
    },
    /// A heap dump.
    Heap(PathBuf),
}

/// A subject, and the previous state of the nodes for rates.
pub struct Looker<'a> {
    subject: Subject,
    root: Root,
    which_rank: WhichRank<'a>,
    before: Option<(NodesView, Instant)>,
}

impl<'a> Looker<'a> {
    /// Creates a looker below `root`.
    pub fn new(subject: Subject, root: Root, which_rank: WhichRank<'a>) -> Self {
        Self { subject, root, which_rank, before: None }
    }

    /// Looks once; rates of nodes are measured over this interval.
    ///
    /// # Errors
    /// [`ExploreError`] if the subject cannot be read.
    pub fn once(&self, interval: Duration) -> Result<View, ExploreError> {
        Ok(match &self.subject {
            Subject::Nodes => View::Nodes(read_nodes(&self.root, interval)?),
            Subject::Process(pid) => View::Process(read_process(&self.root, *pid)?),
            Subject::Guests => View::Guests(read_guests(&self.root)?),
            Subject::Ranks { job } => {
                View::Ranks(read_ranks(&self.root, self.which_rank, job.as_deref())?)
            }
            Subject::Heap(file) => View::Heap(read_heap(file)?),
        })
    }

    /// Looks like [`once`](Self::once), but with rates since the last look instead of a wait.
    ///
    /// # Errors
    /// [`ExploreError`] if the subject cannot be read.
    pub fn again(&mut self) -> Result<View, ExploreError> {
        if self.subject != Subject::Nodes {
            return self.once(Duration::ZERO);
        }
        let now = Instant::now();
        let view = match self.before.take() {
            None => read_nodes(&self.root, Duration::ZERO)?,
            Some((before, at)) => read_nodes_since(&self.root, &before, now - at)?,
        };
        self.before = Some((view.clone(), now));
        Ok(View::Nodes(view))
    }
}
