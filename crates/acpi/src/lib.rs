//! SRAT, SLIT, HMAT, MADT and CEDT: bytes to typed entries and back, without allocation or panics.
