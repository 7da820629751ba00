//! The paper's Figure 1: learning curves of oBMM on synthetic sets whose true mixture is known.

use std::sync::atomic::AtomicBool;

use super::contender::{Contender, Structure, Way};
use super::curve::spaced;
use super::record::{CellSettings, CurveRecord};
use super::revising::changing_revisions;
use crate::data::synth::{Synth, SynthError, SynthSpec};
use crate::data::{Block, RowSource};
use crate::learn::{BlindPrior, FitSettings, LearnError, OnlineFit, blind_start, blind_start_rows};

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

/// The learners of the figure: oBMM at its best, and oEM and oBMM as the paper may have started them.
const LEARNERS: [Contender; 3] = [Contender::ObmmRevised, Contender::ObmmBlind, Contender::OemBlind];

/// The step-size exponent of oEM with a blind start, in the middle of its range.
const ALPHA: f64 = 0.8;

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
        let mut fit = match contender.profile().way {
            Way::Online { algorithm, structure: Structure::Blind, .. } => {
                read_rows(&mut synth.training(), blind_start_rows(dim) as u64, &mut block);
                let start = blind_start(block.view(), k, seed, BlindPrior::default())?;
                OnlineFit::from_start(algorithm(ALPHA, &CellSettings::default()), &start)?
            }
            _ => OnlineFit::new(dim, FitSettings::obmm([k]).seed(seed))?,
        };
        let mut training = synth.training();
        let mut points = Vec::new();
        let first = if contender.is_blind() { 1 } else { FIRST };
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
        assert_eq!(curves.len(), 3);
        for curve in &curves {
            assert_eq!(
                (curve.points[0].0 == 1, curve.points.last().unwrap().0),
                (curve.contender.is_blind(), 6000)
            );
        }
        let curve = &curves[0];
        let (_, level) = curve.level.clone().unwrap();
        let (_, last) = *curve.points.last().unwrap();
        assert!(last > level - 0.02 && last < level + 0.02, "{last} against {level}");
        assert!(curve.points.windows(2).all(|pair| pair[0].0 < pair[1].0));
    }
}
