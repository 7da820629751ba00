//! Densities, moments, log-gamma ratios and batch EM against values made with mpmath, SciPy and scikit-learn
//! (`tests/reference/make_reference.py`).

use gmm_bmm::batch::{EmSettings, expectation_maximisation};
use gmm_bmm::dist::{Density, Dirichlet, Gaussian, GaussianMixture, Mixture, NormalWishart, StudentT};
use gmm_bmm::internals::learn::{Scalars, project_dirichlet_literally};
use gmm_bmm::internals::linalg::Factor;
use gmm_bmm::internals::special::log_gamma_ratio;
use ndarray::{Array1, Array2};
use serde_json::Value;

use crate::common::*;

fn factor(value: &Value) -> Factor {
    Factor::from_matrix(matrix(value).view()).unwrap()
}

fn cases(file: &Value, list: &str) -> Vec<Value> {
    let cases = file[list].as_array().unwrap().clone();
    assert!(!cases.is_empty());
    cases
}

fn mixture(weights: &Value, means: &Value, covariances: &Value) -> GaussianMixture {
    let parts = means.as_array().unwrap().iter().zip(covariances.as_array().unwrap());
    let components = parts.map(|(mean, c)| Gaussian::new(vector(mean), factor(c)).unwrap()).collect();
    Mixture::new(vector(weights), components).unwrap()
}

/// A factorisation in double precision cannot be better than the matrix's conditioning allows.
fn tolerance(case: &Value) -> f64 {
    1e-12f64.max(number(&case["condition"]) * 1e-17)
}

#[test]
fn gaussian_densities_agree() {
    for case in cases(&reference("densities.json"), "gaussian") {
        let gaussian = Gaussian::new(vector(&case["mean"]), factor(&case["covariance"])).unwrap();
        let found = gaussian.log_density(&vector(&case["x"]));
        assert_close(found, number(&case["log_density"]), tolerance(&case), &case["name"].to_string());
    }
}

#[test]
fn student_densities_agree() {
    for case in cases(&reference("densities.json"), "student_t") {
        let freedom = number(&case["dof"]);
        let student = StudentT::new(vector(&case["location"]), factor(&case["scale"]), freedom).unwrap();
        let found = student.log_density(&vector(&case["x"]));
        assert_close(found, number(&case["log_density"]), tolerance(&case), &format!("dof {freedom}"));
    }
}

#[test]
fn dirichlet_density_and_moments_agree() {
    for case in cases(&reference("densities.json"), "dirichlet") {
        let dirichlet = Dirichlet::new(vector(&case["alpha"])).unwrap();
        let name = case["alpha"].to_string();
        assert_close(dirichlet.log_density(&vector(&case["w"])), number(&case["log_density"]), 1e-12, &name);
        for (found, expected) in dirichlet.mean().iter().zip(vector(&case["mean"])) {
            assert_close(*found, expected, 1e-14, &name);
        }
        for (found, expected) in dirichlet.variance().iter().zip(vector(&case["variance"])) {
            assert_close(found / expected, 1.0, 1e-12, &name);
        }
    }
}

#[test]
fn normal_wishart_densities_agree() {
    for case in cases(&reference("densities.json"), "normal_wishart") {
        let (kappa, nu) = (number(&case["kappa"]), number(&case["nu"]));
        let nw = NormalWishart::new(vector(&case["m"]), kappa, nu, factor(&case["psi"])).unwrap();
        let found = nw.log_density(&vector(&case["mu"]), matrix(&case["lambda"]).view()).unwrap();
        assert_close(found, number(&case["log_density"]), 1e-12, &format!("d {} nu {nu}", case["d"]));
    }
}

#[test]
fn mixture_densities_agree() {
    for case in cases(&reference("densities.json"), "mixture") {
        let mixture = mixture(&case["weights"], &case["means"], &case["covariances"]);
        assert_close(
            mixture.log_density(&vector(&case["x"])),
            number(&case["log_density"]),
            1e-12,
            "mixture",
        );
    }
}

#[test]
fn log_gamma_ratios_agree() {
    for case in cases(&reference("log_gamma_ratio.json"), "cases") {
        let (x, d) = (number(&case["x"]), case["d"].as_u64().unwrap() as usize);
        let value = number(&case["value"]);
        assert_close(log_gamma_ratio(x, d), value, 1e-13, &format!("x {x} d {d}"));
    }
}

