//! The eigenvalues of a symmetric matrix.

use ndarray::Array2;

/// The eigenvalues of a symmetric matrix, in no particular order, without eigenvectors: Householder reflections make it
/// tridiagonal, then the QL algorithm with implicit shifts makes it diagonal. The lower triangle is read.
///
/// ```
/// use gmm_bmm::internals::linalg::symmetric_eigenvalues;
/// use ndarray::array;
///
/// let mut found = symmetric_eigenvalues(array![[2.0, 1.0], [1.0, 2.0]]);
/// found.sort_by(f64::total_cmp);
/// assert!((found[0] - 1.0).abs() < 1e-12 && (found[1] - 3.0).abs() < 1e-12);
/// ```
pub fn symmetric_eigenvalues(matrix: Array2<f64>) -> Vec<f64> {
    let (mut diagonal, mut beside) = tridiagonal(matrix);
    for from in 0..diagonal.len() {
        for _ in 0..MAX_SWEEPS {
            let negligible =
                |i: usize| beside[i].abs() <= f64::EPSILON * (diagonal[i].abs() + diagonal[i + 1].abs());
            let to = (from..beside.len()).find(|&i| negligible(i)).unwrap_or(beside.len());
            if to == from {
                break;
            }
            sweep(&mut diagonal, &mut beside, from, to);
        }
    }
    diagonal
}

/// Two or three sweeps find one eigenvalue.
const MAX_SWEEPS: usize = 60;

/// The diagonal, and the elements next to it, of a tridiagonal matrix with the same eigenvalues.
fn tridiagonal(mut matrix: Array2<f64>) -> (Vec<f64>, Vec<f64>) {
    let dim = matrix.nrows();
    let (mut diagonal, mut beside) = (vec![0.0; dim], vec![0.0; dim.saturating_sub(1)]);
    let (mut axis, mut image) = (vec![0.0; dim], vec![0.0; dim]);
    // The last row of the remaining matrix is reflected to a multiple of its last element.
    for last in (1..dim).rev() {
        diagonal[last] = matrix[(last, last)];
        let (axis, image) = (&mut axis[..last], &mut image[..last]);
        axis.iter_mut().zip(matrix.row(last)).for_each(|(to, from)| *to = *from);
        let length = axis.iter().map(|value| value * value).sum::<f64>().sqrt();
        let end = axis[last - 1];
        beside[last - 1] = if end > 0.0 { -length } else { length };
        let square = length * (length + end.abs());
        if !(square > 0.0) {
            continue;
        }
        axis[last - 1] = end - beside[last - 1];
        multiply(&matrix, axis, image);
        let along: f64 = axis.iter().zip(&*image).map(|(a, b)| a * b).sum::<f64>() / (2.0 * square);
        for (to, a) in image.iter_mut().zip(&*axis) {
            *to = (*to - along * a) / square;
        }
        for (i, mut row) in matrix.rows_mut().into_iter().enumerate().take(last) {
            let row = row.as_slice_mut().expect("the rows of a matrix are contiguous");
            let (own, other) = (axis[i], image[i]);
            for ((value, a), b) in row.iter_mut().zip(&axis[..=i]).zip(&image[..=i]) {
                *value -= own * b + other * a;
            }
        }
    }
    if dim > 0 {
        diagonal[0] = matrix[(0, 0)];
    }
    (diagonal, beside)
}

/// The product of the leading part of a symmetric matrix, of which the lower triangle is read, and a vector.
fn multiply(matrix: &Array2<f64>, vector: &[f64], out: &mut [f64]) {
    out.fill(0.0);
    for (i, row) in matrix.rows().into_iter().enumerate().take(vector.len()) {
        let row = row.to_slice().expect("the rows of a matrix are contiguous");
        let (before, here) = (&row[..i], row[i]);
        // Four sums, which the compiler can keep in one register.
        let mut sums = [0.0; 4];
        let (fours, rest) = before.as_chunks::<4>();
        for (values, others) in fours.iter().zip(vector.as_chunks::<4>().0) {
            for ((sum, a), b) in sums.iter_mut().zip(values).zip(others) {
                *sum += a * b;
            }
        }
        let rest: f64 = rest.iter().zip(&vector[4 * fours.len()..]).map(|(a, b)| a * b).sum();
        out.iter_mut().zip(before).for_each(|(to, value)| *to += vector[i] * value);
        out[i] += sums.iter().sum::<f64>() + rest + here * vector[i];
    }
}

/// A sweep of the QL algorithm over the part `from..=to` of a tridiagonal matrix.
fn sweep(diagonal: &mut [f64], beside: &mut [f64], from: usize, to: usize) {
    let half = (diagonal[from + 1] - diagonal[from]) / (2.0 * beside[from]);
    let root = half.hypot(1.0).copysign(half);
    let mut g = diagonal[to] - diagonal[from] + beside[from] / (half + root);
    let (mut sine, mut cosine, mut shift) = (1.0, 1.0, 0.0);
    for i in (from..to).rev() {
        let (f, b) = (sine * beside[i], cosine * beside[i]);
        let length = f.hypot(g);
        if i + 1 < to {
            beside[i + 1] = length;
        }
        if length == 0.0 {
            // The matrix falls apart here.
            diagonal[i + 1] -= shift;
            return;
        }
        (sine, cosine) = (f / length, g / length);
        let rest = diagonal[i + 1] - shift;
        let change = (diagonal[i] - rest) * sine + 2.0 * cosine * b;
        shift = sine * change;
        diagonal[i + 1] = rest + shift;
        g = cosine * change - b;
    }
    diagonal[from] -= shift;
    beside[from] = g;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_eigenvalues_have_the_traces_of_the_first_powers_and_those_of_a_known_matrix() {
        for dim in [1, 2, 3, 4, 7, 30] {
            let element = |i: usize, j: usize| ((i * 7 + j * 7 + i * j) as f64 * 0.7).sin();
            let matrix = Array2::from_shape_fn((dim, dim), |(i, j)| element(i, j));
            let (mut power, found) = (matrix.clone(), symmetric_eigenvalues(matrix.clone()));
            for n in 1..=4 {
                let sum: f64 = found.iter().map(|value| value.powi(n)).sum();
                assert!((sum - power.diag().sum()).abs() < 1e-9 * (1.0 + sum.abs()), "d {dim}, power {n}");
                power = power.dot(&matrix);
            }
            // Neighbours with −1: 2 − 2 cos(iπ/(d + 1)).
            let chain = Array2::from_shape_fn((dim, dim), |(i, j)| match i.abs_diff(j) {
                0 => 2.0,
                1 => -1.0,
                _ => 0.0,
            });
            let mut found = symmetric_eigenvalues(chain);
            found.sort_by(f64::total_cmp);
            for (i, value) in found.iter().enumerate() {
                let angle = (i + 1) as f64 * std::f64::consts::PI / (dim + 1) as f64;
                assert!((value - 2.0 + 2.0 * angle.cos()).abs() < 1e-12, "d {dim}: {value}");
            }
        }
        assert_eq!(symmetric_eigenvalues(Array2::eye(5)), [1.0; 5]);
        assert_eq!(symmetric_eigenvalues(Array2::zeros((3, 3))), [0.0; 3]);
    }
}
