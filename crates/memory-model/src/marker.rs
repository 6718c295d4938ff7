//! Markers: requests of a guest to the model.

/// Number of phases that a marker can name.
pub const PHASES: usize = 240;

/// The request of a marker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Marker {
    /// Begin counting and charging, one level deeper.
    Begin,
    /// End counting and charging, one level up; off at the top.
    End,
    /// Write the report.
    Report,
    /// Write the executing vCPU's block of the virtual PMU.
    Publish,
    /// Begin the phase whose name the executing vCPU has spelled: counts go to it.
    NamedPhase,
    /// Change the size of the host's pages: 0 for 4 KiB, 1 for 2 MiB, 2 for 1 GiB.
    HostPages(u8),
    /// Begin the phase with this number, from 0: counts go to it.
    Phase(u8),
    /// Append a letter to the name of a phase.
    Letter(u8),
}
