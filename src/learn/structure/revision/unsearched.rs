//! Revisions without a search, where a look says that none gains anything.

use super::unmoved::unmoved;
use super::{Reviser, Revision, Task, search_rows};
use crate::dist::GaussianMixture;
use crate::learn::structure::Size;
use crate::learn::structure::directions::searched_columns;
use crate::learn::structure::em::Price;
use crate::learn::structure::look::{all_fit, has_affordable_merge};
use crate::linalg::CovarianceType;

/// With fewer learned rows, a search costs little, and is always made.
const MIN_LOOKED: u64 = 20_000;

impl Reviser<'_> {
    /// Whether the rows of each component have its shape, and no merge is affordable, so that no search is worth its time. The
    /// last search of a stream is always made: it finds clusters that are too close for a look.
    pub(super) fn nothing_gains(&self, current: &GaussianMixture, task: Task) -> bool {
        let rows = &self.rows.blocks;
        let plain = self.forgetting.is_none() && self.learned_weight.is_none() && !rows.has_gaps();
        // With many columns, a search takes longer than a look on any number of rows.
        let looks = self.learned >= MIN_LOOKED || searched_columns(rows) < rows.dim();
        if self.how.closing || task.alert || !plain || !looks || self.how.kind != CovarianceType::Full {
            return false;
        }
        let merges = match task.size {
            Size::Given(_) => false,
            Size::Learned { .. } => match task.size.price(rows, self.how.kind) {
                Price::Component(price) => has_affordable_merge(rows, current, price),
                Price::Evidence => true,
            },
        };
        !merges && all_fit(rows, current, self.how.seed)
    }

    /// The revision of a mixture whose components all fit: a little EM on all rows, if the task asks for it.
    pub(super) fn unsearched(&self, current: &GaussianMixture, task: Task) -> Revision {
        if !task.adjusts {
            return Revision { revised: None, moves: Vec::new() };
        }
        let rows = &self.rows.blocks;
        let fit = self.polish(rows, current, task.size, 2, None);
        let wanted = search_rows(task.size, self.how.kind, current.k(), current.dim());
        let some = rows.thinned((rows.rows() / wanted).max(1));
        let origins: Vec<Option<usize>> = (0..current.k()).map(Some).collect();
        let kept = if self.complete {
            vec![None; current.k()]
        } else {
            unmoved(&some, (current, &fit.mixture), &origins, (None, self.how.kind))
        };
        let changed = kept.iter().any(|kept| kept.is_none());
        let revised = || self.revised(rows, &fit.mixture, fit.strength, kept, None);
        Revision { revised: changed.then(revised), moves: Vec::new() }
    }
}
