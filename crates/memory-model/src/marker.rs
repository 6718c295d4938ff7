//! What a guest says to the model.

/// Phases that a marker can name.
pub const PHASES: usize = 240;

/// What a marker asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Marker {
    /// Counting and charging begin (one level deeper).
    Begin,
    /// They end (one level up; off at the top).
    End,
    /// The report is written now.
    Report,
    /// The executing vCPU's block of the virtual PMU is written now.
    Publish,
    /// What follows counts for the phase whose name the executing vCPU has spelled.
    NamedPhase,
    /// The host's pages are of this size from now on: 0 for 4 KiB, 1 for 2 MiB, 2 for 1 GiB.
    HostPages(u8),
    /// What follows counts for this phase, from 0.
    Phase(u8),
    /// The next letter of a phase's name.
    Letter(u8),
}
