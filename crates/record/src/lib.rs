//! The one result type of numalab: environment, machine, placement with proof, raw samples.
