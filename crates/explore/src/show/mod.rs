//! Views as text within 80 columns, and as JSON.

mod bar;
mod guests;
mod heap;
mod nodes;
mod process;

use numalab_report::Style;
use numalab_report::text::{hanging, wrap};
use serde::Serialize;

pub use guests::guests;
pub use heap::heap;
pub use nodes::nodes;
pub use process::{ProcessRows, process};

use crate::finding::{Finding, Weight};

/// A view as JSON of [`Kind::Explore`](numalab_record::Kind::Explore): `{"schema": …, "explore": KIND, …}`.
///
/// # Errors
/// Whatever `serde_json` cannot write; no view is known to be such.
pub fn json<T: Serialize>(kind: &str, view: &T) -> Result<String, serde_json::Error> {
    #[derive(Serialize)]
    struct Shown<'a, T> {
        schema: numalab_record::Kind,
        explore: &'a str,
        #[serde(flatten)]
        view: &'a T,
    }
    serde_json::to_string(&Shown { schema: numalab_record::Kind::Explore, explore: kind, view })
}

/// What is wrong with its commands, and what could not be seen.
fn closing(findings: &[Finding], unseen: &[String], style: Style) -> String {
    let mut out = String::new();
    for finding in findings {
        let (sign, shown) = match finding.weight {
            Weight::Wrong => ("!", style.bad("!")),
            Weight::Note => ("·", style.warning("·")),
        };
        out.push_str(&format!("{}\n", hanging(sign, &finding.what, 2).replacen(sign, &shown, 1)));
        if let Some(mend) = &finding.mend {
            // A command must be copied as it is: never broken.
            out.push_str(&format!("  {}\n", style.mark(mend)));
        }
    }
    if findings.is_empty() {
        out.push_str(&format!("{}\n", style.good("Nothing wrong is seen.")));
    }
    for missing in unseen {
        out.push_str(&format!("{}\n", style.faint(&wrap(&format!("not seen: {missing}"), 2))));
    }
    out
}
