//! Requests, and the order in which the pools are tried.

use crate::error::AllocError;
use crate::ids::{MAX_RUN_FRAMES, NodeIndex, NodeMask, Order, Owner, ZoneIndex};
use crate::machine::Machine;
use crate::runs::RunRequest;

/// The nodes that frames may come from, and their order.
#[derive(Clone, Copy, Debug)]
pub enum Policy<'p> {
    /// The cpu's own node, then the others in the fallback order of that node.
    Local,
    /// This node, then the others in its fallback order.
    Preferred(NodeIndex),
    /// Only this node.
    Exact(NodeIndex),
    /// Only the nodes of the mask, in the fallback order of the cpu's node.
    Bind(&'p NodeMask),
    /// The nodes of the mask in turn, each as often per round as its weight; a node without free
    /// memory is replaced by the others of the mask in its fallback order.
    Interleave {
        /// The nodes.
        nodes: &'p NodeMask,
        /// The weight of each node, from node 0; a node without an entry has weight 1.
        weights: &'p [u8],
    },
    /// All nodes by number, like an allocator without knowledge of nodes: the baseline for
    /// comparisons.
    Blind,
}

/// The preference that gives way first if a request's zone and its nearest node are not both
/// available.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Yields {
    /// The zone: lower zones of the nearest node come before other nodes.
    Zone,
    /// The node: the zone on other nodes comes before lower zones.
    Node,
}

/// A request for one run of frames.
#[derive(Clone, Copy, Debug)]
pub struct Request<'p> {
    pub(crate) frames: u64,
    pub(crate) align: Order,
    pub(crate) policy: Policy<'p>,
    pub(crate) zone: Option<ZoneIndex>,
    pub(crate) yields: Yields,
    pub(crate) below: u64,
    pub(crate) owner: Owner,
}

impl<'p> Request<'p> {
    /// A request for one frame.
    pub const FRAME: Request<'static> = Request::run(1);

    /// Requests a block of an order, aligned to its size.
    pub const fn order(order: Order) -> Self {
        Self { align: order, ..Self::run(order.frames()) }
    }

    /// Requests consecutive frames, 1 to [`MAX_RUN_FRAMES`]; of any alignment, unless
    /// [`Request::aligned`].
    pub const fn run(frames: u64) -> Self {
        Self {
            frames,
            align: Order::FRAME,
            policy: Policy::Local,
            zone: None,
            yields: Yields::Zone,
            below: u64::MAX,
            owner: Owner(0),
        }
    }

    /// Requires the first frame to be a multiple of the order's frames.
    #[must_use]
    pub const fn aligned(mut self, align: Order) -> Self {
        self.align = align;
        self
    }

    /// Sets the nodes that may serve the request; the default is [`Policy::Local`].
    #[must_use]
    pub const fn policy(mut self, policy: Policy<'p>) -> Self {
        self.policy = policy;
        self
    }

    /// Restricts the request to this zone or a lower one, and sets the preference that gives way;
    /// the default is the highest zone.
    #[must_use]
    pub const fn zone(mut self, zone: ZoneIndex, yields: Yields) -> Self {
        self.zone = Some(zone);
        self.yields = yields;
        self
    }

    /// Requires frames wholly below a physical address in bytes, for devices with short addresses.
    #[must_use]
    pub const fn below(mut self, max_addr: u64) -> Self {
        self.below = max_addr;
        self
    }

    /// Sets the owner of the frames.
    #[must_use]
    pub const fn owner(mut self, owner: Owner) -> Self {
        self.owner = owner;
        self
    }

    /// Returns true if a cache may be refilled for this request, which holds for requests for the
    /// nearest memory.
    pub(crate) const fn refills(&self) -> bool {
        matches!(self.policy, Policy::Local | Policy::Blind)
    }

    pub(crate) const fn wanted(&self) -> RunRequest {
        RunRequest { frames: self.frames, align: self.align.frames() }
    }

