//! Writer of a dump.

use super::{CACHED, MAGIC, OFFLINE, RESERVED, ROWS};
use crate::fences::Fences;
use crate::frames::Frames;
use crate::slot::Slot;
use crate::sync::low_u16;
use crate::walk::BlockView;

impl<'m, F: Fences> Frames<'m, F> {
    /// Passes a dump of the heap to `sink`, piece by piece.
    ///
    /// # Errors
    /// The sink's first error.
    pub fn dump<E>(&self, sink: &mut impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
        let machine = &self.machine;
        sink(&MAGIC)?;
        let regions = self.shared.map.all().count();
        let counts = [machine.nodes(), machine.zone_limits.len(), machine.cpus.len(), regions];
        for count in counts {
            sink(&(count as u64).to_le_bytes()[..4])?;
        }
        for limit in machine.zone_limits {
            sink(&limit.to_le_bytes())?;
        }
        for node in machine.cpus {
            sink(&node.0.to_le_bytes())?;
        }
        for region in self.shared.map.all() {
            let zones = machine.zone_limits.len();
            sink(&region.start.to_le_bytes())?;
            sink(&region.end.to_le_bytes())?;
            sink(&low_u16(region.pool / zones).to_le_bytes())?;
            sink(&[low_u16(region.pool % zones).to_le_bytes()[0], 0, 0, 0, 0, 0])?;
        }
        self.walk().try_for_each(|view| dump_block(&view, sink))?;
        for slot in self.slots {
            let slot = Slot(slot);
            let (base, mask) = slot.magazine();
            let whole = slot.whole().map_or(0, |block| self.shared.block(block).first_frame() + 1);
            for word in [base, mask, whole] {
                sink(&word.to_le_bytes())?;
            }
        }
        Ok(())
    }
}

fn dump_block<E>(view: &BlockView, sink: &mut impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
    let free = view.free_frames();
    let [low, high, ..] = free.to_le_bytes();
    let partly = free > 0 && free < 512;
    let flag = |set: bool, flag: u16| if set { flag } else { 0 };
    let head = u16::from_le_bytes([low, high])
        | flag(view.offline, OFFLINE)
        | flag(partly, ROWS)
        | flag(view.reserved.is_some(), RESERVED)
        | flag(view.cached.is_some(), CACHED);
    sink(&head.to_le_bytes())?;
    if partly {
        for row in view.free {
            sink(&row.to_le_bytes())?;
        }
    }
    Ok(())
}
