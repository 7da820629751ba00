//! The frame in which rows are compared with earlier rows, and the statistics of rows in it.
//!
//! A frame has the clusters of a mixture, each with the mean and the spread of every column. It does not change while the mixture
//! is learned, so what is learned cannot hide or feign a change.

use serde::{Deserialize, Serialize};

use crate::dist::{Clusters, GaussianMixture};

/// Deviations beyond this many standard deviations count as this one, so single outliers have little effect.
const CLIP: f64 = 4.0;
/// The mean absolute deviation of a Gaussian, in standard deviations.
const MEAN_DEVIATION: f64 = 0.8;
/// The largest number of pairs of columns whose correlation is watched.
const MAX_PAIRS: usize = 66;
/// The share of rows of a cluster is watched if it is at least this at first.
const MIN_SHARE: f64 = 0.05;
/// Rows of a cluster that are needed to adjust it.
const MIN_ROWS: f64 = 20.0;
/// Deviations beyond this count as this one while a frame is adjusted.
const FARTHEST: f64 = 100.0;

/// What kind of change it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ChangeKind {
    /// The means of columns, in the whole data or within clusters.
    Level,
    /// How far values are from their mean.
    Spread,
    /// How two columns depend on each other.
    Correlation,
    /// How many rows belong to each cluster.
    Weights,
    /// Rows far from all earlier ones, beside rows like the earlier ones.
    NewComponent,
}

/// Which statistic it is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Statistic {
    pub kind: ChangeKind,
    /// Whether it is a share of the rows.
    pub is_share: bool,
    /// The usual variance of one row, if it is no share.
    pub variance: f64,
    /// The largest value of one row.
    pub most: f64,
}

/// See the module.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Frame {
    dim: usize,
    /// The number of clusters whose share is watched, the first ones.
    heavy: usize,
    /// For each cluster, the mean of each column and the inverse of its standard deviation.
    parts: Vec<f64>,
    /// For each of them, the logarithm of the squared volume.
    volumes: Vec<f64>,
    #[serde(skip)]
    row: CurrentRow,
}

/// The deviations of the current row, and whether it has gaps.
#[derive(Debug, Clone, Default)]
struct CurrentRow {
    deviations: Vec<f64>,
    gapped: bool,
}

/// The current row is no part of the state.
impl PartialEq for CurrentRow {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Frame {
    /// The frame of a mixture.
    pub fn of(mixture: &GaussianMixture) -> Self {
        let clusters = mixture.clusters(Clusters::OVERLAP);
        let members = |cluster: usize| clusters.members(cluster).collect::<Vec<usize>>();
        let groups: Vec<Vec<usize>> = (0..clusters.count()).map(members).collect();
        let heavy = clusters.weights().iter().filter(|&&weight| weight >= MIN_SHARE).count();
        let mut parts = Vec::new();
        for group in &groups {
            let (means, units) = moments(mixture, group);
            parts.extend(means);
            parts.extend(units);
        }
        let heavy = if groups.len() > 1 { heavy } else { 0 };
        let volumes = volumes(&parts, mixture.dim());
        Frame { dim: mixture.dim(), heavy, parts, volumes, row: CurrentRow::default() }
    }

    /// How many clusters.
    fn clusters(&self) -> usize {
        self.volumes.len()
    }

    fn pairs(&self) -> usize {
        (self.dim * (self.dim - 1) / 2).min(MAX_PAIRS)
    }

    /// The length of the sums: rows, near rows, levels, spreads, products, and the rows of heavy clusters.
    pub fn len(&self) -> usize {
        2 + 2 * self.dim + self.pairs() + self.heavy
    }

    /// Which statistic is at place `i` of the sums, from 1.
    pub fn statistic(&self, i: usize) -> Statistic {
        let share = |kind| Statistic { kind, is_share: true, variance: 0.0, most: 1.0 };
        if i == 1 {
            return share(ChangeKind::NewComponent);
        }
        let place = i - 2;
        if place >= 2 * self.dim + self.pairs() {
            return share(ChangeKind::Weights);
        }
        let (kind, variance) = match place / self.dim {
            0 => (ChangeKind::Level, 1.0),
            1 => (ChangeKind::Spread, 1.0 - MEAN_DEVIATION * MEAN_DEVIATION),
            _ => (ChangeKind::Correlation, 1.0),
        };
        Statistic { kind, is_share: false, variance, most: CLIP }
    }

    /// The mean of each statistic.
    pub fn means(sums: &[f64]) -> impl Iterator<Item = f64> {
        let (rows, near) = (sums[0].max(1.0), sums[1]);
        let far = 1.0 - near / rows;
        [0.0, far].into_iter().chain(sums[2..].iter().map(move |sum| sum / near.max(1.0)))
    }

