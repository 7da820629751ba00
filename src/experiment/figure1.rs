//! The paper's Figure 1: learning curves of oBMM on synthetic sets whose true mixture is known.

use std::sync::atomic::AtomicBool;

use super::contender::Contender;
use super::curve::spaced;
use super::record::CurveRecord;
use super::revising::changing_revisions;
use crate::data::synth::{Synth, SynthError, SynthSpec};
use crate::data::{Block, RowSource};
use crate::learn::{FitSettings, LearnError, OnlineFit};

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

/// The learning curve on one of the nine sets, with `rows` training rows. Its level is the true model's score of
/// `test_rows` test rows.
pub fn figure1_curve(set: usize, rows: u64, test_rows: u64, seed: u64) -> Result<CurveRecord, Figure1Error> {
    let mut spec = SynthSpec { rows, ..SynthSpec::paper(set)? };
    spec.seed = spec.seed.wrapping_add(seed.wrapping_sub(1));
    let (k, dim) = (spec.k, spec.dim);
    let synth = Synth::new(spec)?;
    let mut test = Block::new(dim);
    read_rows(&mut synth.test(test_rows), test_rows, &mut test);
    let mut fit = OnlineFit::new(dim, FitSettings::obmm([k]).seed(seed))?;
    let mut training = synth.training();
    let mut block = Block::new(dim);
    let mut points = Vec::new();
    for target in spaced(FIRST, rows as usize) {
        read_rows(&mut training, target as u64 - fit.rows(), &mut block);
        fit.observe(block.view())?;
        if fit.has_started() || target as u64 == rows {
            points.push((fit.rows(), fit.mixture()?.score(test.view())));
        }
    }
    let level = Some(("true model".to_string(), synth.truth().score(test.view())));
    let data = format!("set {set}: d = {dim}");
    fit.finish(&AtomicBool::new(false))?;
    let revisions = changing_revisions(&fit);
    let contender = Contender::ObmmRevised;
    Ok(CurveRecord { data, contender, k, points, start_rows: None, level, revisions })
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
        let curve = figure1_curve(1, 6000, 2000, 1).unwrap();
        let (_, level) = curve.level.unwrap();
        let (rows, last) = *curve.points.last().unwrap();
        assert_eq!(rows, 6000);
        assert!(last > level - 0.02 && last < level + 0.02, "{last} against {level}");
        assert!(curve.points.windows(2).all(|pair| pair[0].0 < pair[1].0));
    }
}
