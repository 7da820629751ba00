//! Reservoirs of several passes as one.

use std::sync::Arc;

use super::KeptRows;
use crate::learn::structure::fading::OwnWeights;
use crate::linalg::Table;

impl KeptRows {
    /// Merges the reservoirs of several passes into one of `most` rows. Each contributes rows in proportion to the rows that it
    /// learned, so one that kept a smaller share of its rows than the others limits them all.
    pub(crate) fn merged(parts: &[&KeptRows], dim: usize, most: usize) -> Option<Self> {
        let first = parts.first()?;
        let total: u64 = parts.iter().map(|part| part.learned).fold(0, u64::saturating_add);
        let share = |part: &&KeptRows| {
            let held = part.held(dim);
            (held > 0).then(|| held as f64 / part.learned as f64)
        };
        let least = parts.iter().filter_map(share).fold(1.0, f64::min);
        let fraction = (most as f64 / total.max(1) as f64).min(least);
        let mut merged = KeptRows::new(first.seed, most, false);
        merged.learned = total;
        let weighted = parts.iter().any(|part| part.has_own_weights());
        merged.unknown = parts.iter().map(|part| part.unknown).fold(0, u64::saturating_add);
        let rows = Arc::make_mut(&mut merged.reservoir);
        for part in parts {
            part.copy_evenly(part.wanted(fraction, dim), dim, rows);
        }
        rows.truncate(most, dim);
        if weighted {
            let mut own = OwnWeights::ones(0, 0, 0);
            own.learned = parts.iter().map(|part| part.learned_weight()).sum();
            for part in parts {
                part.copy_weights_evenly(
                    part.wanted(fraction, dim),
                    dim,
                    Arc::make_mut(&mut own.of_reservoir),
                );
            }
            Arc::make_mut(&mut own.of_reservoir).truncate(most);
            merged.own_weights = Some(own);
        }
        Some(merged.limited_to_held(dim))
    }

    /// Lowers the capacity to the rows held if they are not all rows learned, so that a reservoir that is not full is complete.
    fn limited_to_held(mut self, dim: usize) -> Self {
        let held = self.held(dim);
        if (held as u64) < self.learned {
            self.most = held;
        }
        self
    }

    /// How many rows of the reservoir are this fraction of the rows learned.
    fn wanted(&self, fraction: f64, dim: usize) -> usize {
        ((fraction * self.learned as f64).round() as usize).min(self.held(dim))
    }

    /// [`KeptRows::copy_evenly`] of the rows' own weights.
    fn copy_weights_evenly(&self, wanted: usize, dim: usize, to: &mut Vec<f64>) {
        let (held, own) = (self.held(dim), self.own_weights_of_reservoir());
        to.extend((0..wanted).map(|i| own.map_or(1.0, |own| own[i * held / wanted])));
    }

    /// Appends `wanted` rows of the reservoir to `to`, at equal distances: before a reservoir is full, its rows are in the order
    /// of the stream.
    fn copy_evenly(&self, wanted: usize, dim: usize, to: &mut Table) {
        let (held, mut row) = (self.held(dim), Vec::with_capacity(dim));
        (0..wanted).map(|i| i * held / wanted).for_each(|i| {
            row.clear();
            self.reservoir.copy_row(i, dim, &mut row);
            to.push(&row);
        });
    }

    /// Adds rows of `sample`, a sample of the same stream, up to `most` rows. The reservoir stays a part of the rows learned.
    pub(crate) fn filled_from(mut self, sample: &KeptRows, dim: usize, most: usize) -> Self {
        let held = self.held(dim);
        let wanted = most.min(self.learned.saturating_sub(1) as usize).saturating_sub(held);
        let wanted = wanted.min(sample.held(dim));
        if self.has_own_weights() || sample.has_own_weights() {
            let learned = self.learned;
            let own = self.own_weights.get_or_insert_with(|| OwnWeights::ones(learned, held, 0));
            sample.copy_weights_evenly(wanted, dim, Arc::make_mut(&mut own.of_reservoir));
        }
        sample.copy_evenly(wanted, dim, Arc::make_mut(&mut self.reservoir));
        self.most = self.most.max(held + wanted);
        self
    }
}
