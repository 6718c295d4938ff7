//! Memory for guests: domains that populate, exchange and give up extents, as Xen's memory
//! operations do (`XENMEM_populate_physmap`, `XENMEM_exchange`, `XENMEM_decrease_reservation`).

use crate::error::{AllocError, FreeError};
use crate::fences::Fences;
use crate::frames::Frames;
use crate::ids::Owner;
use crate::ids::{CpuIndex, Frame, NodeIndex, Order};
use crate::policy::{Policy, Request};
use crate::sync::{Ordering, Word};

/// The node for a domain's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Affinity {
    /// Only on this node.
    Exact(NodeIndex),
    /// On this node, otherwise on the next one in its fallback order.
    Preferred(NodeIndex),
}

/// A domain: an owner of frames, with an account of the frames it holds on each node.
#[derive(Clone, Copy)]
pub struct Domain<'d> {
    owner: Owner,
    held: &'d [Word],
}

/// Reasons why a domain's memory was not changed, or only in part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DomainError {
    /// There was no more memory.
    #[error("after {done} extents: {error}")]
    Alloc {
        /// Number of extents populated before the failure.
        done: usize,
        /// Reason for the failure of the next extent.
        error: AllocError,
    },
    /// An extent could not be freed.
    #[error("after {done} extents: {error}")]
    Free {
        /// Number of extents freed before.
        done: usize,
        /// Reason for the failure of the next extent.
        error: FreeError,
    },
    /// The domain's account of a node is smaller than the extent it gives up there.
    #[error("extent {place} at {frame}: the domain holds {held} frames on its node")]
    NotHeld {
        /// Position of the extent.
        place: usize,
        /// First frame of the extent.
        frame: Frame,
        /// Frames that the domain holds on the extent's node.
        held: u64,
    },
    /// An exchange of unequal sizes.
    #[error("an exchange of {given} frames for {wanted}: expected equal numbers")]
    Unequal {
        /// Frames given up.
        given: u64,
        /// Frames wanted.
        wanted: u64,
    },
    /// There are fewer accounts than nodes.
    #[error("{accounts} accounts: expected one for each of {nodes} nodes")]
    Accounts {
        /// Number of accounts of the domain.
        accounts: usize,
        /// Number of nodes of the machine.
        nodes: usize,
    },
}

impl<'d> Domain<'d> {
    /// Creates a domain that holds the frames in `held`: one word per node with the number of its
    /// frames.
    pub const fn new(owner: Owner, held: &'d [Word]) -> Self {
        Self { owner, held }
    }

    /// Returns the number of frames that the domain holds on a node.
    pub fn held(&self, node: NodeIndex) -> u64 {
        self.held.get(node.at()).map_or(0, |held| held.load(Ordering::Relaxed))
    }

    /// Fills `extents` with blocks of an order.
    ///
    /// # Errors
    /// [`DomainError::Alloc`]: the first `done` extents still belong to the domain;
    /// [`DomainError::Accounts`].
    pub fn populate<F: Fences>(
        &self,
        frames: &Frames<'_, F>,
        cpu: CpuIndex,
        order: Order,
        affinity: Affinity,
        extents: &mut [Frame],
    ) -> Result<(), DomainError> {
        self.check_accounts(frames)?;
        let policy = match affinity {
            Affinity::Exact(node) => Policy::Exact(node),
            Affinity::Preferred(node) => Policy::Preferred(node),
        };
        let request = Request::order(order).policy(policy).owner(self.owner);
        for (done, extent) in extents.iter_mut().enumerate() {
            *extent =
                frames.alloc(cpu, &request).map_err(|error| DomainError::Alloc { done, error })?;
            self.account(frames, *extent).fetch_add(order.frames(), Ordering::Relaxed);
        }
        Ok(())
    }

    /// Gives up blocks of an order.
    ///
    /// # Errors
    /// [`DomainError::NotHeld`], [`DomainError::Free`]: the preceding extents have been given up;
    /// [`DomainError::Accounts`].
    pub fn decrease<F: Fences>(
        &self,
        frames: &Frames<'_, F>,
        cpu: CpuIndex,
        order: Order,
        extents: &[Frame],
    ) -> Result<(), DomainError> {
        self.check_accounts(frames)?;
        for (place, &extent) in extents.iter().enumerate() {
            self.give_up(frames, cpu, order, place, extent)?;
        }
        Ok(())
    }

    /// Gives up `given`, blocks of one order, for the same amount of memory in blocks of another
    /// order, `wanted`: all of it or none.
    ///
    /// # Errors
    /// [`DomainError::Unequal`]; [`DomainError::Alloc`]: nothing has changed;
    /// [`DomainError::NotHeld`], [`DomainError::Free`]: the domain has its new extents, and still
    /// those of `given` from `done` (or `place`) on.
    pub fn exchange<F: Fences>(
        &self,
        frames: &Frames<'_, F>,
        cpu: CpuIndex,
        given: (Order, &[Frame]),
        wanted: (Order, &mut [Frame]),
        affinity: Affinity,
    ) -> Result<(), DomainError> {
        let ((given_order, given), (order, wanted)) = (given, wanted);
        let size = |order: Order, extents: usize| order.frames() * extents as u64;
        let sizes = (size(given_order, given.len()), size(order, wanted.len()));
        if sizes.0 != sizes.1 {
            return Err(DomainError::Unequal { given: sizes.0, wanted: sizes.1 });
        }
        if let Err(error) = self.populate(frames, cpu, order, affinity, wanted) {
            if let DomainError::Alloc { done, .. } = error {
                self.decrease(frames, cpu, order, &wanted[..done])?;
            }
            return Err(error);
        }
        self.decrease(frames, cpu, given_order, given)
    }

    fn give_up<F: Fences>(
        &self,
        frames: &Frames<'_, F>,
        cpu: CpuIndex,
        order: Order,
        place: usize,
        extent: Frame,
    ) -> Result<(), DomainError> {
        let free = |error| DomainError::Free { done: place, error };
        if frames.node_of(extent).is_none() {
            return Err(free(FreeError::NotManaged { frame: extent }));
        }
        let account = self.account(frames, extent);
        let less = |held: u64| held.checked_sub(order.frames());
        account
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, less)
            .map_err(|held| DomainError::NotHeld { place, frame: extent, held })?;
        if !extent.number().is_multiple_of(order.frames()) {
            account.fetch_add(order.frames(), Ordering::Relaxed);
            return Err(free(FreeError::Misaligned { frame: extent, order }));
        }
        frames.free_owned(cpu, extent, order.frames(), self.owner).map_err(|error| {
            account.fetch_add(order.frames(), Ordering::Relaxed);
            free(error)
        })
    }

    fn check_accounts<F: Fences>(&self, frames: &Frames<'_, F>) -> Result<(), DomainError> {
        let (accounts, nodes) = (self.held.len(), frames.machine().nodes());
        if accounts < nodes { Err(DomainError::Accounts { accounts, nodes }) } else { Ok(()) }
    }

    /// Returns the account of the node of a managed frame; the callers have checked that there is
    /// one.
    fn account<F: Fences>(&self, frames: &Frames<'_, F>, frame: Frame) -> &'d Word {
        let node = frames.node_of(frame).unwrap_or(NodeIndex(0));
        &self.held[node.at()]
    }
}
