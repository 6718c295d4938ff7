//! Finds the nodes of the domains' memory and cpus.

use std::thread;
use std::time::Duration;

use super::{Agent, AgentError, CreatedDomain, tool_output};
use crate::xen::event::{DomainPlace, VcpuPlace, XenEvent};
use crate::xen::plan::DomainKind;
use crate::xen::text::{ListedVcpu, XenDump, count_frames, read_vcpus};

/// Number of attempts to read the dump, which the hypervisor writes in the background.
const DUMP_TRIES: u32 = 10;
const DUMP_EVERY: Duration = Duration::from_millis(300);

impl Agent<'_> {
    pub(super) fn find_places(&mut self) -> Result<(), AgentError> {
        let cpus = read_vcpus(&self.xl(&["vcpu-list"])?);
        let dump = self.dump_heap()?;
        for domain in self.made.clone() {
            let mut place = self.frames_of(&domain);
            let vcpus = cpus.iter().filter(|vcpu| vcpu.domain == domain.id);
            place.vcpus = vcpus.map(vcpu_place).collect();
            match dump.pages_of(domain.id) {
                Some(pages) => {
                    place.hypervisor = pages.iter().map(|(node, pages)| (node.0, *pages)).collect();
                }
                None => place.unknown.push("debug key u does not list the domain".to_owned()),
            }
            self.tell(XenEvent::Placed(place))?;
        }
        Ok(())
    }

    /// Counts the frames of one domain from its own table, by the machine's memory map.
    fn frames_of(&self, domain: &CreatedDomain) -> DomainPlace {
        let mut place = DomainPlace { domain: domain.name.clone(), ..DomainPlace::default() };
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

    /// Returns the hypervisor's own account, once it lists every domain; otherwise the last one.
    fn dump_heap(&self) -> Result<XenDump, AgentError> {
        self.xl(&["debug-keys", "u"])?;
        let mut dump = XenDump::default();
        for _ in 0..DUMP_TRIES {
            dump = XenDump::read(&self.xl(&["dmesg"])?);
            if self.made.iter().all(|domain| dump.pages_of(domain.id).is_some()) {
                break;
            }
            thread::sleep(DUMP_EVERY);
        }
        Ok(dump)
    }
}

/// Returns the place of a vCPU, with its affinity as `xl` prints it.
fn vcpu_place(vcpu: &ListedVcpu) -> VcpuPlace {
    let hard = vcpu.hard.as_ref().map_or_else(|| "all".to_owned(), ToString::to_string);
    VcpuPlace { vcpu: vcpu.index, cpu: vcpu.cpu.map(|cpu| cpu.0), hard }
}
