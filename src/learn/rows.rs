//! Consecutive rows in memory, and their weights.

use crate::linalg::has_gaps;

/// Consecutive rows, one after the other, and their weights if they have any. A row of weight `w` counts as `w` rows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rows<'a> {
    values: &'a [f64],
    dim: usize,
    weights: Option<&'a [f64]>,
    /// Whether a check has found that no value is missing.
    is_complete: bool,
}

impl<'a> Rows<'a> {
    /// Rows of `dim` numbers.
    pub fn new(values: &'a [f64], dim: usize) -> Self {
        Rows { values, dim, weights: None, is_complete: false }
    }

    /// The same rows with the result of a check, so that they are not checked again.
    pub(in crate::learn) fn checked(self, is_complete: bool) -> Self {
        Rows { is_complete, ..self }
    }

    /// Whether a value is missing.
    pub(in crate::learn) fn have_gaps(&self) -> bool {
        !self.is_complete && has_gaps(self.values)
    }

    /// The same rows with these weights, one for each.
    pub fn with_weights(self, weights: Option<&'a [f64]>) -> Self {
        debug_assert!(weights.is_none_or(|weights| weights.len() == self.count()));
        Rows { weights, ..self }
    }

    /// The numbers of all rows.
    pub fn values(&self) -> &'a [f64] {
        self.values
    }

    /// The weights, if they have any.
    pub fn weights(&self) -> Option<&'a [f64]> {
        self.weights
    }

    /// The number of columns.
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// How many rows.
    pub fn count(&self) -> usize {
        self.values.len() / self.dim
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// The first `rows` rows, or all if there are fewer, and the others.
    pub fn split_at(self, rows: usize) -> (Rows<'a>, Rows<'a>) {
        let rows = rows.min(self.count());
        let (values, other_values) = self.values.split_at(rows * self.dim);
        let (weights, other_weights) = self.weights.map(|weights| weights.split_at(rows)).unzip();
        let part = |values, weights| Rows { values, weights, ..self };
        (part(values, weights), part(other_values, other_weights))
    }

    /// The rows from `from` to before `to`.
    pub fn slice(self, from: usize, to: usize) -> Rows<'a> {
        self.split_at(to).0.split_at(from).1
    }

    /// Parts of at most `rows` rows.
    pub fn chunks(self, rows: usize) -> impl Iterator<Item = Rows<'a>> {
        (0..self.count()).step_by(rows).map(move |from| self.slice(from, from + rows))
    }

    /// Each row with its weight.
    pub fn iter(self) -> impl Iterator<Item = (&'a [f64], f64)> {
        let weight = move |i: usize| self.weights.map_or(1.0, |weights| weights[i]);
        self.values.chunks_exact(self.dim).enumerate().map(move |(i, row)| (row, weight(i)))
    }
}

/// Rows that are collected. It has weights once a row has one that is not 1.
#[derive(Debug, Clone, Default, PartialEq)]
pub(in crate::learn) struct RowBuffer {
    values: Vec<f64>,
    /// Empty without weights.
    weights: Vec<f64>,
}

impl RowBuffer {
    /// From saved rows and weights.
    pub fn new(values: Vec<f64>, weights: Option<Vec<f64>>) -> Self {
        RowBuffer { values, weights: weights.unwrap_or_default() }
    }

    pub fn rows(&self, dim: usize) -> Rows<'_> {
        Rows::new(&self.values, dim).with_weights(self.weights())
    }

    pub fn weights(&self) -> Option<&[f64]> {
        Some(self.weights.as_slice()).filter(|weights| !weights.is_empty())
    }

    pub fn into_values(self) -> Vec<f64> {
        self.values
    }

    pub fn clear(&mut self) {
        self.values.clear();
        self.weights.clear();
    }

    pub fn push(&mut self, row: &[f64], weight: f64) {
        self.extend(Rows::new(row, row.len()).with_weights(Some(&[weight])));
    }

    pub fn extend(&mut self, rows: Rows) {
        let before = self.values.len() / rows.dim();
        self.values.extend_from_slice(rows.values());
        extend_weights(&mut self.weights, before, rows);
    }
}

/// Appends the weights of rows to those of `before` rows. `weights` is empty while all weights are 1.
pub(in crate::learn) fn extend_weights(weights: &mut Vec<f64>, before: usize, rows: Rows) {
    if weights.is_empty() {
        if rows.weights().is_none_or(|added| added.iter().all(|&weight| weight == 1.0)) {
            return;
        }
        weights.resize(before, 1.0);
    }
    match rows.weights() {
        Some(added) => weights.extend_from_slice(added),
        None => weights.resize(before + rows.count(), 1.0),
    }
}
