//! Answers libnuma's questions about NUMA policy for the emulated machine ([`crate::preload`]):
//! get_mempolicy(2), move_pages(2) and migrate_pages(2).

use numalab_memory_model::arguments::Policy;
use numalab_memory_model::space::{PAGE_BYTES, Placement};

use super::calls::is_own;
use super::policy::MOVES;
use super::regions::{ANONYMOUS, Mapped};
use super::syscalls::Call;
use super::world::World;
use super::{Program, guest_memory};

/// `MPOL_F_NODE`, `MPOL_F_ADDR`, `MPOL_F_MEMS_ALLOWED`.
const NODE: u64 = 1;
const OF_ADDRESS: u64 = 2;
const ALLOWED: u64 = 4;
/// Addresses read at a time.
const MOST_PAGES: u64 = 4096;

impl Program {
    /// Answers a policy call of the seat's thread, which holds the turn: reads the arguments from
    /// one address and writes the result to another.
    pub fn answers(&'static self, seat: usize, [number, arguments_at, answer_at, ..]: [u64; 6]) {
        let Some(arguments) = guest_memory::arguments(arguments_at) else { return };
        let Some(call) = self.numbers.call(number.cast_signed()) else { return };
        let answer = match (call, self.in_turn(seat)) {
            (Call::SetAffinity, _) if is_own(arguments[0]) => {
                self.set_affinity(seat, arguments);
                Some(0)
            }
            (_, Some(world)) => world.answer(seat, call, arguments),
            (_, None) => None,
        };
        if let Some(answer) = answer {
            guest_memory::write(answer_at, &answer.to_ne_bytes());
        }
    }
}

impl World {
    /// Returns the result of a policy call by the seat's thread.
    pub fn answer(&mut self, seat: usize, call: Call, arguments: [u64; 6]) -> Option<i64> {
        let [first, ..] = arguments;
        let done = |done: Result<(), i32>| done.map_or_else(failed, |()| 0);
        match call {
            Call::SetPolicy => Some(done(self.set_policy(seat, arguments))),
            Call::BindMemory => Some(done(self.bind(seat, arguments))),
            Call::GetPolicy => Some(self.policy(seat, arguments)),
            Call::MovePages | Call::MigratePages if !is_own(first) => Some(failed(libc::ESRCH)),
            Call::MovePages => Some(self.move_pages(arguments)),
            Call::MigratePages => Some(self.migrate(arguments)),
            _ => None,
        }
    }

    /// Implements get_mempolicy(2).
    fn policy(
        &mut self,
        seat: usize,
        [mode_at, mask_at, bits, address, flags, _]: [u64; 6],
    ) -> i64 {
        let number = address / PAGE_BYTES;
        let of_thread = self.threads[seat].placement.clone().or_else(|| self.kept());
        if flags & OF_ADDRESS != 0 && !Mapped::now().has(&(address..address + 1)) {
            return failed(libc::EFAULT);
        }
        let (mode, nodes) = match flags & (NODE | OF_ADDRESS | ALLOWED) {
            ALLOWED => (0, self.with_memory()),
            3 => {
                // The kernel reads a page to find its node.
                let home = self.threads[seat].home;
                let region = self.regions.of(address, |_, path| match path {
                    "" => ANONYMOUS.to_owned(),
                    path => path.to_owned(),
                });
                let page = match self.reads_zeros(number, region) {
                    true => self.space.read_zeros(number, home),
                    false => self.space.touch(number, home, of_thread.as_ref(), false),
                };
                let Some(page) = page else { return failed(libc::EFAULT) };
                (self.id(page.node), Vec::new())
            }
            NODE => match of_thread {
                Some(Placement::Interleave(nodes)) => (self.id(nodes[0]), Vec::new()),
                _ => return failed(libc::EINVAL),
            },
            OF_ADDRESS => mode_of(self.space.placement_of(number).cloned().or(of_thread)),
            0 => mode_of(of_thread),
            _ => return failed(libc::EINVAL),
        };
        if mode_at != 0 {
            guest_memory::write(mode_at, &mode.to_ne_bytes());
        }
        if mask_at != 0 {
            let bytes = usize::try_from(bits / 8).unwrap_or(0);
            let ids = nodes.into_iter().map(|node| self.id(node) as usize);
            guest_memory::write_mask(mask_at, bytes, ids);
        }
        0
    }

