//! Tied, diagonal and spherical covariances in whole passes.

use gmm_bmm::batch::{EmSettings, fit_em, fit_em_learning_k};
use gmm_bmm::settings::{Components, CovarianceType};
use gmm_bmm::{FitSettings, GaussianMixture, Model, OnlineFit, fit};
use ndarray::{Array2, s};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

use crate::common::at_full_size;

const CONSTRAINED: [CovarianceType; 3] =
    [CovarianceType::Tied, CovarianceType::Diag, CovarianceType::Spherical];

/// Rows of a mixture with covariances of this kind, and the mixture. Centres are about seven standard deviations apart.
fn synthetic(
    kind: CovarianceType,
    rows: usize,
    k: usize,
    dim: usize,
    seed: u64,
) -> (Array2<f64>, GaussianMixture) {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let means =
        Array2::from_shape_fn((k, dim), |_| 6.0 * rng.random_range(-1.0..1.0) * (9.0 / dim as f64).sqrt());
    let spread = Array2::from_shape_fn((k, dim), |(j, l)| match kind {
        CovarianceType::Spherical => 0.6 + 0.2 * (j % 3) as f64,
        CovarianceType::Tied => 0.5 + 0.1 * (l % 5) as f64,
        _ => 0.4 + 0.15 * ((2 * j + l) % 5) as f64,
    });
    // With tied covariances, neighbouring columns are correlated.
    let mix = if kind == CovarianceType::Tied { 0.6 } else { 0.0 };
    let mut values = Array2::zeros((rows, dim));
    for (i, mut row) in values.rows_mut().into_iter().enumerate() {
        let j = (i * 7 + i / 11) % k;
        let mut before = 0.0;
        for l in 0..dim {
            let z: f64 = StandardNormal.sample(&mut rng);
            row[l] = means[(j, l)] + spread[(j, l)] * (z + mix * before);
            before = z;
        }
    }
    let covariance = |j: usize| {
        Array2::from_shape_fn((dim, dim), |(a, b)| {
            let (near, far) = (a.min(b), a.max(b));
            let of_z = match far - near {
                0 => 1.0 + if a > 0 { mix * mix } else { 0.0 },
                1 => mix,
                _ => 0.0,
            };
            spread[(j, a)] * spread[(j, b)] * of_z
        })
    };
    let covariances: Vec<Array2<f64>> = (0..k).map(covariance).collect();
    let views: Vec<_> = covariances.iter().map(|matrix| matrix.view()).collect();
    let stacked = ndarray::stack(ndarray::Axis(0), &views).unwrap();
    let weights = ndarray::Array1::from_elem(k, 1.0 / k as f64);
    (values, GaussianMixture::from_arrays(weights.view(), means.view(), stacked.view()).unwrap())
}

#[test]
fn learners_find_mixtures_of_their_kind() {
    for kind in CONSTRAINED {
        let (all, truth) = synthetic(kind, 16_000, 4, 6, 3);
        let (test, rows) = all.view().split_at(ndarray::Axis(0), 4000);
        let best = truth.score(test).unwrap();
        for settings in [FitSettings::obmm(4), FitSettings::oem(4), FitSettings::odmm(4, 3)] {
            let fitted = fit(rows, settings.clone().covariance(kind)).unwrap();
            let score = fitted.mixture.score(test).unwrap();
            assert!(score > best - 0.03, "{kind:?} {settings:?}: {score} {best}");
            assert_eq!(fitted.mixture.covariance_type(), kind);
        }
        let settings = EmSettings { covariance: kind, ..EmSettings::default() };
        let em = fit_em(rows, 4, 1, &settings).unwrap();
        assert!(em.mixture.score(test).unwrap() > best - 0.03);
        let free = kind.parameters(4, 6) as f64;
        let expected = em.mean_log_likelihood - free * 12_000f64.ln() / 24_000.0;
        assert!((em.less_bic_price(12_000.0) - expected).abs() < 1e-12);
    }
}

/// BIC counts the numbers of each kind, so that the right number of components is found in rows of the right kind.
#[test]
fn the_number_of_components_is_learned() {
    for kind in CONSTRAINED {
        for seed in [1, 2] {
            let (rows, _) = synthetic(kind, 9000, 5, 4, seed);
            let settings = FitSettings::learned_k(1..=20).covariance(kind).seed(seed);
            let found = fit(rows.view(), settings).unwrap().mixture;
            assert_eq!(found.k(), 5, "{kind:?} {seed}");
            let settings = EmSettings { covariance: kind, ..EmSettings::default() };
            let em = fit_em_learning_k(rows.slice(s![..4000, ..]), 1..=20, seed, &settings).unwrap();
            assert_eq!(em.mixture.k(), 5, "{kind:?} {seed}");
        }
    }
}

fn bytes(model: &Model) -> Vec<u8> {
    let mut bytes = Vec::new();
    model.write(&mut bytes).unwrap();
    bytes
}

