//! Timing: repeated windows, with the subjects taking turns within each repetition, and medians.

use std::time::Instant;

/// The figures of one subject in one workload.
#[derive(Clone, Default)]
pub struct Samples(Vec<f64>);

impl Samples {
    pub fn add(&mut self, value: f64) {
        self.0.push(value);
    }

    fn quantile(&self, q: f64) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        let last = sorted.len().saturating_sub(1) as f64;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to len")]
        let at = (last * q).round() as usize;
        sorted.get(at).copied().unwrap_or(f64::NAN)
    }

    /// Returns the median, with the quartiles.
    pub fn cell(&self) -> String {
        if self.0.is_empty() {
            return "-".into();
        }
        let [low, middle, high] = [0.25, 0.5, 0.75].map(|q| self.quantile(q));
        format!("{middle:.2} ({low:.2}-{high:.2})")
    }
}

/// Times one window and returns nanoseconds per operation.
pub fn per_op_ns(operations: u64, window: impl FnOnce()) -> f64 {
    let start = Instant::now();
    window();
    start.elapsed().as_secs_f64() * 1e9 / operations as f64
}

/// The xorshift64* generator: the same order in every run.
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let high = self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33;
        usize::try_from(high).unwrap_or(0) % end
    }

    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            let j = self.below(i + 1);
            items.swap(i, j);
        }
    }
}

/// Prints a Markdown table.
pub fn print_table(head: &[&str], rows: &[Vec<String>]) {
    println!("| {} |", head.join(" | "));
    println!("|{}", "---|".repeat(head.len()));
    for row in rows {
        println!("| {} |", row.join(" | "));
    }
    println!();
}