    /// Implements move_pages(2), which queries or moves each page up to the first whose new node does
    /// not exist.
    fn move_pages(&mut self, [_, count, pages_at, nodes_at, status_at, flags]: [u64; 6]) -> i64 {
        if flags & !MOVES != 0 {
            return failed(libc::EINVAL);
        }
        if nodes_at != 0 {
            self.forget();
        }
        let mapped = Mapped::now();
        for from in (0..count).step_by(usize::try_from(MOST_PAGES).unwrap_or(1)) {
            let count = MOST_PAGES.min(count - from);
            let pages = guest_memory::pointers(pages_at.wrapping_add(8 * from), count);
            // The count comes from the program: it may be anything.
            if pages.len() as u64 != count {
                return failed(libc::EFAULT);
            }
            let nodes = match nodes_at {
                0 => Vec::new(),
                at => guest_memory::numbers(at.wrapping_add(4 * from), count),
            };
            let has_memory = self.with_memory();
            let node = |id: &u32| self.position(*id).filter(|node| has_memory.contains(node));
            let nodes: Vec<Option<usize>> = nodes.iter().map(node).collect();
            let unknown = nodes.iter().position(Option::is_none);
            let pages = pages.iter().take(unknown.unwrap_or(usize::MAX)).enumerate();
            let status = pages.map(|(at, address)| {
                let moved = self.page(*address, nodes.get(at).copied().flatten(), &mapped);
                moved.map_or_else(|error| -error, |node| self.id(node).cast_signed())
            });
            let status: Vec<u8> = status.flat_map(i32::to_ne_bytes).collect();
            if status_at != 0 {
                guest_memory::write(status_at.wrapping_add(4 * from), &status);
            }
            if unknown.is_some() {
                return failed(libc::ENODEV);
            }
        }
        0
    }

    /// Moves a page to a node, if given, and returns the node that it is on then.
    fn page(&mut self, address: u64, to: Option<usize>, mapped: &Mapped) -> Result<usize, i32> {
        let number = address / PAGE_BYTES;
        match (self.space.node_of(number), to) {
            (Some(node), None) => Ok(node),
            (Some(_), Some(node)) => self.space.migrate(number, node).ok_or(libc::ENOMEM),
            // The page of zeros is on no node.
            (None, _) if self.space.is_zeroed(number) => Err(libc::EFAULT),
            (None, _) if mapped.has(&(address..address + 1)) => Err(libc::ENOENT),
            (None, _) => Err(libc::EFAULT),
        }
    }

    /// Implements migrate_pages(2): pages of each source node go to the target node at the same
    /// position.
    fn migrate(&mut self, [_, bits, from_at, to_at, ..]: [u64; 6]) -> i64 {
        let nodes = |at: u64| -> Vec<usize> {
            let ids = guest_memory::mask(at, bits).into_iter();
            ids.filter_map(|id| self.position(u32::try_from(id).ok()?)).collect()
        };
        let (from, to) = (nodes(from_at), nodes(to_at));
        if to.is_empty() {
            return failed(libc::EINVAL);
        }
        self.forget();
        let moves = from.iter().enumerate().map(|(at, node)| (*node, to[at % to.len()]));
        let moves = moves.map(|(node, to)| (self.space.on_node(node), to)).collect::<Vec<_>>();
        for (numbers, to) in moves {
            for number in numbers {
                self.space.migrate(number, to);
            }
        }
        0
    }

