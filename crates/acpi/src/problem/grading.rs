//! The severity of each problem, and its stable name.

use super::{LimitProblem, OverlapProblem, Problem, WindowProblem};
use crate::finding::Severity;

impl Problem {
    /// Returns the severity of the problem.
    pub fn severity(&self) -> Severity {
        match self {
            Self::BytesAfterTable { .. }
            | Self::RevisionUnknown { .. }
            | Self::TableRevisionNotOne { .. }
            | Self::ReservedNotZero { .. }
            | Self::FieldZero { .. }
            | Self::EntryUnknown { .. }
            | Self::DomainBitsIgnored { .. }
            | Self::HotPlugEmpty { .. }
            | Self::Overlap(OverlapProblem::WithinDomain { .. })
            | Self::ProcessorRepeated { .. }
            | Self::DistanceAsymmetric { .. }
            | Self::SlitRowWithoutDomain { .. }
            | Self::ProcessorNotInMadt { .. } => Severity::Note,
            Self::ZeroFill { .. }
            | Self::TrailingBytes { .. }
            | Self::EntryTooLong { .. }
            | Self::EntryReserved { .. }
            | Self::FlagsUndefined { .. }
            | Self::FieldUndefined { .. }
            | Self::IdRepeated { .. }
            | Self::NoMemory
            | Self::MemoryEmpty { .. }
            | Self::Overlap(OverlapProblem::HotPlug { .. })
            | Self::ProcessorInTwoDomains { .. }
            | Self::ProcessorIdShared { .. }
            | Self::ProcessorIdBroadcast { .. }
            | Self::EnabledAndOnlineCapable
            | Self::MatrixTooLong { .. }
            | Self::BaseUnitOverflow { .. }
            | Self::Window(WindowProblem::Unaligned { .. } | WindowProblem::TargetUnknown { .. })
            | Self::DomainWithoutSlitRow { .. }
            | Self::ProcessorNotInSrat { .. }
            | Self::HmatDomainNotInSrat { .. } => Severity::Warning,
            _ => Severity::Error,
        }
    }

    /// Returns the stable name of the problem.
    pub fn code(&self) -> &'static str {
        match self {
            Self::TooShort { .. } => "too-short",
            Self::SignatureMismatch { .. } => "signature-mismatch",
            Self::SignatureUnknown { .. } => "signature-unknown",
            Self::LengthInvalid { .. } => "length-invalid",
            Self::Truncated { .. } => "truncated",
            Self::BytesAfterTable { .. } => "bytes-after-table",
            Self::ChecksumWrong { .. } => "checksum-wrong",
            Self::RevisionUnknown { .. } => "revision-unknown",
            Self::TableRevisionNotOne { .. } => "table-revision-not-one",
            Self::EntryLengthInvalid { .. } => "entry-length-invalid",
            Self::EntryOverruns { .. } => "entry-overruns",
            Self::ZeroFill { .. } => "zero-fill",
            Self::TrailingBytes { .. } => "trailing-bytes",
            Self::EntryTooShort { .. } => "entry-too-short",
            Self::EntryTooLong { .. } => "entry-too-long",
            Self::EntryUnknown { .. } => "entry-unknown",
            Self::EntryReserved { .. } => "entry-reserved",
            Self::ReservedNotZero { .. } => "reserved-not-zero",
            Self::FlagsUndefined { .. } => "flags-undefined",
            Self::FieldZero { .. } => "field-zero",
            Self::FieldUndefined { .. } => "field-undefined",
            Self::IdRepeated { .. } => "id-repeated",
            Self::DomainBitsIgnored { .. } => "domain-bits-ignored",
            Self::Limit(LimitProblem::TableTooLarge { .. }) => "table-too-large",
            Self::Limit(LimitProblem::TooManyLocalities { .. }) => "too-many-localities",
            Self::Limit(LimitProblem::DomainTooLarge { .. }) => "domain-too-large",
            Self::Limit(LimitProblem::TooManyProcessors { .. }) => "too-many-processors",
            Self::NoMemory => "no-memory",
            Self::HotPlugEmpty { .. } => "hot-plug-empty",
            Self::MemoryEmpty { .. } => "memory-empty",
            Self::RangeWraps { .. } => "range-wraps",
            Self::Overlap(OverlapProblem::AcrossDomains { .. }) => "memory-overlaps-across-domains",
            Self::Overlap(OverlapProblem::HotPlug { .. }) => "hot-plug-overlap",
            Self::Overlap(OverlapProblem::WithinDomain { .. }) => "memory-overlaps-within-domain",
            Self::ProcessorInTwoDomains { .. } => "processor-in-two-domains",
            Self::ProcessorRepeated { .. } => "processor-repeated",
            Self::ProcessorIdShared { .. } => "processor-id-shared",
            Self::ProcessorIdBroadcast { .. } => "processor-id-broadcast",
            Self::EnabledAndOnlineCapable => "enabled-and-online-capable",
            Self::NoLocalities => "no-localities",
            Self::MatrixOverruns { .. } => "matrix-overruns",
            Self::MatrixTooLong { .. } => "matrix-too-long",
            Self::LocalDistanceNotTen { .. } => "local-distance-not-ten",
            Self::DistanceReserved { .. } => "distance-reserved",
            Self::RemoteDistanceTen { .. } => "remote-distance-ten",
            Self::DistanceAsymmetric { .. } => "distance-asymmetric",
            Self::BaseUnitOverflow { .. } => "base-unit-overflow",
            Self::Window(WindowProblem::Unaligned { .. }) => "window-unaligned",
            Self::Window(WindowProblem::Overlap { .. }) => "windows-overlap",
            Self::Window(WindowProblem::TargetUnknown { .. }) => "target-unknown",
            Self::DomainWithoutSlitRow { .. } => "domain-without-slit-row",
            Self::SlitRowWithoutDomain { .. } => "slit-row-without-domain",
            Self::ProcessorNotInSrat { .. } => "processor-not-in-srat",
            Self::ProcessorNotInMadt { .. } => "processor-not-in-madt",
            Self::HmatDomainNotInSrat { .. } => "hmat-domain-not-in-srat",
        }
    }
}
