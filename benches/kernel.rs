//! The kernels of a row, on one thread: `cargo bench --bench kernel [-- 0.1]` (the number scales the work).
//!
//! Prints nanoseconds per row and component, the best of several runs, of the fused kernel of the precision form with four
//! components, and of the Cholesky form.

use std::hint::black_box;
use std::time::Instant;

use gmm_bmm::internals::linalg::{Factor, fused_kernel};

fn main() {
    let scale: f64 = std::env::args().find_map(|argument| argument.parse().ok()).unwrap_or(1.0);
    println!("{:>4} {:>16} {:>10} {:>8}", "d", "precision, fused", "Cholesky", "ratio");
    for dim in [3, 10, 16, 50, 91] {
        let work = (scale * 2e7 / (dim * dim + 20) as f64).ceil() as usize;
        let fused = best_of_many(|| fused(dim, work));
        let cholesky = best_of_many(|| cholesky(dim, work / 4 + 1));
        println!("{dim:>4} {fused:>13.1} ns {cholesky:>7.1} ns {:>8.2}", cholesky / fused);
    }
}

fn best_of_many(run: impl Fn() -> f64) -> f64 {
    (0..40).map(|_| run()).fold(f64::INFINITY, f64::min)
}

/// Rows of numbers between −1 and 1, each padded with zeros to `width`.
fn rows(dim: usize, width: usize, count: usize) -> Vec<f64> {
    let value = |i: usize| if i % width < dim { ((i * 7919) % 1013) as f64 / 506.0 - 1.0 } else { 0.0 };
    (0..count * width).map(value).collect()
}

/// Nanoseconds per row and component of the fused kernel.
fn fused(dim: usize, work: usize) -> f64 {
    let rows = rows(dim, dim.div_ceil(4) * 4, 64);
    let repeat = work.div_ceil(64);
    let begun = Instant::now();
    black_box(fused_kernel(dim, 4, black_box(&rows), repeat));
    begun.elapsed().as_secs_f64() * 1e9 / (4 * repeat * 64) as f64
}

/// Nanoseconds per row of a triangular solve and a rank-one update of the Cholesky factor.
fn cholesky(dim: usize, work: usize) -> f64 {
    let rows = rows(dim, dim, 64);
    let mut factor = Factor::identity(dim);
    let (mut y, mut scratch) = (vec![0.0; dim], vec![0.0; dim]);
    let repeat = work.div_ceil(64);
    let begun = Instant::now();
    for _ in 0..repeat {
        for row in rows.chunks_exact(dim) {
            black_box(factor.quadratic_form(row, &mut y));
            factor.rank_one(1e-3, &y, &mut scratch);
        }
    }
    begun.elapsed().as_secs_f64() * 1e9 / (repeat * 64) as f64
}
