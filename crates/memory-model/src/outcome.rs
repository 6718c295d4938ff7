//! How an access went: where its line came from, and until when the vCPU waited for what.

use crate::counters::Figure;

/// Where a line came from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Source {
    /// A cache that the vCPU reaches, or a line on its way already.
    #[default]
    Cache,
    /// Memory.
    Memory,
    /// Another vCPU's caches on its own node.
    Near,
    /// Those of a vCPU on another node.
    Far,
}

/// How a vCPU's last access went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// The time at which it last went on after waiting for an access before.
    pub resumed_ps: u64,
    /// What it waited for this access itself.
    pub own_wait_ps: u64,
    /// When the access was done.
    pub done_ps: u64,
    /// Where its line came from.
    pub source: Source,
    /// Whether caches of its own had the line.
    pub own_cache: bool,
    /// Whether a shared cache would have had the line if all vCPUs were on one node.
    pub on_one_node: bool,
}

/// The same where a vCPU's thread writes it and others may read it.
#[derive(Debug, Default)]
pub(crate) struct LastAccess {
    resumed_ps: Figure,
    own_wait_ps: Figure,
    done_ps: Figure,
    source: Figure,
    own_cache: Figure,
    on_one_node: Figure,
    packed: Figure,
}

impl LastAccess {
    #[inline]
    pub(crate) fn resumes(&self, time_ps: u64) {
        self.resumed_ps.set(time_ps);
    }

    #[inline]
    pub(crate) fn found(&self, own_cache: bool, [on_one_node, packed]: [bool; 2]) {
        self.own_cache.set(u64::from(own_cache));
        self.on_one_node.set(u64::from(on_one_node));
        self.packed.set(u64::from(packed));
    }

    /// Whether a shared cache would have had the line if vCPUs filled node after node.
    #[inline]
    pub(crate) fn packed(&self) -> bool {
        self.packed.get() > 0
    }

    #[inline]
    pub(crate) fn ends(&self, source: Source, own_wait_ps: u64, done_ps: u64) {
        self.source.set(source as u64);
        self.own_wait_ps.set(own_wait_ps);
        self.done_ps.set(done_ps);
    }

    #[inline]
    pub(crate) fn get(&self) -> Outcome {
        let sources = [Source::Cache, Source::Memory, Source::Near, Source::Far];
        let source = usize::try_from(self.source.get()).ok().and_then(|at| sources.get(at));
        Outcome {
            resumed_ps: self.resumed_ps.get(),
            own_wait_ps: self.own_wait_ps.get(),
            done_ps: self.done_ps.get(),
            source: source.copied().unwrap_or_default(),
            own_cache: self.own_cache.get() > 0,
            on_one_node: self.on_one_node.get() > 0,
        }
    }
}
