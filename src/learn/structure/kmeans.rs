//! k-means: k-means++ and a few rounds of Lloyd's algorithm.

use ndarray::{Array2, ArrayView1};
use rand::{Rng, RngExt};

use crate::linalg::blocks::{BLOCK, RowBlocks, square_distances};
use crate::linalg::nearest::nearest_centres;

/// The centres after at most `rounds` rounds from a k-means++ start, and the mean squared distance of the rows from them.
pub(super) fn kmeans<R: Rng>(rows: &RowBlocks, k: usize, rounds: usize, rng: &mut R) -> (Array2<f64>, f64) {
    let mut centres = plus_plus(rows, k, rng);
    let mut labels = vec![usize::MAX; rows.rows()];
    let mut inertia = f64::INFINITY;
    for _ in 0..rounds.max(1) {
        let (moved, sum) = assign(rows, &centres, &mut labels);
        inertia = sum / weight_of(rows).1;
        if !moved {
            break;
        }
        move_centres(rows, &labels, &mut centres);
    }
    (centres, inertia)
}

/// The centre of each row, after at most `rounds` rounds from given centres.
pub(super) fn move_on(rows: &RowBlocks, mut centres: Array2<f64>, rounds: usize) -> Vec<usize> {
    let mut labels = vec![usize::MAX; rows.rows()];
    for _ in 0..rounds.max(1) {
        if !assign(rows, &centres, &mut labels).0 {
            break;
        }
        move_centres(rows, &labels, &mut centres);
    }
    labels
}

/// What a row counts as, and all rows: rows with weights of their own count by them, and others once.
fn weight_of(rows: &RowBlocks) -> (impl Fn(usize) -> f64, f64) {
    let weighted = rows.repeats(0).is_some();
    let all = if weighted { rows.total_weight() } else { rows.rows() as f64 };
    (move |i| if weighted { rows.weight(i) } else { 1.0 }, all)
}

/// k-means++: the first centre is a random row; each further one is a row drawn with probability proportional to its squared
/// distance, and to its weight.
fn plus_plus<R: Rng>(rows: &RowBlocks, k: usize, rng: &mut R) -> Array2<f64> {
    let n = rows.rows();
    let mut centres = Array2::zeros((k, rows.dim()));
    let mut distances = vec![f64::INFINITY; n];
    let mut to_chosen = [0.0; BLOCK];
    let weight = weight_of(rows).0;
    let weighted =
        |distances: &[f64]| distances.iter().enumerate().map(|(i, d)| d * weight(i)).collect::<Vec<f64>>();
    let mut chosen = match rows.repeats(0) {
        None => rng.random_range(0..n),
        Some(_) => draw_proportionally(&weighted(&vec![1.0; n]), rng).unwrap_or(0),
    };
    for j in 0..k {
        let centre: Vec<f64> = (0..rows.dim()).map(|column| rows.value(chosen, column)).collect();
        centres.row_mut(j).assign(&ArrayView1::from(&centre));
        for ((block, _), distances) in rows.iter().zip(distances.chunks_mut(BLOCK)) {
            square_distances(&block, &centre, &mut to_chosen);
            distances.iter_mut().zip(&to_chosen).for_each(|(least, new)| *least = least.min(*new));
        }
        chosen = draw_proportionally(&weighted(&distances), rng).unwrap_or_else(|| rng.random_range(0..n));
    }
    centres
}

/// Assigns every row to the nearest centre, the first one of equals. Returns whether any label has changed, and the sum of
/// the squared distances.
fn assign(rows: &RowBlocks, centres: &Array2<f64>, labels: &mut [usize]) -> (bool, f64) {
    let (mut moved, mut sum) = (false, 0.0);
    let centres = centres.as_slice().expect("standard layout");
    let (mut distances, mut nearest) = ([0.0; BLOCK], [0; BLOCK]);
    let weight = weight_of(rows).0;
    for (i, ((block, _), labels)) in rows.iter().zip(labels.chunks_mut(BLOCK)).enumerate() {
        nearest_centres(&block, centres, &mut distances, &mut nearest);
        for (r, (label, (distance, &nearest))) in
            labels.iter_mut().zip(distances.iter().zip(&nearest)).enumerate()
        {
            moved |= *label != nearest as usize;
            *label = nearest as usize;
            sum += distance * weight(i * BLOCK + r);
        }
    }
    (moved, sum)
}

/// `None` if all weights are zero, because every row equals a centre.
fn draw_proportionally<R: Rng>(weights: &[f64], rng: &mut R) -> Option<usize> {
    let largest = weights.iter().copied().fold(0.0, f64::max);
    if largest <= 0.0 {
        return None;
    }
    // Division by the largest weight keeps the sum from overflowing with far outliers.
    let total: f64 = weights.iter().map(|weight| weight / largest).sum();
    let mut left = rng.random::<f64>() * total;
    let drawn = weights.iter().position(|weight| {
        left -= weight / largest;
        left < 0.0
    });
    drawn.or_else(|| weights.iter().position(|&weight| weight == largest))
}

fn move_centres(rows: &RowBlocks, labels: &[usize], centres: &mut Array2<f64>) {
    let (k, weight) = (centres.nrows(), weight_of(rows).0);
    let mut counts = vec![0.0; k];
    labels.iter().enumerate().for_each(|(i, &label)| counts[label] += weight(i));
    // By columns.
    let mut sums = vec![0.0; k * rows.dim()];
    for (i, ((block, _), labels)) in rows.iter().zip(labels.chunks(BLOCK)).enumerate() {
        for (sums, values) in sums.chunks_exact_mut(k).zip(block.chunks_exact(BLOCK)) {
            let rows = labels.iter().zip(values).enumerate();
            rows.for_each(|(r, (&label, value))| sums[label] += weight(i * BLOCK + r) * value);
        }
    }
    for ((j, column), centre) in centres.indexed_iter_mut() {
        // A centre without rows does not move.
        if counts[j] > 0.0 {
            *centre = sums[column * k + j] / counts[j];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;

    #[test]
    fn separated_groups_are_found() {
        let rows = Array2::from_shape_fn((90, 2), |(i, j)| (i % 3 * 100) as f64 + ((i * 7 + j) % 5) as f64);
        let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(1);
        let rows = RowBlocks::new(rows.view());
        let (centres, inertia) = kmeans(&rows, 3, 10, &mut rng);
        let labels = move_on(&rows, centres, 1);
        assert!(inertia < 10.0);
        assert!((0..90).all(|i| labels[i] == labels[i % 3]));
        assert!(labels[0] != labels[1] && labels[1] != labels[2] && labels[0] != labels[2]);
    }

    #[test]
    fn more_centres_than_distinct_rows_is_no_trouble() {
        let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(1);
        let rows = RowBlocks::new(Array2::zeros((2, 3)).view());
        assert_eq!(move_on(&rows, kmeans(&rows, 5, 10, &mut rng).0, 1), [0, 0]);
    }
}
