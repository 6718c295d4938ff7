//! Finds where the domains' memory and cpus are.

use std::thread;
use std::time::Duration;

use super::{Agent, AgentError, Made, tool_output};
use crate::xen::event::{Place, XenEvent};
use crate::xen::plan::DomainKind;
use crate::xen::text::{HeapDump, count_frames, domain_list, heap_dump, vcpu_list};

/// The hypervisor writes its dump in the background.
const DUMP_TRIES: u32 = 10;
const DUMP_EVERY: Duration = Duration::from_millis(300);

impl Agent<'_> {
    pub(super) fn find_places(&mut self) -> Result<(), AgentError> {
        let cpus = vcpu_list(&self.xl(&["vcpu-list"])?);
        let listed = domain_list(&self.xl(&["list", "-n"])?);
        let dump = self.dump_heap()?;
        for domain in self.made.clone() {
            let mut place = self.frames_of(&domain);
            let vcpus = cpus.iter().filter(|(id, _)| *id == domain.id);
            place.vcpus = vcpus.map(|(_, vcpu)| vcpu.clone()).collect();
            let line = listed.iter().find(|line| line.id == domain.id);
            place.node_affinity = line.map(|line| line.nodes.clone()).unwrap_or_default();
            match dump.as_ref().and_then(|dump| dump.domains.get(&domain.id)) {
                Some(frames) => place.hypervisor = frames.clone(),
                None => place.unknown.push("debug key u does not list the domain".to_owned()),
            }
            self.tell(XenEvent::Placed(place))?;
        }
        Ok(())
    }

    /// The frames of one domain from its own table, by the machine's memory map.
    fn frames_of(&self, domain: &Made) -> Place {
        let mut place = Place { domain: domain.name.clone(), ..Place::default() };
        let planned = &self.plan.domains[domain.index];
        if planned.kind == DomainKind::Pvh {
            let reason = "xen-mfndump reads only the table of a pv domain";
            place.unknown.push(reason.to_owned());
            return place;
        }
        let id = domain.id.to_string();
        match tool_output(self.plan, "xen-mfndump", &["dump-p2m", &id]) {
            Ok(table) => {
                let count = count_frames(&table, &self.plan.memory);
                (place.frames, place.elsewhere) = (count.by_node, count.elsewhere);
                if place.total() == 0 {
                    place.unknown.push("xen-mfndump dump-p2m: no frames".to_owned());
                }
            }
            Err(error) => place.unknown.push(error.to_string()),
        }
        place
    }

    /// The hypervisor's own account, once it lists every domain; the last one otherwise.
    fn dump_heap(&self) -> Result<Option<HeapDump>, AgentError> {
        self.xl(&["debug-keys", "u"])?;
        let mut dump = None;
        for _ in 0..DUMP_TRIES {
            dump = heap_dump(&self.xl(&["dmesg"])?);
            let listed = |dump: &HeapDump| {
                self.made.iter().all(|domain| dump.domains.contains_key(&domain.id))
            };
            if dump.as_ref().is_some_and(listed) {
                break;
            }
            thread::sleep(DUMP_EVERY);
        }
        Ok(dump)
    }
}