/// Whole passes with revisions, gaps, a half-life and shards: batches, files and threads change no bit.
#[test]
fn batches_files_and_threads_change_no_bit() {
    let gapped = |mut rows: Array2<f64>| {
        rows.iter_mut().enumerate().filter(|(i, _)| i % 37 == 5).for_each(|(_, value)| *value = f64::NAN);
        rows
    };
    for kind in CONSTRAINED {
        let rows = synthetic(kind, 3000, 3, 5, 7).0;
        let settings = [
            FitSettings::obmm(3),
            FitSettings::new(FitSettings::oem(3).algorithm, Components::learned(1..=6)),
            FitSettings::obmm(3).half_life(500),
            FitSettings::odmm(3, 2),
            FitSettings::obmm(3).blind(),
        ];
        for (n, settings) in settings.into_iter().enumerate() {
            let rows = if n < 2 { gapped(rows.clone()) } else { rows.clone() };
            let settings = settings.covariance(kind).gaps(n < 2);
            let settings = if n == 4 { settings } else { settings.start_rows(400) };
            let run = |threads: usize, batch: usize, resumes: bool| {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                pool.install(|| {
                    let mut pass = OnlineFit::new(5, settings.clone()).unwrap();
                    for (i, rows) in rows.axis_chunks_iter(ndarray::Axis(0), batch).enumerate() {
                        pass.observe(rows).unwrap();
                        if resumes && i % 4 == 1 {
                            let model = Model::read(&bytes(&pass.to_model().unwrap())[..]).unwrap();
                            pass = model.resume().unwrap();
                        }
                    }
                    bytes(&pass.to_model().unwrap())
                })
            };
            let straight = run(1, 3000, false);
            assert!(straight == run(2, 411, false), "{kind:?} {n}: batches");
            assert!(straight == run(1, 250, true), "{kind:?} {n}: resuming");
        }
    }
}

/// A size at which kept rows are in single precision, and not all rows are kept.
#[test]
fn rows_kept_in_single_precision_change_no_bit_between_batches_files_and_threads() {
    let kinds = [CovarianceType::Full, CovarianceType::Diag, CovarianceType::Tied, CovarianceType::Spherical];
    for kind in if at_full_size() { &kinds[..] } else { &kinds[..1] } {
        let rows = synthetic(*kind, 72_000, 3, 60, 3).0;
        let settings = FitSettings::obmm(3).covariance(*kind).start_rows(1000).keep_rows(70_500);
        let run = |threads: usize, cuts: &[usize], resumes: bool| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| {
                let mut pass = OnlineFit::new(60, settings.clone()).unwrap();
                for ends in cuts.windows(2) {
                    pass.observe(rows.slice(s![ends[0]..ends[1], ..])).unwrap();
                    if resumes && ends[1] < 72_000 {
                        let model = Model::read(&bytes(&pass.to_model().unwrap())[..]).unwrap();
                        pass = model.resume().unwrap();
                    }
                }
                bytes(&pass.to_model().unwrap())
            })
        };
        let straight = run(2, &[0, 72_000], false);
        assert!(straight == run(1, &[0, 1_500, 71_800, 72_000], true), "{kind:?}");
    }
}

#[test]
fn few_rows_and_many_columns_are_no_danger() {
    for kind in CONSTRAINED {
        for (rows, dim, k) in [(30, 200, 2), (2, 3, 1), (12, 1, 3), (400, 60, 30)] {
            let values = synthetic(kind, rows, k, dim, 5).0;
            let mixture = fit(values.view(), FitSettings::obmm(k).covariance(kind)).unwrap().mixture;
            let scores = mixture.score_samples(values.view()).unwrap();
            assert!(scores.iter().all(|score| score.is_finite()), "{kind:?} {rows} {dim}");
        }
        // A column that is constant, and one that is a function of another.
        let mut values = synthetic(kind, 500, 2, 4, 9).0;
        values.column_mut(1).fill(7.0);
        let copy = values.column(2).to_owned();
        values.column_mut(3).assign(&copy);
        let mixture = fit(values.view(), FitSettings::obmm(2).covariance(kind)).unwrap().mixture;
        assert!(mixture.score(values.view()).unwrap().is_finite());
    }
}

#[test]
fn settings_of_full_covariances_alone_are_refused() {
    use gmm_bmm::settings::{Algorithm, Moments, ObmmSettings};
    for (settings, word) in [
        (ObmmSettings { moments: Moments::Paper, discount: 0.0 }, "moments"),
        (ObmmSettings { moments: Moments::Whitened, discount: 0.3 }, "discount"),
    ] {
        let settings = FitSettings::new(Algorithm::Obmm(settings), 2).covariance(CovarianceType::Diag);
        let error = OnlineFit::new(2, settings).unwrap_err().to_string();
        assert!(error.contains(word) && error.contains("diag"), "{error}");
    }
}
