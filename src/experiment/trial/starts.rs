//! The starts that learners of one trial share.

use super::{Trial, timed::timed};
use crate::experiment::contender::Structure;
use crate::learn::{LearnError, Start, blind_start, blind_start_rows, default_start_rows, fit_start};
use crate::linalg::CovarianceType;

/// The starts of all online learners without revisions.
#[derive(Clone)]
pub(super) struct Starts {
    /// From the training rows without the validation rows.
    pub fitting: Start,
    /// From all training rows.
    pub all: Start,
    /// From rows of the first half, so that every row of the second half can be scored before it is learned.
    pub half: Start,
    /// Seconds that `all` took.
    pub seconds: f64,
}

impl Trial<'_> {
    /// The starts of the learners without revisions, made when they are first needed.
    pub(super) fn starts(&mut self, structure: Structure) -> Result<&Starts, LearnError> {
        let is_blind = structure == Structure::Blind;
        let place = usize::from(is_blind);
        if self.starts[place].is_none() {
            self.starts[place] = Some(self.make_starts(is_blind)?);
        }
        Ok(self.starts[place].as_ref().expect("made above"))
    }

    fn make_starts(&self, is_blind: bool) -> Result<Starts, LearnError> {
        let train = self.split.training();
        let wanted = match is_blind {
            true => blind_start_rows(train.rows.ncols()),
            false => default_start_rows(self.k, train.rows.ncols()),
        };
        let supposed = self.plan.settings.blind_prior;
        let fit = |most: usize| {
            let rows = train.part(0..most.min(wanted));
            match is_blind {
                true => blind_start(rows, self.k, self.seed, (supposed, CovarianceType::Full)),
                false => fit_start(rows, self.k, self.seed),
            }
        };
        let (all, seconds) = timed(self.plan.repeat, || fit(train.rows.nrows()))?;
        // If there are enough rows for each start, they are all the same.
        let other = |most: usize| if wanted <= most { Ok(all.clone()) } else { fit(most) };
        let (fitting, half) = (other(self.split.fitting_rows)?, other(self.half())?);
        Ok(Starts { fitting, all, half, seconds })
    }
}