    /// Sets the deviations of a row from a part, and returns the sum of their squares. A missing value deviates by nothing.
    #[inline(always)]
    fn deviate<const D: usize>(&mut self, row: &[f64], part: usize) -> f64 {
        let dim = self.columns::<D>();
        let (means, units) = self.parts[2 * dim * part..][..2 * dim].split_at(dim);
        let deviations = &mut self.row.deviations[..dim];
        let mut square = 0.0;
        for (((to, x), mean), unit) in deviations.iter_mut().zip(&row[..dim]).zip(means).zip(units) {
            *to = (x - mean) * unit;
            square += *to * *to;
        }
        self.row.gapped = square.is_nan();
        if self.row.gapped {
            deviations.iter_mut().filter(|deviation| deviation.is_nan()).for_each(|gap| *gap = 0.0);
            square = deviations.iter().map(|deviation| *deviation * *deviation).sum();
        }
        square
    }

    /// The squared distance of a row without gaps from a part.
    #[inline(always)]
    fn square<const D: usize>(&self, row: &[f64], part: usize) -> f64 {
        let dim = self.columns::<D>();
        let (means, units) = self.parts[2 * dim * part..][..2 * dim].split_at(dim);
        let mut square = 0.0;
        for ((x, mean), unit) in row[..dim].iter().zip(means).zip(units) {
            let deviation = (x - mean) * unit;
            square += deviation * deviation;
        }
        square
    }

    /// The cluster that a row is nearest to, and its squared distance. Sets the deviations from it.
    #[inline(always)]
    fn assign<const D: usize>(&mut self, row: &[f64], most: f64) -> (usize, f64) {
        let mut nearest = (0, self.deviate::<D>(row, 0));
        let mut best = nearest.1 + self.volumes[0];
        for cluster in 1..self.clusters() {
            let square = match self.row.gapped {
                true => self.deviate::<0>(row, cluster),
                false => self.square::<D>(row, cluster),
            };
            let loss = square + self.volumes[cluster];
            if loss < best {
                (best, nearest) = (loss, (cluster, square));
            }
        }
        if nearest.0 > 0 || self.row.gapped {
            self.deviate::<D>(row, nearest.0);
        }
        // A small sum has no large term.
        if nearest.1 > most * most {
            self.row.deviations.iter_mut().for_each(|deviation| *deviation = deviation.clamp(-most, most));
        }
        nearest
    }

    /// The number of columns, which the compiler knows if `D` is not 0.
    #[inline(always)]
    fn columns<const D: usize>(&self) -> usize {
        if D > 0 { D } else { self.dim }
    }