    /// Returns the wanted run, if the request is for the cpu's nearest memory and any free memory
    /// there serves it.
    pub(crate) const fn nearest(&self) -> Option<RunRequest> {
        let anywhere = self.zone.is_none() && self.below == u64::MAX;
        if matches!(self.policy, Policy::Local) && anywhere { Some(self.wanted()) } else { None }
    }

    pub(crate) fn check(&self, machine: &Machine<'_>) -> Result<(), AllocError> {
        if self.frames == 0 || self.frames > MAX_RUN_FRAMES {
            return Err(AllocError::RunLength { frames: self.frames });
        }
        let zones = machine.zone_limits.len();
        if let Some(zone) = self.zone
            && usize::from(zone.0) >= zones
        {
            return Err(AllocError::UnknownZone { zone, zones });
        }
        let nodes = machine.nodes();
        match self.policy {
            Policy::Preferred(node) | Policy::Exact(node) if node.at() >= nodes => {
                Err(AllocError::UnknownNode { node, nodes })
            }
            _ => Ok(()),
        }
    }

    /// Returns the pools that may serve the request, in order; `turn` numbers interleaved requests.
    pub(crate) fn walk<'w>(
        &self,
        machine: &Machine<'w>,
        home: NodeIndex,
        turn: impl FnOnce() -> u64,
    ) -> Result<Walk<'w>, AllocError>
    where
        'p: 'w,
    {
        let all = machine.nodes();
        let (nodes, mask, take) = match self.policy {
            Policy::Local => (Some(machine.fallback[home.at()]), None, all),
            Policy::Preferred(node) => (Some(machine.fallback[node.at()]), None, all),
            Policy::Exact(node) => (Some(machine.fallback[node.at()]), None, 1),
            Policy::Bind(mask) => (Some(machine.fallback[home.at()]), Some(mask), all),
            Policy::Interleave { nodes, weights } => {
                let node = chosen(nodes, weights, all, turn).ok_or(AllocError::NoWeight)?;
                (Some(machine.fallback[node.at()]), Some(nodes), all)
            }
            Policy::Blind => (None, None, all),
        };
        let zones = self.zone.map_or(machine.zone_limits.len(), |zone| usize::from(zone.0) + 1);
        Ok(Walk { machine: *machine, nodes, mask, take, zones, yields: self.yields, step: 0 })
    }
}

/// Returns the node whose turn it is.
fn chosen(
    mask: &NodeMask,
    weights: &[u8],
    nodes: usize,
    turn: impl FnOnce() -> u64,
) -> Option<NodeIndex> {
    let members = || {
        (0..=u16::MAX)
            .take(nodes)
            .map(NodeIndex)
            .filter(|&node| mask.contains(node))
            .map(|node| (node, u64::from(weights.get(node.at()).copied().unwrap_or(1))))
    };
    let round: u64 = members().map(|(_, weight)| weight).sum();
    let mut place = turn().checked_rem(round)?;
    members()
        .find(|&(_, weight)| {
            let here = place < weight;
            place = place.saturating_sub(weight);
            here
        })
        .map(|(node, _)| node)
}

/// The pools of a request, nearest first.
#[derive(Clone)]
pub(crate) struct Walk<'w> {
    machine: Machine<'w>,
    /// The nodes in order; `None` for the order of their numbers.
    nodes: Option<&'w [NodeIndex]>,
    mask: Option<&'w NodeMask>,
    take: usize,
    zones: usize,
    yields: Yields,
    step: usize,
}

impl Iterator for Walk<'_> {
    type Item = (usize, usize);

    fn next(&mut self) -> Option<(usize, usize)> {
        while self.step < self.take * self.zones {
            let (node, zone) = match self.yields {
                Yields::Zone => (self.step / self.zones, self.step % self.zones),
                Yields::Node => (self.step % self.take, self.step / self.take),
            };
            self.step += 1;
            let zone = self.zones - 1 - zone;
            let node = match self.nodes {
                Some(nodes) => nodes[node],
                None => NodeIndex(crate::sync::low_u16(node)),
            };
            if self.mask.is_none_or(|mask| mask.contains(node)) {
                return Some((self.machine.pool(node, zone), zone));
            }
        }
        None
    }
}