    /// Returns the policy that the program was started with, by numactl(8) for example.
    fn kept(&self) -> Option<Placement> {
        match &self.engine.arguments.policy {
            Policy::Stay(placement) => Some(placement.clone()),
            Policy::Users => None,
        }
    }

    pub fn with_memory(&self) -> Vec<usize> {
        let nodes = self.engine.arguments.machine.nodes.iter().enumerate();
        nodes.filter(|(_, node)| !node.ranges.is_empty()).map(|(at, _)| at).collect()
    }

    fn id(&self, node: usize) -> u32 {
        self.engine.arguments.machine.nodes[node].id
    }

    pub fn position(&self, id: u32) -> Option<usize> {
        self.engine.arguments.machine.nodes.iter().position(|node| node.id == id)
    }
}

/// Returns the raw result of a call that failed with this error.
fn failed(error: i32) -> i64 {
    -i64::from(error)
}

/// Returns a placement's mode for set_mempolicy(2), and its nodes.
fn mode_of(placement: Option<Placement>) -> (u32, Vec<usize>) {
    match placement {
        None | Some(Placement::Local) => (0, Vec::new()),
        Some(Placement::Preferred(node)) => (1, vec![node]),
        Some(Placement::Bind(nodes)) => (2, nodes),
        Some(Placement::Interleave(nodes)) => (3, nodes),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use numalab_memory_model::address::Addressing;
    use numalab_memory_model::arguments::Arguments;
    use numalab_memory_model::engine::{Engine, PS_PER_INSTRUCTION};

    use super::*;

    /// Returns two nodes with a cpu each, and no thread.
    pub fn world() -> World {
        let words = ["cpus=0.1", "memory=1G.1G", "distances=10.21/21.10"];
        let arguments = Arguments::parse(words, |_| Err(String::new())).unwrap();
        let engine = Engine::new(arguments, Addressing::Physical, PS_PER_INSTRUCTION, || {
            std::time::Duration::ZERO
        });
        World::new(Box::leak(Box::new(engine.for_threads())))
    }

    #[test]
    fn a_list_of_pages_ends_where_memory_ends_whatever_its_length() {
        let mut world = world();
        for (count, pages_at) in [(u64::MAX, 8), (1 << 40, u64::MAX - 8), (1, u64::MAX)] {
            let answer = world.move_pages([0, count, pages_at, 0, u64::MAX - 3, 0]);
            assert_eq!(answer, failed(libc::EFAULT), "{count} pages at {pages_at:#x}");
        }
    }

    #[test]
    fn a_page_that_is_not_there_has_an_error_for_its_node_and_moves_end_at_an_unknown_node() {
        let mut world = world();
        let own = vec![0_u8; 1 << 20];
        let number = own.as_ptr() as u64 / PAGE_BYTES + 2;
        let pages = [number, number + 1, number + 2, 1].map(|number| number * PAGE_BYTES);
        assert!(world.space.touch(number, 1, None, false).is_some());
        assert!(world.space.read_zeros(number + 1, 1).is_some());
        let mut status = [7_i32; 4];
        let mut call = |count: usize, nodes: &[i32], flags: u64| {
            let nodes_at = if nodes.is_empty() { 0 } else { nodes.as_ptr() as u64 };
            let at = (&raw mut status) as u64;
            let answer =
                world.move_pages([0, count as u64, pages.as_ptr() as u64, nodes_at, at, flags]);
            // SAFETY: our memory, which the kernel has written to.
            (answer, unsafe { (&raw const status).read_volatile() })
        };
        let absent = [-libc::EFAULT, -libc::ENOENT, -libc::EFAULT];
        assert_eq!(call(4, &[], 0), (0, [1, absent[0], absent[1], absent[2]]));
        assert_eq!(call(1, &[0], 1).0, failed(libc::EINVAL), "an unknown flag");
        let moved = call(2, &[0, 5], 2);
        assert_eq!((moved.0, moved.1[0]), (failed(libc::ENODEV), 0));
    }
}
