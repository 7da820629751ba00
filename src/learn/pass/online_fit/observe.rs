//! Learning rows as they arrive.

use std::sync::atomic::AtomicBool;

use ndarray::ArrayView2;

use super::{OnlineFit, Progress, Stage, check_weights};
use crate::learn::{LearnError, Rows};
use crate::stats::ColumnSummary;

impl OnlineFit {
    /// Learns a batch of rows, and revises the structure where that is due.
    ///
    /// # Errors
    /// If a row does not have [`OnlineFit::dim`] columns or has a number that is not finite. Then no row of the batch is
    /// learned. With [`FitSettings::gaps`](crate::learn::FitSettings::gaps), NaN is a missing value; a row without any value is counted and ignored.
    pub fn observe(&mut self, rows: ArrayView2<f64>) -> Result<(), LearnError> {
        self.observe_weighted(rows, None)
    }

    /// [`OnlineFit::observe`] of rows with weights, one for each. A row of weight `w` counts as `w` rows; one of weight 0 is
    /// ignored.
    ///
    /// ```
    /// use gmm_bmm::{FitSettings, OnlineFit};
    /// use ndarray::array;
    /// let mut pass = OnlineFit::new(1, FitSettings::obmm(1))?;
    /// pass.observe_weighted(array![[0.0], [1.0], [50.0]].view(), Some(&[1.0, 3.0, 0.0]))?;
    /// assert!((pass.mixture()?.means()[(0, 0)] - 0.75).abs() < 1e-9);
    /// # Ok::<(), gmm_bmm::LearnError>(())
    /// ```
    ///
    /// # Errors
    /// Also [`LearnError::Weight`] if a weight is negative, above 10¹⁰ or not a number, and [`LearnError::WeightCount`] if there
    /// are fewer or more weights than rows. Then no row is learned.
    pub fn observe_weighted(
        &mut self,
        rows: ArrayView2<f64>,
        weights: Option<&[f64]>,
    ) -> Result<(), LearnError> {
        let never = AtomicBool::new(false);
        let mut from = 0;
        loop {
            let left = weights.map(|weights| weights.get(from..).unwrap_or_default());
            match self.advance_weighted(rows.slice(ndarray::s![from.., ..]), left)? {
                Progress::RevisionDue => drop(self.revise(&never)?),
                Progress::Learned(taken) => from += taken,
            }
            if from == rows.nrows() && self.revision_due().is_none() {
                return Ok(());
            }
        }
    }

    /// Learns rows until a revision is due, or until a row without any value. For programs that show progress or save
    /// checkpoints between revisions; others call [`OnlineFit::observe`], which has the same errors.
    ///
    /// ```
    /// use gmm_bmm::{FitSettings, OnlineFit, Progress};
    /// use ndarray::{Array2, s};
    /// # use std::sync::atomic::AtomicBool;
    ///
    /// let rows = Array2::from_shape_fn((900, 1), |(i, _)| ((i % 3) * 20 + (i * 7) % 11) as f64);
    /// let mut pass = OnlineFit::new(["x"], FitSettings::obmm(3).start_rows(300))?;
    /// let (stop, mut from) = (AtomicBool::new(false), 0);
    /// while from < rows.nrows() {
    ///     match pass.advance(rows.slice(s![from.., ..]))? {
    ///         Progress::Learned(taken) => from += taken,
    ///         Progress::RevisionDue => assert!(pass.revise(&stop)?),
    ///     }
    /// }
    /// assert_eq!(pass.rows(), 900);
    /// # Ok::<(), gmm_bmm::LearnError>(())
    /// ```
    pub fn advance(&mut self, rows: ArrayView2<f64>) -> Result<Progress, LearnError> {
        self.advance_weighted(rows, None)
    }

