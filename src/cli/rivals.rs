//! How sure the choice among several K is: standard errors of the differences between their scores, paired by rows and
//! from running sums, so that no row is kept.

use ndarray::{ArrayView2, Axis};

use crate::learn::{Algorithm, FitSettings, FitState, LearnError, OnlineFit, Prequential};

/// Sums over portions of rows. A portion counts as one draw: rows beside one another may be alike.
pub(super) struct PairedSums {
    portions: u64,
    rows: f64,
    squared_rows: f64,
    /// Of each K, what its scores are above those of the first K.
    gains: Vec<f64>,
    /// The same, each portion times its rows.
    gains_by_rows: Vec<f64>,
    /// Products of the gains of every two K.
    products: Vec<f64>,
}

impl PairedSums {
    /// Portions below which a standard error would be chance itself.
    const FEWEST: u64 = 10;

    pub fn new(ks: usize) -> Self {
        PairedSums {
            portions: 0,
            rows: 0.0,
            squared_rows: 0.0,
            gains: vec![0.0; ks],
            gains_by_rows: vec![0.0; ks],
            products: vec![0.0; ks * ks],
        }
    }

    /// Adds a portion of so many rows: the sum of their scores for each K.
    pub fn add(&mut self, rows: f64, sums: &[f64]) {
        self.portions += 1;
        self.rows += rows;
        self.squared_rows += rows * rows;
        for (i, sum) in sums.iter().enumerate() {
            let gain = sum - sums[0];
            self.gains[i] += gain;
            self.gains_by_rows[i] += rows * gain;
            for (j, other) in sums.iter().enumerate() {
                self.products[i * sums.len() + j] += gain * (other - sums[0]);
            }
        }
    }

    /// The standard error of the mean difference between the scores of two K, given by their places.
    pub fn standard_error(&self, i: usize, j: usize) -> Option<f64> {
        let product = |i: usize, j: usize| self.products[i * self.gains.len() + j];
        let mean = (self.gains[i] - self.gains[j]) / self.rows;
        let squares = product(i, i) - 2.0 * product(i, j) + product(j, j)
            - 2.0 * mean * (self.gains_by_rows[i] - self.gains_by_rows[j])
            + mean * mean * self.squared_rows;
        let portions = self.portions as f64;
        let variance = squares.max(0.0) * portions / (portions - 1.0);
        (self.portions >= Self::FEWEST).then(|| variance.sqrt() / self.rows).filter(|error| error.is_finite())
    }
}

/// The scores of a pass as they come.
pub(super) struct ScoreTally {
    sums: PairedSums,
    /// What was scored when last looked at, by K.
    scored: Vec<Prequential>,
    /// The fewest rows between looks.
    shortest: u64,
    /// The row of the pass at which the next look is due, wherever blocks end.
    next_look: u64,
}

impl ScoreTally {
    /// A look copies the learners, so looks become rarer as rows become many.
    const LOOKS: u64 = 64;

    /// For a pass that begins now. None where there is nothing to compare, where earlier rows have been scored already,
    /// and of shards, whose scores are apart until they are merged.
    pub fn of(settings: &FitSettings, fit: &OnlineFit) -> Option<Self> {
        let several = settings.ks.len() > 1 && !matches!(settings.algorithm, Algorithm::Odmm(_));
        let shortest = (4 * fit.dim() as u64).max(64);
        (several && fit.rows() == 0).then(|| ScoreTally {
            sums: PairedSums::new(settings.ks.len()),
            scored: vec![Prequential::default(); settings.ks.len()],
            shortest,
            next_look: settings.init_rows(fit.dim()) as u64 + shortest,
        })
    }

    /// Rows to learn before the next look.
    pub fn rows_until_look(&self, fit: &OnlineFit) -> u64 {
        self.next_look - fit.rows()
    }

    /// Takes in the scores since the last look, if one is due.
    pub fn look_at(&mut self, fit: &OnlineFit) -> Result<(), LearnError> {
        if fit.rows() >= self.next_look {
            self.take_in(&fit.state()?);
            self.next_look = fit.rows() + self.shortest.max(self.scored[0].rows / Self::LOOKS);
        }
        Ok(())
    }

