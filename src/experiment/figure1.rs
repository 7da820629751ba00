//! The paper's Figure 1: learning curves of oBMM on synthetic sets whose true mixture is known.

use std::sync::atomic::AtomicBool;

use super::contender::{Contender, Structure, Way};
use super::curve::spaced;
use super::record::{CellSettings, CurveRecord};
use super::revising::changing_revisions;
use crate::data::synth::{Synth, SynthError, SynthSpec};
use crate::data::{Block, RowSource};
use crate::learn::{
    BlindPrior, FitSettings, LearnError, OnlineFit, blind_start, blind_start_rows, default_start_rows,
    fit_start,
};
use crate::linalg::CovarianceType;

/// The first of the row counts at which the curve could have a point. Points begin after the start.
const FIRST: usize = 10;

/// Why a curve of Figure 1 cannot be computed.
#[derive(Debug, thiserror::Error)]
pub enum Figure1Error {
    /// The set cannot be generated.
    #[error(transparent)]
    Synth(#[from] SynthError),
    /// The set cannot be learned.
    #[error(transparent)]
    Learn(#[from] LearnError),
}

/// The learners of the figure: oBMM at its best, and oEM and oBMM from a fitted start and as the paper may have started them.
const LEARNERS: [Contender; 5] =
    [Contender::ObmmRevised, Contender::Obmm, Contender::Oem, Contender::ObmmBlind, Contender::OemBlind];

/// The learning curves on one of the nine sets, with `rows` training rows. Their level is the true model's score of
/// `test_rows` test rows.
pub fn figure1_curves(
    set: usize,
    rows: u64,
    test_rows: u64,
    seed: u64,
) -> Result<Vec<CurveRecord>, Figure1Error> {
    let mut spec = SynthSpec { rows, ..SynthSpec::paper(set)? };
    spec.seed = spec.seed.wrapping_add(seed.wrapping_sub(1));
    let (k, dim) = (spec.k, spec.dim);
    let synth = Synth::new(spec)?;
    let mut test = Block::new(dim);
    read_rows(&mut synth.test(test_rows), test_rows, &mut test);
    let level = Some(("true model".to_string(), synth.truth().mean_log_density(test.view())));
    let data = format!("set {set}: d = {dim}");
    let curve = |contender: Contender| {
        let mut block = Block::new(dim);
        let (mut fit, first) = match contender.way() {
            Some(Way::Online {
                tuned,
                algorithm,
                structure: structure @ (Structure::Blind | Structure::Fixed),
            }) => {
                let is_blind = *structure == Structure::Blind;
                let wanted = if is_blind { blind_start_rows(dim) } else { default_start_rows(k, dim) };
                read_rows(&mut synth.training(), wanted as u64, &mut block);
                let start = match is_blind {
                    true => {
                        blind_start(block.view(), k, seed, (BlindPrior::default(), CovarianceType::Full))?
                    }
                    false => fit_start(block.view(), k, seed)?,
                };
                let of = |value: f64| algorithm(value, &CellSettings::default());
                let chosen =
                    best_value(tuned, &synth, rows, |value| OnlineFit::from_start(of(value), &start))?;
                (OnlineFit::from_start(of(chosen), &start)?, if is_blind { 1 } else { block.rows() })
            }
            _ => (OnlineFit::new(dim, FitSettings::obmm([k]).seed(seed))?, FIRST),
        };
        let mut training = synth.training();
        let mut points = Vec::new();
        for target in spaced(first, rows as usize) {
            read_rows(&mut training, target as u64 - fit.rows(), &mut block);
            fit.observe(block.view())?;
            if fit.has_started() || target as u64 == rows {
                points.push((fit.rows(), fit.mixture()?.mean_log_density(test.view())));
            }
        }
        fit.finish(&AtomicBool::new(false))?;
        let (data, level, revisions) = (data.clone(), level.clone(), changing_revisions(&fit));
        Ok(CurveRecord { data, contender, k, points, start_rows: None, level, revisions })
    };
    LEARNERS.into_iter().map(curve).collect()
}

/// The value of a learner's parameter with the best prequential score of the second half of the rows.
fn best_value(
    values: &[f64],
    synth: &Synth,
    rows: u64,
    begin: impl Fn(f64) -> Result<OnlineFit, LearnError>,
) -> Result<f64, LearnError> {
    let mut best = (f64::NEG_INFINITY, values.first().copied().unwrap_or_default());
    for &value in values.iter().filter(|_| values.len() > 1) {
        let mut training = synth.training();
        let mut block = Block::new(synth.truth().dim());
        let mut fit = begin(value)?;
        for count in [rows / 2, rows - rows / 2] {
            fit.restart_scores();
            read_rows(&mut training, count, &mut block);
            fit.observe(block.view())?;
        }
        let score = fit.scores()[0].1.mean().unwrap_or(f64::NEG_INFINITY);
        if score > best.0 {
            best = (score, value);
        }
    }
    Ok(best.1)
}

/// Reads the next `count` rows.
fn read_rows(source: &mut impl RowSource, count: u64, rows: &mut Block) {
    rows.clear();
    let mut block = Block::new(rows.columns());
    while (rows.rows() as u64) < count {
        let most = count as usize - rows.rows();
        if !source.read_block(&mut block, most).expect("a synthetic source cannot fail") {
            break;
        }
        block.iter().for_each(|row| rows.push(row));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curve_climbs_towards_the_truth() {
        let curves = figure1_curves(1, 6000, 2000, 1).unwrap();
        assert_eq!(curves.len(), LEARNERS.len());
        for curve in &curves {
            let (first, last) = (curve.points[0].0, *curve.points.last().unwrap());
            assert_eq!((first == 1, last.0), (curve.contender.is_blind(), 6000));
            assert!(curve.points.windows(2).all(|pair| pair[0].0 < pair[1].0));
            let (_, level) = curve.level.clone().unwrap();
            assert!((last.1 - level).abs() < 0.02, "{:?}: {} against {level}", curve.contender, last.1);
        }
    }
}