    /// [`OnlineFit::advance`] of rows with weights, as [`OnlineFit::observe_weighted`] takes them. It also stops at a row of weight
    /// 0.
    pub fn advance_weighted(
        &mut self,
        rows: ArrayView2<f64>,
        weights: Option<&[f64]>,
    ) -> Result<Progress, LearnError> {
        if rows.ncols() != self.dim() {
            return Err(LearnError::Columns { found: rows.ncols(), expected: self.dim() });
        }
        let dim = self.dim();
        let rows = rows.as_standard_layout();
        let values = rows.as_slice().expect("standard layout is contiguous");
        let mut rows = rows.nrows();
        check_weights(weights, rows, self.rows + self.empty_rows)?;
        // Without an early exit the compiler vectorises the loop.
        let is_complete = values.iter().fold(true, |all, value| all & value.is_finite());
        if !is_complete {
            let is_accepted = |value: &f64| value.is_finite() || self.settings.gaps && value.is_nan();
            if let Some(at) = values.iter().position(|value| !is_accepted(value)) {
                let row = self.rows + self.empty_rows + (at / dim) as u64 + 1;
                return Err(LearnError::NotFinite { row, column: at % dim });
            }
            let is_empty = |row: &[f64]| row.iter().all(|value| value.is_nan());
            let empty = values.chunks_exact(dim).take_while(|row| is_empty(row)).count();
            if empty > 0 {
                self.empty_rows += empty as u64;
                return Ok(Progress::Learned(empty));
            }
            // The rest is for the next call.
            rows = values.chunks_exact(dim).position(is_empty).unwrap_or(rows);
        }
        if let Some(weights) = weights {
            let absent = weights[..rows].iter().take_while(|weight| **weight == 0.0).count();
            if absent > 0 {
                self.empty_rows += absent as u64;
                return Ok(Progress::Learned(absent));
            }
            rows = weights[..rows].iter().position(|weight| *weight == 0.0).unwrap_or(rows);
        }
        if self.revision_due().is_some() {
            return Ok(Progress::RevisionDue);
        }
        let mut taken = 0;
        while taken < rows && self.revision_due().is_none() {
            let most = self.rows_until_due().min((rows - taken) as u64) as usize;
            let next = Rows::new(&values[taken * dim..(taken + most) * dim], dim);
            let weights = weights.map(|weights| &weights[taken..taken + most]);
            self.take(next.checked(is_complete).with_weights(weights));
            taken += most;
        }
        Ok(Progress::Learned(taken))
    }

    /// Sets whether values may be missing from now on, as [`FitSettings::gaps`](crate::learn::FitSettings::gaps) does.
    pub fn allow_gaps(&mut self, gaps: bool) {
        self.settings.gaps = gaps;
    }

    /// Rows without any value or without weight, which were ignored.
    pub fn empty_rows(&self) -> u64 {
        self.empty_rows
    }

    /// Notes in the settings that rows have weights, if one has another than 1.
    fn note_weights(&mut self, weights: &[f64]) {
        self.weights = weights.iter().fold(self.weights, |sums, weight| sums.with(*weight));
        if weights.iter().any(|weight| *weight != 1.0) {
            let weights = self.settings.weights.get_or_insert_default();
            if self.weight_column.is_some() {
                weights.column.clone_from(&self.weight_column);
            }
        }
    }

    /// Sets the name of the column that the weights of the next rows come from. The model remembers it.
    pub fn set_weight_column(&mut self, column: Option<String>) {
        self.weight_column = column;
    }

    /// Takes rows of which none but the last makes a revision due.
    pub(super) fn take(&mut self, rows: Rows) {
        self.finished_pass = None;
        let (values, dim) = (rows.values(), self.dim());
        // Columns with gaps, now or before the pass was resumed, have different counts.
        let gapped =
            self.settings.gaps || self.summaries.windows(2).any(|pair| pair[0].count != pair[1].count);
        let push = if gapped { ColumnSummary::push_gapped_row } else { ColumnSummary::push_row };
        values.chunks_exact(dim).for_each(|row| push(&mut self.summaries, row));
        let before = self.rows;
        self.places.note(before, self.empty_rows);
        self.note_weights(rows.weights().unwrap_or_default());
        self.recognition.observe(before, values.chunks_exact(dim));
        self.seen.observe(before, values.chunks_exact(dim));
        self.rows += (values.len() / dim) as u64;
        let noise = self.settings.dequantize.noise(self.settings.seed);
        match &mut self.stage {
            Stage::Buffering(buffer) => buffer.extend(rows),
            Stage::Learning(learning) => match noise {
                Some(noise) => {
                    self.noisy.clear();
                    self.noisy.extend_from_slice(values);
                    noise.add_to(&mut self.noisy, dim, before);
                    let noisy = Rows::new(&self.noisy, dim).checked(!rows.have_gaps());
                    learning.take(noisy.with_weights(rows.weights()), before, &self.places);
                }
                None => learning.take(rows, before, &self.places),
            },
        }
    }

    /// Rows until a revision can be due, at least one.
    pub(super) fn rows_until_due(&self) -> u64 {
        let dim = self.dim();
        let until = match &self.stage {
            Stage::Buffering(buffer) => {
                self.settings.buffered_rows(dim).saturating_sub(buffer.rows(dim).count()) as u64
            }
            Stage::Learning(learning) => {
                let due = learning.candidates.iter().map(|c| c.schedule().rows_until_due(self.rows));
                due.min().unwrap_or(u64::MAX).min(learning.rows_until_watched(self.rows))
            }
        };
        until.max(1)
    }
}
