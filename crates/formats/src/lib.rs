//! Other tools' topology formats to the numalab machine model and back.
