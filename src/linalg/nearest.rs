//! The nearest of several centres, for rows in blocks.

use super::blocks::{BLOCK, TILE};
use super::simd::{Arithmetic, at_run_time};

at_run_time! {
    /// The nearest centre of each row of a block, the first one of equals, and the squared distance from it. `centres` has one after the
    /// other. A row without a distance below infinity has the first centre.
    pub(crate) fn nearest_centres(block: &[f64], centres: &[f64], distances: &mut [f64; BLOCK], nearest: &mut [u64; BLOCK]) =
        nearest_centres_kernel
}

#[inline(always)]
fn nearest_centres_kernel<A: Arithmetic>(
    block: &[f64],
    centres: &[f64],
    distances: &mut [f64; BLOCK],
    nearest: &mut [u64; BLOCK],
) {
    let dim = block.len() / BLOCK;
    let tiles = distances.chunks_exact_mut(TILE).zip(nearest.chunks_exact_mut(TILE));
    for (tile, (distances, nearest)) in tiles.enumerate() {
        let (mut least, mut places) = ([f64::INFINITY; TILE], [0; TILE]);
        for (j, centre) in centres.chunks_exact(dim).enumerate() {
            let mut sums = [0.0; TILE];
            for (column, mean) in block.chunks_exact(BLOCK).zip(centre) {
                for (sum, value) in sums.iter_mut().zip(&column[tile * TILE..][..TILE]) {
                    *sum = A::mul_add(value - mean, value - mean, *sum);
                }
            }
            for i in 0..TILE {
                let is_nearer = sums[i] < least[i];
                least[i] = if is_nearer { sums[i] } else { least[i] };
                places[i] = if is_nearer { j as u64 } else { places[i] };
            }
        }
        distances.copy_from_slice(&least);
        nearest.copy_from_slice(&places);
    }
}

#[cfg(test)]
mod tests {
    use super::super::blocks::square_distances;
    use super::super::simd::Plain;
    use super::*;

    #[test]
    fn the_nearest_centre_is_that_of_the_smallest_distance() {
        for dim in 1..=9 {
            let value = |i: usize| ((i * 37) % 101) as f64 / 25.0 - 2.0;
            let block: Vec<f64> = (0..dim * BLOCK).map(value).collect();
            let centres: Vec<f64> = (0..5 * dim).map(|i| value(i * 7 + 3)).collect();
            for kernel in [nearest_centres_kernel::<Plain>, nearest_centres] {
                let (mut distances, mut nearest) = ([0.0; BLOCK], [9; BLOCK]);
                kernel(&block, &centres, &mut distances, &mut nearest);
                let mut expected = [f64::INFINITY; BLOCK];
                for centre in centres.chunks_exact(dim) {
                    let mut of_centre = [0.0; BLOCK];
                    square_distances(&block, centre, &mut of_centre);
                    expected.iter_mut().zip(of_centre).for_each(|(least, new)| *least = least.min(new));
                }
                for r in 0..BLOCK {
                    let centre = &centres[nearest[r] as usize * dim..][..dim];
                    let own: f64 = (0..dim).map(|j| (block[j * BLOCK + r] - centre[j]).powi(2)).sum();
                    assert!((distances[r] - own).abs() < 1e-12 && (distances[r] - expected[r]).abs() < 1e-12);
                }
            }
        }
    }
}
