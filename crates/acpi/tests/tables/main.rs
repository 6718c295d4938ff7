//! Tests of the readers, checks and writers, over the corpus and over made-up tables.

mod acpidump;
mod build;
mod checks;
mod corpus;
mod damage;
mod iasl;
mod lookups;
mod machine;
mod properties;
mod support;
