//! Checks of tables against each other.

use super::layout::Reporter;
use super::scratch::{Slot, find, sorted};
use crate::finding::Finding;
use crate::header::Signature;
use crate::hmat::{Entry, Hmat, ProximityFlags};
use crate::madt::Madt;
use crate::problem::Problem;
use crate::slit::Slit;
use crate::srat::Srat;
use crate::tables::Tables;

pub(super) fn check(tables: &Tables<'_>, scratch: &mut [Slot], visit: &mut dyn FnMut(Finding)) {
    let Some(srat) = &tables.srat else { return };
    if let Some(madt) = &tables.madt {
        check_processors(srat, madt, scratch, visit);
    }
    let slots = srat.domains().map(|at| Slot::new(at.entry.into(), at.offset));
    let domains = sorted(scratch, slots);
    if let Some(slit) = &tables.slit {
        check_rows(slit, domains, visit);
    }
    if let Some(hmat) = &tables.hmat {
        check_hmat(hmat, domains, visit);
    }
}

fn check_processors(
    srat: &Srat<'_>,
    madt: &Madt<'_>,
    scratch: &mut [Slot],
    visit: &mut dyn FnMut(Finding),
) {
    let in_srat = srat.processors().filter(|processor| processor.enabled);
    let in_madt = madt.processors().filter(|processor| processor.enabled);
    let reporter = &mut Reporter { table: Signature::MADT, visit };
    let slots = in_srat.map(|processor| Slot::new(processor.id.key(), processor.offset));
    let known = sorted(scratch, slots);
    for processor in in_madt {
        if find(known, processor.id.key()).is_none() {
            let problem = Problem::ProcessorNotInSrat { processor: processor.id };
            reporter.report(processor.offset, problem);
        }
    }
    // A SRAT may contain processors that are disabled in the MADT.
    reporter.table = Signature::SRAT;
    let slots = madt.processors().map(|cpu| Slot::new(cpu.id.key(), cpu.offset));
    let known = sorted(scratch, slots);
    for processor in srat.processors().filter(|processor| processor.enabled) {
        if find(known, processor.id.key()).is_none() {
            let problem = Problem::ProcessorNotInMadt { processor: processor.id };
            reporter.report(processor.offset, problem);
        }
    }
}

fn check_rows(slit: &Slit<'_>, domains: &[Slot], visit: &mut dyn FnMut(Finding)) {
    let reporter = &mut Reporter { table: Signature::SRAT, visit };
    let localities = slit.localities();
    for first in domains.chunk_by(|a, b| a.key == b.key).filter_map(<[Slot]>::first) {
        let domain = u32::try_from(first.key).unwrap_or(u32::MAX);
        if usize::try_from(domain).is_ok_and(|row| row >= localities) {
            let problem = Problem::DomainWithoutSlitRow { domain, localities };
            reporter.report(first.offset(), problem);
        }
    }
    reporter.table = Signature::SLIT;
    for locality in 0..localities {
        let domain = u64::try_from(locality).unwrap_or(u64::MAX);
        if find(domains, domain).is_none() {
            let row = Slit::MATRIX_OFFSET.saturating_add(locality.saturating_mul(localities));
            reporter.report(row, Problem::SlitRowWithoutDomain { locality });
        }
    }
}

fn check_hmat(hmat: &Hmat<'_>, domains: &[Slot], visit: &mut dyn FnMut(Finding)) {
    let reporter = &mut Reporter { table: Signature::HMAT, visit };
    let mut look_up = |offset: usize, role: &'static str, domain: u32| {
        if find(domains, domain.into()).is_none() {
            reporter.report(offset, Problem::HmatDomainNotInSrat { role, domain });
        }
    };
    let memory_given = |flags: ProximityFlags| {
        hmat.header().revision >= 2 || flags.contains(ProximityFlags::MEMORY_VALID)
    };
    for located in hmat.entries() {
        let offset = located.offset;
        match &located.entry {
            Entry::Proximity(link) => {
                if link.flags.contains(ProximityFlags::INITIATOR_VALID) {
                    look_up(offset, "initiator", link.initiator);
                }
                if memory_given(link.flags) {
                    look_up(offset, "memory", link.memory);
                }
            }
            Entry::Locality(locality) => {
                locality.initiators.iter().for_each(|domain| look_up(offset, "initiator", domain));
                locality.targets.iter().for_each(|domain| look_up(offset, "target", domain));
            }
            Entry::Cache(cache) => look_up(offset, "memory", cache.memory),
            Entry::Raw(_) => {}
        }
    }
}
