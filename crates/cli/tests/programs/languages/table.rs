//! Four threads read a table that the first thread filled.

use std::sync::Arc;
use std::thread;

const COUNT: usize = 1 << 18;

fn main() {
    let table: Arc<Vec<u64>> = Arc::new(vec![1; COUNT]); // TABLE
    let read = |part: usize| {
        let table = Arc::clone(&table);
        thread::spawn(move || table.iter().skip(part).step_by(8).sum::<u64>())
    };
    let threads: Vec<_> = (0..4).map(read).collect();
    let sum: u64 = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
    println!("{sum}");
}