    /// Adds rows to the sums, each with the number of rows that it counts as.
    pub fn add<'a>(&mut self, rows: impl Iterator<Item = (&'a [f64], f64)>, sums: &mut [f64]) {
        // Loops of a known length are several times as fast where they are short.
        match self.dim {
            1 => self.add_sized::<1>(rows, sums),
            2 => self.add_sized::<2>(rows, sums),
            3 => self.add_sized::<3>(rows, sums),
            4 => self.add_sized::<4>(rows, sums),
            5 => self.add_sized::<5>(rows, sums),
            6 => self.add_sized::<6>(rows, sums),
            7 => self.add_sized::<7>(rows, sums),
            8 => self.add_sized::<8>(rows, sums),
            9 => self.add_sized::<9>(rows, sums),
            10 => self.add_sized::<10>(rows, sums),
            _ => self.add_sized::<0>(rows, sums),
        }
    }

    /// [`Frame::add`] of rows with `D` columns, or any number if it is 0.
    #[inline(always)]
    fn add_sized<'a, const D: usize>(
        &mut self,
        rows: impl Iterator<Item = (&'a [f64], f64)>,
        sums: &mut [f64],
    ) {
        self.row.deviations.resize(self.dim, 0.0);
        rows.for_each(|(row, weight)| self.add_row::<D>(row, weight, sums));
    }

    #[inline(always)]
    fn add_row<const D: usize>(&mut self, row: &[f64], weight: f64, sums: &mut [f64]) {
        let dim = self.columns::<D>();
        let far = dim as f64 + 6.0 * (2.0 * dim as f64).sqrt() + 10.0;
        let (cluster, square) = self.assign::<D>(row, CLIP);
        sums[0] += weight;
        // Not a number is far, too.
        if !(square < far) {
            return;
        }
        sums[1] += weight;
        let deviations = &self.row.deviations[..dim];
        let (levels, rest) = sums[2..].split_at_mut(dim);
        let (spreads, rest) = rest.split_at_mut(dim);
        let (mut products, shares) = rest.split_at_mut((dim * (dim - 1) / 2).min(MAX_PAIRS));
        for ((level, spread), deviation) in levels.iter_mut().zip(&mut *spreads).zip(deviations) {
            *level += weight * deviation;
            *spread += weight * deviation.abs();
        }
        if self.row.gapped {
            let gaps = spreads.iter_mut().zip(row).filter(|(_, x)| x.is_nan());
            gaps.for_each(|(spread, _)| *spread += weight * MEAN_DEVIATION);
        }
        // Neighbours first, where there are more pairs than are watched.
        for gap in 1..dim {
            let count = (dim - gap).min(products.len());
            let (now, others) = products.split_at_mut(count);
            for ((sum, a), b) in now.iter_mut().zip(deviations).zip(&deviations[gap..]) {
                *sum += weight * (a * b);
            }
            products = others;
        }
        if let Some(rows) = shares.get_mut(cluster) {
            *rows += weight;
        }
    }

    /// The length of the sums of [`Frame::add_to_adjust`].
    pub fn adjusting_len(&self) -> usize {
        self.parts.len() / (2 * self.dim) * (1 + 2 * self.dim)
    }

    /// The rows of the sums of [`Frame::add_to_adjust`].
    pub fn adjusting_rows(&self, sums: &[f64]) -> f64 {
        sums.iter().step_by(1 + 2 * self.dim).sum()
    }

    /// Adds a row to sums that adjust the frame, which counts as `weight` rows.
    pub fn add_to_adjust(&mut self, row: &[f64], weight: f64, sums: &mut [f64]) {
        self.row.deviations.resize(self.dim, 0.0);
        let (cluster, _) = self.assign::<0>(row, FARTHEST);
        let size = 1 + 2 * self.dim;
        let sums = &mut sums[size * cluster..size * (cluster + 1)];
        sums[0] += weight;
        for (i, &deviation) in self.row.deviations.iter().enumerate() {
            sums[1 + i] += weight * deviation;
            let spread = if row[i].is_nan() { MEAN_DEVIATION } else { deviation.abs() };
            sums[1 + self.dim + i] += weight * spread;
        }
    }

    /// Moves the frame to the rows of these sums. Done twice, means and then spreads are right.
    pub fn adjust(&mut self, sums: &[f64]) {
        let dim = self.dim;
        for (part, sums) in self.parts.chunks_exact_mut(2 * dim).zip(sums.chunks_exact(1 + 2 * dim)) {
            let rows = sums[0];
            if rows < MIN_ROWS {
                continue;
            }
            let (means, units) = part.split_at_mut(dim);
            for i in 0..dim {
                means[i] += sums[1 + i] / rows / units[i];
                let factor = sums[1 + dim + i] / (rows * MEAN_DEVIATION);
                // A column that is constant for a while keeps a spread.
                units[i] /= factor.max(1e-6);
            }
        }
        self.volumes = volumes(&self.parts, dim);
    }

    /// Whether it is one of rows with `dim` columns.
    pub fn is_sound(&self, dim: usize) -> bool {
        let whole = dim > 0 && !self.parts.is_empty() && self.parts.len().is_multiple_of(2 * dim);
        whole
            && self.dim == dim
            && self.heavy <= self.clusters()
            && self.volumes.len() == self.parts.len() / (2 * dim)
            && self.parts.chunks(dim).skip(1).step_by(2).flatten().all(|&unit| unit > 0.0)
            && self.parts.iter().chain(&self.volumes).all(|value| value.is_finite())
    }
}

/// The logarithm of the squared volume of each part.
fn volumes(parts: &[f64], dim: usize) -> Vec<f64> {
    let volume = |part: &[f64]| part[dim..].iter().map(|unit| -2.0 * unit.ln()).sum();
    parts.chunks_exact(2 * dim).map(volume).collect()
}

/// The mean of each column and the inverse of its standard deviation in a group of components.
fn moments(mixture: &GaussianMixture, group: &[usize]) -> (Vec<f64>, Vec<f64>) {
    let dim = mixture.dim();
    let total: f64 = group.iter().map(|&j| mixture.weights()[j]).sum();
    let (mut means, mut squares) = (vec![0.0; dim], vec![0.0; dim]);
    for &j in group {
        let share = mixture.weights()[j] / total.max(f64::MIN_POSITIVE);
        let component = &mixture.components()[j];
        for (mean, own) in means.iter_mut().zip(component.mean()) {
            *mean += share * own;
        }
    }
    for &j in group {
        let share = mixture.weights()[j] / total.max(f64::MIN_POSITIVE);
        let component = &mixture.components()[j];
        let variances = component.covariance().diagonal();
        for (i, square) in squares.iter_mut().enumerate() {
            *square += share * (variances[i] + (component.mean()[i] - means[i]).powi(2));
        }
    }
    // The smallest normal number has no finite inverse square.
    let unit = |square: f64| 1.0 / square.sqrt().max(1e-150);
    (means, squares.into_iter().map(unit).collect())
}
