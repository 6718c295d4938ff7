//! Conversion of a machine to ACPI tables.

use alloc::vec;
use alloc::vec::Vec;

use numalab_acpi::madt::{Entry as MadtEntry, LocalApic, LocalApicFlags, LocalX2apic};
use numalab_acpi::srat::{
    AffinityFlags, Entry as SratEntry, LocalApicAffinity, LocalX2apicAffinity, MemoryAffinity,
    MemoryFlags,
};
use numalab_acpi::{BuildError, Builder, Header, Signature, hmat, madt, slit, srat};

use super::bytes::{MOST_DOMAINS, TableBytes, TableError};
use super::domains::domain_of;
use super::hmat::Parts;
use super::layout;
use super::verify::verify;
use crate::cpu::Cpu;
use crate::distance::LOCAL_DISTANCE;
use crate::fallback::REMOTE_DISTANCE;
use crate::finding::Severity;
use crate::machine::Machine;
use crate::memory::{MemoryKind, MemoryRange};

/// Address of the local APICs on a PC.
const LOCAL_APIC_ADDRESS: u32 = 0xfee0_0000;
/// The largest APIC id of the 8-bit entries; the next one is the broadcast id.
const LARGEST_APIC_ID: u32 = 254;
impl Machine {
    /// Returns the tables that describe the machine to an x86 system: SRAT (revision 3), SLIT, MADT
    /// and, if it has access attributes or memory-side caches, HMAT (revision 2).
    ///
    /// A node without a proximity domain uses its id as its domain, a cpu without an APIC id uses
    /// its id. Unknown distances are written as 10 and 20. Memory of a node without ranges is laid
    /// out as in QEMU's q35. [`Machine::from_tables`] returns the same machine again if nodes are
    /// numbered in order of appearance; packages, cores, caches and tiers are not represented. The
    /// tables are read back before they are returned.
    ///
    /// # Errors
    /// [`TableError::DomainTooLarge`], [`TableError::NoMemory`], [`TableError::MemoryTooLarge`];
    /// [`TableError::Refused`] if a reader would find an error in the tables, or a node without its
    /// cpus or memory; [`TableError::Build`] if a table gets too long.
    pub fn to_tables(&self) -> Result<TableBytes, TableError> {
        if self.memory_bytes() == 0 && self.ranges.is_empty() {
            return Err(TableError::NoMemory);
        }
        let parts = Parts::of(self);
        let hmat = parts
            .as_ref()
            .map(|parts| build::<hmat::Layout>(2, hmat::Fixed::default(), &parts.entries()));
        let fixed =
            madt::Fixed { local_apic_address: LOCAL_APIC_ADDRESS, ..madt::Fixed::default() };
        let (ranges, laid_out) = layout::ranges(self)
            .ok_or_else(|| TableError::MemoryTooLarge { bytes: self.memory_bytes() })?;
        let mut bytes = TableBytes {
            srat: build::<srat::Layout>(3, srat::Fixed::new(), &self.affinities(&ranges))?,
            slit: self.slit()?,
            hmat: hmat.transpose()?,
            madt: build::<madt::Layout>(
                5,
                fixed,
                &self.cpus.iter().map(processor).collect::<Vec<_>>(),
            )?,
            findings: laid_out
                .into_iter()
                .chain(parts.into_iter().flat_map(|parts| parts.findings))
                .collect(),
        };
        for finding in verify(self, &bytes) {
            if finding.severity == Severity::Error {
                return Err(TableError::Refused(finding));
            }
            bytes.findings.push(finding);
        }
        Ok(bytes)
    }

