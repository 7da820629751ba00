//! A pass that continues from a mixture which was fitted elsewhere.

use super::OnlineFit;
use crate::data::ColumnNames;
use crate::dist::{Dirichlet, Gaussian, GaussianMixture, NormalWishart, Posterior};
use crate::learn::structure::{KeptRows, Revised, Schedule};
use crate::learn::{
    CandidateState, FitSettings, FitState, Health, LearnError, Prequential, RowSample, SeenRows, Structure,
    prior_around, prior_strength, variance_floor,
};
use crate::linalg::CovarianceType;
use crate::stats::{BatchSums, ColumnSummary};

impl OnlineFit {
    /// Begins a pass from a mixture that another program has fitted to `rows` rows, which then count as seen. The structure
    /// is not revised until the pass has seen as many new rows.
    ///
    /// ```
    /// use gmm_bmm::{FitSettings, GaussianMixture, OnlineFit};
    /// use ndarray::{Array2, array};
    ///
    /// let (weights, means) = (array![0.5, 0.5], array![[0.0], [10.0]]);
    /// let mixture = GaussianMixture::from_arrays(weights.view(), means.view(), array![[[1.0]], [[1.0]]].view())?;
    /// let mut pass = OnlineFit::from_mixture(&mixture, 1000, ["x"], FitSettings::obmm(2))?;
    /// pass.observe(Array2::from_shape_fn((500, 1), |(i, _)| 10.0 * (i % 2) as f64 + (i % 7) as f64 / 7.0).view())?;
    /// assert_eq!(pass.rows(), 1500);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`LearnError::Setting`] if the settings ask for another number of components.
    pub fn from_mixture(
        mixture: &GaussianMixture,
        rows: u64,
        columns: impl Into<ColumnNames>,
        settings: FitSettings,
    ) -> Result<Self, LearnError> {
        settings.check()?;
        let sizes = settings.components.sizes();
        let (k, dim) = (mixture.k(), mixture.dim());
        if sizes.len() != 1 || k > settings.components.largest() || k < settings.components.largest_at_start()
        {
            return Err(LearnError::Setting { name: "K", must: "that of the mixture", value: k as f64 });
        }
        let summaries = column_summaries(mixture, rows);
        let (prior, posterior) = (prior_around(mixture), posterior_of_rows(mixture, rows));
        let (kept, strength, health) = (vec![None; k], prior_strength(dim), Health::default());
        let weight = rows as f64;
        let revised = Revised { prior, posterior, kept, rows, weight, strength, health };
        let learned = settings.algorithm.reviser().revise(None, &revised);
        let most = settings.kept_rows(dim);
        let candidate = CandidateState {
            learned: learned.ok_or_else(|| LearnError::State("this algorithm needs rows".into()))?,
            prequential: Prequential::default(),
            health: Health::default(),
            structure: Some(Structure::new(
                k,
                Schedule::of(sizes[0], most, false, rows).with_half_life(settings.half_life, rows),
            )),
            ranks: None,
        };
        let state = FitState {
            rows,
            floor: summaries.iter().map(variance_floor).collect(),
            columns: summaries,
            pending: None,
            pending_weights: None,
            candidates: vec![candidate],
            shard: None,
            sample: RowSample::default(),
            seen: SeenRows::default(),
            scores: BatchSums::default(),
            kept: Some(
                KeptRows::new(settings.seed, most, most > 0)
                    .with_half_life(settings.half_life, dim)
                    .after_unknown(rows),
            ),
        };
        OnlineFit::restore(settings, columns.into(), state)
    }
}

/// The posterior after `rows` rows, with the mixture as its point estimate.
fn posterior_of_rows(mixture: &GaussianMixture, rows: u64) -> Posterior {
    let prior = prior_around(mixture);
    let (kind, count) = (mixture.covariance_type(), |weight: f64| weight * rows as f64);
    let component = |((own, gaussian), &weight): ((&NormalWishart, &Gaussian), &f64)| {
        // A tied covariance is that of all rows.
        let of_covariance = if kind == CovarianceType::Tied { rows as f64 } else { count(weight) };
        let (kappa, nu) = (own.kappa() + count(weight), own.nu() + of_covariance);
        let psi = gaussian.covariance().times(nu - own.beyond_rows());
        NormalWishart::new(gaussian.mean().to_vec(), kappa, nu, psi).unwrap_or_else(|_| own.clone())
    };
    let parts = prior.components().iter().zip(mixture.components()).zip(mixture.weights());
    let a = prior.weights().concentrations().iter().zip(mixture.weights());
    let a = a.map(|(own, &weight)| own + count(weight)).collect();
    Posterior::new(Dirichlet::new(a).expect("counts are not negative"), parts.map(component).collect())
        .expect("one component for each weight")
}

/// The summaries of `rows` rows with the moments of the mixture.
fn column_summaries(mixture: &GaussianMixture, rows: u64) -> Vec<ColumnSummary> {
    let means = mixture.means();
    let variances: Vec<Vec<f64>> =
        mixture.components().iter().map(|own| own.covariance().diagonal()).collect();
    let summary = |j: usize| {
        let parts = || mixture.weights().iter().enumerate();
        let mean: f64 = parts().map(|(i, weight)| weight * means[(i, j)]).sum();
        let variance = |i: usize| variances[i][j] + (means[(i, j)] - mean).powi(2);
        let variance: f64 = parts().map(|(i, weight)| weight * variance(i)).sum();
        ColumnSummary { count: rows, mean, squares: variance * rows as f64 }
    };
    (0..mixture.dim()).map(summary).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::Factor;
    use ndarray::Array2;

    fn mixture() -> GaussianMixture {
        let normal = |mean: f64, sd: f64| {
            Gaussian::new(vec![mean, -mean], Factor::from_standard_deviations(&[sd, 2.0 * sd]).unwrap())
                .unwrap()
        };
        GaussianMixture::new(vec![0.25, 0.75], vec![normal(0.0, 1.0), normal(9.0, 2.0)]).unwrap()
    }

    #[test]
    fn the_estimate_before_the_first_row_is_the_mixture() {
        for settings in [FitSettings::obmm(2), FitSettings::oem(2), FitSettings::learned_k(1..=5)] {
            let mut pass = OnlineFit::from_mixture(&mixture(), 5000, 2, settings).unwrap();
            let found = pass.mixture().unwrap();
            assert!((found.weights()[0] - 0.25).abs() < 1e-4, "{found:?}");
            assert!((found.means() - mixture().means()).iter().all(|away| away.abs() < 1e-9));
            let ratio = found.covariances()[(1, 1, 1)] / mixture().covariances()[(1, 1, 1)];
            assert!((ratio - 1.0).abs() < 1e-9, "{ratio}");
        }
    }

    #[test]
    fn rows_count_against_those_of_the_mixture() {
        let mut pass = OnlineFit::from_mixture(&mixture(), 1000, 2, FitSettings::obmm(2)).unwrap();
        pass.observe(Array2::zeros((1000, 2)).view()).unwrap();
        let found = pass.mixture().unwrap();
        assert_eq!(pass.rows(), 2000);
        assert!((found.weights()[0] - 0.625).abs() < 0.02, "{:?}", found.weights());
    }

    #[test]
    fn another_number_of_components_is_refused() {
        for settings in [FitSettings::obmm(3), FitSettings::obmm(1..=2), FitSettings::learned_k(3..=5)] {
            assert!(OnlineFit::from_mixture(&mixture(), 10, 2, settings).is_err());
        }
    }
}