/// The projected Normal-Wishart, put together from what the projection asks for.
fn projected(case: &Value) -> NormalWishart {
    let (m, x) = (Array1::from(vector(&case["m"])), Array1::from(vector(&case["x"])));
    let v = &x - &m;
    let psi = factor(&case["psi"]);
    let (mut y, mut work) = (vec![0.0; m.len()], vec![0.0; m.len()]);
    let q = psi.quadratic_form(v.as_slice().unwrap(), &mut y);
    let (kappa, nu, r) = (number(&case["kappa"]), number(&case["nu"]), number(&case["r"]));
    let change = Scalars { dim: m.len(), kappa, nu, q, r }.whitened();
    let mut psi_new = psi;
    psi_new.rank_one(change.tau, &y, &mut work);
    psi_new.scale_by(change.stretch);
    NormalWishart::new((&m + &(change.step * &v)).to_vec(), change.kappa, change.nu, psi_new).unwrap()
}

#[test]
fn projected_normal_wishart_has_the_moments_of_the_exact_mixture() {
    for case in cases(&reference("matching.json"), "normal_wishart") {
        let d = case["d"].as_u64().unwrap() as f64;
        let name = format!("d {d}, r {}", case["r"]);
        let nw = projected(&case);
        for (found, expected) in nw.mean().iter().zip(vector(&case["mean"])) {
            assert_close(*found, expected, 1e-12, &name);
        }
        let expected = matrix(&case["mean_precision"]);
        let size = expected.iter().fold(0.0f64, |most, value| most.max(value.abs()));
        for (found, expected) in nw.mean_precision().iter().zip(&expected) {
            assert_close(found / size, expected / size, 1e-11, &name);
        }
        // Of one Normal-Wishart: E[(μ−m)ᵀΛ(μ−m)] = d/κ, total whitened variance d(d+1)/ν.
        assert_close(d / nw.kappa() / number(&case["spread"]), 1.0, 1e-11, &name);
        assert_close(d * (d + 1.0) / nw.nu() / number(&case["whitened_variance"]), 1.0, 1e-11, &name);
    }
}

#[test]
fn the_papers_dirichlet_has_the_mean_and_the_variance_of_each_weight_under_the_exact_mixture() {
    for case in cases(&reference("matching.json"), "dirichlet") {
        let mut a = vector(&case["a"]);
        let name = format!("{} {}", case["a"], case["r"]);
        assert_eq!(project_dirichlet_literally(&mut a, &vector(&case["r"])), 0, "{name}");
        for ((a, mean), variance) in a.iter().zip(vector(&case["mean"])).zip(vector(&case["variance"])) {
            // Of a Dirichlet with total A: Var[w] = E[w](1 − E[w])/(A + 1).
            let total = mean * (1.0 - mean) / variance - 1.0;
            assert_close(a / (mean * total), 1.0, 1e-9, &name);
        }
    }
}

#[test]
fn batch_em_follows_scikit_learn_step_by_step() {
    for case in cases(&reference("em.json"), "cases") {
        let rows = matrix(&case["rows"]);
        let start = &case["start"];
        let start = mixture(&start["weights"], &start["means"], &start["covariances"]);
        let ridge = number(&case["reg_covar"]);
        let levels = vector(&case["mean_log_likelihood"]);
        let mut last = None;
        for (count, expected) in vector(&case["iterations"]).into_iter().zip(levels) {
            let settings = EmSettings {
                iterations: count as usize,
                tolerance: f64::NEG_INFINITY,
                ridge,
                ..EmSettings::default()
            };
            let fit = expectation_maximisation(rows.view(), &start, &settings);
            let name = format!("{} after {count}", case["name"]);
            assert_close(fit.mean_log_likelihood, expected, 1e-10, &name);
            last = Some(fit.mixture);
        }
        let found = last.unwrap();
        let end = &case["final"];
        let expected = mixture(&end["weights"], &end["means"], &end["covariances"]);
        for (a, b) in found.components().iter().zip(expected.components()) {
            let (a, b): (Array2<f64>, Array2<f64>) = (a.covariance().matrix(), b.covariance().matrix());
            a.iter().zip(&b).for_each(|(a, b)| assert_close(*a, *b, 1e-9, "covariance"));
        }
    }
}