    fn take_in(&mut self, state: &FitState) {
        let now: Vec<Prequential> = state.candidates.iter().map(|c| c.prequential).collect();
        let rows = now[0].rows - self.scored[0].rows;
        if rows > 0 {
            let sum =
                |(now, before): (&Prequential, &Prequential)| now.log_likelihood - before.log_likelihood;
            self.sums.add(rows as f64, &now.iter().zip(&self.scored).map(sum).collect::<Vec<_>>());
        }
        self.scored = now;
    }

    /// The sums of all scores that the pass ended with.
    pub fn finish(
        mut self,
        settings: &FitSettings,
        state: &FitState,
    ) -> Result<Option<PairedSums>, LearnError> {
        if let Some(rows) = &state.pending {
            return Self::by_halves(settings, rows, state.columns.len());
        }
        self.take_in(state);
        Ok(Some(self.sums))
    }

    /// Of a pass with too few rows for its start, which is scored on the second half after a start from the first.
    fn by_halves(
        settings: &FitSettings,
        values: &[f64],
        dim: usize,
    ) -> Result<Option<PairedSums>, LearnError> {
        let rows = ArrayView2::from_shape((values.len() / dim, dim), values).expect("rows are kept whole");
        let half = rows.nrows() / 2;
        if half == 0 {
            return Ok(None);
        }
        let settings = FitSettings { init_rows: Some(half), ..settings.clone() };
        let mut fit = OnlineFit::new(dim, settings.clone())?;
        let Some(mut tally) = Self::of(&settings, &fit) else { return Ok(None) };
        let mut rest = rows;
        while rest.nrows() > 0 {
            let portion = rest.nrows().min(tally.rows_until_look(&fit) as usize);
            let (next, after) = rest.split_at(Axis(0), portion);
            fit.observe(next)?;
            tally.look_at(&fit)?;
            rest = after;
        }
        tally.take_in(&fit.state()?);
        Ok(Some(tally.sums))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::{mean, standard_error};

    #[test]
    fn portions_of_one_row_give_the_paired_standard_error() {
        let scores: Vec<[f64; 3]> =
            (0..40).map(|i| [0.3, 0.7, 1.1].map(|f| -1e6 + (f * f64::from(i)).sin())).collect();
        let mut sums = PairedSums::new(3);
        scores.iter().for_each(|row| sums.add(1.0, row));
        for (i, j) in [(0, 1), (1, 2), (2, 0)] {
            let differences: Vec<f64> = scores.iter().map(|row| row[i] - row[j]).collect();
            let (found, expected) =
                (sums.standard_error(i, j).unwrap(), standard_error(&differences).unwrap());
            assert!((found - expected).abs() < 1e-9, "{found} against {expected}");
        }
        assert_eq!(sums.standard_error(1, 1), Some(0.0));
    }

    #[test]
    fn uneven_portions_count_by_their_rows() {
        let mut sums = PairedSums::new(2);
        let portions: Vec<(f64, f64)> = (0..12).map(|i| (f64::from(1 + i % 3), f64::from(i % 5))).collect();
        portions.iter().for_each(|&(rows, gain)| sums.add(rows, &[0.0, gain]));
        let rows: f64 = portions.iter().map(|(rows, _)| rows).sum();
        let average = portions.iter().map(|(_, gain)| gain).sum::<f64>() / rows;
        let residuals: Vec<f64> = portions.iter().map(|(rows, gain)| gain - rows * average).collect();
        assert!(mean(&residuals).unwrap().abs() < 1e-12);
        let expected = standard_error(&residuals).unwrap() * 12.0 / rows;
        assert!((sums.standard_error(0, 1).unwrap() - expected).abs() < 1e-12);
    }

    #[test]
    fn few_portions_have_no_standard_error() {
        let mut sums = PairedSums::new(2);
        (0..9).for_each(|i| sums.add(1.0, &[0.0, f64::from(i)]));
        assert_eq!(sums.standard_error(0, 1), None);
    }
}
