//! What to measure: cells in the order in which they are measured.

mod bandwidth;
mod c2c;
mod estimate;
mod latency;
mod loaded;
mod scope;
mod shared;

use numalab_record::IsaName;

pub use bandwidth::{BandwidthSpec, all_workers, bandwidth_cells, bandwidth_matrix};
pub use c2c::{c2c_cells, c2c_pairs};
pub(crate) use estimate::estimate_unsampled;
pub use estimate::{estimate_cell, estimate_plan};
pub use latency::{LatencySpec, curve_sizes, latency_cells, matrix_workers, plain_pattern};
pub use loaded::{LoadedSpec, load_workers, loaded_cells, loaded_surface};
pub use scope::{MatrixShape, Scope, ScopeError};
pub(crate) use shared::shared_run;

/// The name of an instruction set in cells: `avx512`.
#[must_use]
pub fn isa_name(isa: numalab_membench::Isa) -> IsaName {
    IsaName(isa.to_string().to_lowercase().replace('-', ""))
}
