//! Optimal assignment (the Hungarian method, by shortest augmenting paths, O(n³)).

use ndarray::ArrayView2;

/// The column assigned to each row of a square matrix of finite costs, so that the total cost is least.
pub(in crate::learn) fn best_assignment(costs: ArrayView2<f64>) -> Vec<usize> {
    let n = costs.nrows();
    // Rows and columns count from 1; column 0 means "not assigned yet".
    let (mut row_price, mut column_price) = (vec![0.0; n + 1], vec![0.0; n + 1]);
    let mut row_of = vec![0usize; n + 1];
    for row in 1..=n {
        row_of[0] = row;
        let mut column = 0;
        let mut came_from = vec![0usize; n + 1];
        let mut slack = vec![f64::INFINITY; n + 1];
        let mut visited = vec![false; n + 1];
        // Follow the cheapest path from this row to a free column, and keep the prices feasible.
        while row_of[column] != 0 {
            visited[column] = true;
            let here = row_of[column];
            let (mut step, mut next) = (f64::INFINITY, 0);
            for j in (1..=n).filter(|&j| !visited[j]) {
                let reduced = costs[(here - 1, j - 1)] - row_price[here] - column_price[j];
                if reduced < slack[j] {
                    slack[j] = reduced;
                    came_from[j] = column;
                }
                if slack[j] < step {
                    (step, next) = (slack[j], j);
                }
            }
            for j in 0..=n {
                if visited[j] {
                    row_price[row_of[j]] += step;
                    column_price[j] -= step;
                } else {
                    slack[j] -= step;
                }
            }
            column = next;
        }
        while column != 0 {
            row_of[column] = row_of[came_from[column]];
            column = came_from[column];
        }
    }
    let mut assigned = vec![0; n];
    (1..=n).for_each(|column| assigned[row_of[column] - 1] = column - 1);
    assigned
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::Array2;

    /// The least cost over all permutations, by trying them.
    fn brute_force(costs: &Array2<f64>, row: usize, free: &mut Vec<usize>) -> f64 {
        if row == costs.nrows() {
            return 0.0;
        }
        let mut least = f64::INFINITY;
        for i in 0..free.len() {
            let column = free.remove(i);
            least = least.min(costs[(row, column)] + brute_force(costs, row + 1, free));
            free.insert(i, column);
        }
        least
    }

    #[test]
    fn no_permutation_is_cheaper() {
        for n in 1..=6 {
            for seed in 0..20 {
                let costs =
                    Array2::from_shape_fn((n, n), |(i, j)| ((i * 31 + j * 17 + seed * 7) * 37 % 101) as f64);
                let assigned = best_assignment(costs.view());
                let found: f64 = assigned.iter().enumerate().map(|(i, &j)| costs[(i, j)]).sum();
                assert_eq!(found, brute_force(&costs, 0, &mut (0..n).collect()));
            }
        }
    }
}