    fn affinities(&self, ranges: &[MemoryRange]) -> Vec<SratEntry<'static>> {
        let mut entries = Vec::new();
        for cpu in &self.cpus {
            if let Some(node) = cpu.node.and_then(|id| self.node(id)) {
                entries.push(affinity(apic_id(cpu), domain_of(node)));
            }
        }
        for range in ranges {
            if let Some(node) = self.node(range.node) {
                entries.push(memory(range, domain_of(node)));
            }
        }
        entries
    }

    fn slit(&self) -> Result<Vec<u8>, TableError> {
        let largest = self.nodes.iter().map(domain_of).max().unwrap_or_default();
        if largest >= MOST_DOMAINS {
            return Err(TableError::DomainTooLarge { domain: largest });
        }
        let rows = largest as usize + 1;
        let mut cells: Vec<u8> = (0..rows * rows).map(|_| REMOTE_DISTANCE).collect();
        for row in 0..rows {
            cells[row * rows + row] = LOCAL_DISTANCE;
        }
        for from in &self.nodes {
            for to in &self.nodes {
                if let Some(distance) = self.distance(from.id, to.id) {
                    cells[domain_of(from) as usize * rows + domain_of(to) as usize] = distance;
                }
            }
        }
        let mut buffer = vec![0; slit::size_bytes(rows).unwrap_or_default()];
        let length = slit::build(&mut buffer, Header::new(Signature::SLIT, 1), rows, &cells)?.len();
        buffer.truncate(length);
        Ok(buffer)
    }
}

fn apic_id(cpu: &Cpu) -> u32 {
    cpu.apic_id.unwrap_or(cpu.id.0)
}

fn affinity(apic_id: u32, domain: u32) -> SratEntry<'static> {
    match u8::try_from(apic_id) {
        Ok(small) if apic_id <= LARGEST_APIC_ID => {
            SratEntry::LocalApic(LocalApicAffinity::new(small, domain))
        }
        _ => SratEntry::LocalX2apic(LocalX2apicAffinity {
            domain,
            x2apic_id: apic_id,
            flags: AffinityFlags::ENABLED,
            ..LocalX2apicAffinity::default()
        }),
    }
}

fn memory(range: &MemoryRange, domain: u32) -> SratEntry<'static> {
    let mut flags = MemoryFlags::ENABLED;
    if range.hot_pluggable {
        flags = flags.with(MemoryFlags::HOT_PLUGGABLE);
    }
    flags = match range.kind {
        MemoryKind::Ordinary => flags,
        MemoryKind::SpecialPurpose => flags.with(MemoryFlags::SPECIFIC_PURPOSE),
        MemoryKind::NonVolatile => flags.with(MemoryFlags::NON_VOLATILE),
    };
    SratEntry::Memory(MemoryAffinity {
        domain,
        base: range.base,
        length_bytes: range.length_bytes,
        flags,
        ..MemoryAffinity::default()
    })
}

fn processor(cpu: &Cpu) -> MadtEntry<'static> {
    let flags = if cpu.online { LocalApicFlags::ENABLED } else { LocalApicFlags::ONLINE_CAPABLE };
    let apic_id = apic_id(cpu);
    match (u8::try_from(apic_id), u8::try_from(cpu.id.0)) {
        (Ok(small), Ok(processor_uid)) if apic_id <= LARGEST_APIC_ID => {
            MadtEntry::LocalApic(LocalApic { processor_uid, apic_id: small, flags })
        }
        _ => MadtEntry::LocalX2apic(LocalX2apic {
            x2apic_id: apic_id,
            flags,
            processor_uid: cpu.id.0,
            ..LocalX2apic::default()
        }),
    }
}

fn build<F: numalab_acpi::Format>(
    revision: u8,
    fixed: F::Fixed,
    entries: &[F::Entry<'_>],
) -> Result<Vec<u8>, BuildError>
where
    F::Fixed: Copy,
{
    let header = Header::new(F::SIGNATURE, revision);
    let fill = |buffer: &mut [u8]| -> (usize, Option<BuildError>) {
        let mut builder = Builder::<F>::new(buffer, header, fixed);
        for entry in entries {
            builder.push(entry);
        }
        (builder.size_bytes(), builder.finish().err())
    };
    let (size, _) = fill(&mut []);
    let mut buffer = vec![0; size];
    match fill(&mut buffer) {
        (_, Some(error)) => Err(error),
        (_, None) => Ok(buffer),
    }
}
