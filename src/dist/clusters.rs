//! Clusters: components of a mixture, united. A cluster that is not Gaussian takes several components.
//!
//! First, a component whose centre is assigned to another component is united with it, because it has no mode of its own. A
//! core and its wide tails thus form one cluster in any number of dimensions. Second, components are united by directly
//! estimated misclassification probabilities (DEMP; C. Hennig, *Methods for merging Gaussian mixture components*, 2010).
//! `p(a→b)` is the probability that a row drawn from cluster `a` is assigned to cluster `b`. It is estimated from rows that
//! are drawn from the components, so no data are needed.

use ndarray::{Array1, Array2, ArrayView1, ArrayView2};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

use super::axes::whole_mixture;
use super::{BlockScorer, Gaussian, GaussianMixture, fill_standard_normal, most_probable};
use crate::linalg::blocks::{BLOCK, RowBlocks};
use crate::linalg::{CovarianceType, Factor};

/// Which components of a mixture form a cluster, and which are outlier components.
///
/// An outlier component belongs to no cluster. Its weight is small, and it is either well separated from all other components
/// or wider than all heavier components together, as a component of scattered rows is.
///
/// ```
/// use gmm_bmm::GaussianMixture;
/// use gmm_bmm::dist::{Clusters, Gaussian};
/// use gmm_bmm::dist::Factor;
/// let normal = |mean: f64| Gaussian::new(vec![mean], Factor::identity(1));
/// let mixture = GaussianMixture::new(vec![0.3, 0.5, 0.2], vec![normal(0.0)?, normal(9.0)?, normal(1.0)?])?;
/// let clusters = mixture.clusters(Clusters::OVERLAP);
/// assert_eq!(clusters.count(), 2);
/// assert_eq!((clusters.of(0), clusters.of(1), clusters.of(2)), (Some(0), Some(1), Some(0)));
/// # Ok::<(), gmm_bmm::dist::DistError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Clusters {
    /// The cluster of each component; `None` for an outlier component.
    of: Vec<Option<usize>>,
    /// The weight of each cluster, the heaviest first.
    weights: Vec<f64>,
}

/// Which components are united into clusters.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Uniting {
    /// Clusters are united while the probability that a row of one is assigned to another exceeds this.
    Overlap(f64),
    /// The two clusters that are confused most are united until so many clusters are left.
    Count(usize),
}

impl Default for Uniting {
    fn default() -> Self {
        Uniting::Overlap(Clusters::OVERLAP)
    }
}

impl From<f64> for Uniting {
    fn from(overlap: f64) -> Self {
        Uniting::Overlap(overlap)
    }
}

impl Clusters {
    /// The default of the largest misclassification probability between clusters.
    pub const OVERLAP: f64 = 0.01;

    /// The number of clusters, at least one.
    pub fn count(&self) -> usize {
        self.weights.len()
    }

    /// The cluster of a component; `None` for an outlier component. Cluster 0 is the heaviest.
    ///
    /// # Panics
    /// If the mixture has no such component.
    pub fn of(&self, component: usize) -> Option<usize> {
        self.of[component]
    }

    /// The components of a cluster, in ascending order.
    pub fn members(&self, cluster: usize) -> impl Iterator<Item = usize> {
        self.components_where(move |of| of == Some(cluster))
    }

    /// The outlier components, in ascending order.
    pub fn outliers(&self) -> impl Iterator<Item = usize> {
        self.components_where(|of| of.is_none())
    }

    fn components_where(&self, holds: impl Fn(Option<usize>) -> bool) -> impl Iterator<Item = usize> {
        self.of.iter().enumerate().filter(move |(_, of)| holds(**of)).map(|(j, _)| j)
    }

    /// The weight of each cluster.
    pub fn weights(&self) -> &[f64] {
        &self.weights
    }

    /// The logarithm of the fraction of a row's density that does not come from outlier components, from the
    /// responsibilities of all components for the row.
    ///
    /// The log-density plus this is that of the clusters alone. Ranks use it, because an outlier component has a high density
    /// at its own few rows, which are anomalies.
    pub fn log_share(&self, responsibilities: impl IntoIterator<Item = f64>) -> f64 {
        if self.of.iter().all(Option::is_some) {
            return 0.0;
        }
        let of_clusters = responsibilities.into_iter().zip(&self.of).filter(|(_, of)| of.is_some());
        of_clusters.map(|(responsibility, _)| responsibility).sum::<f64>().ln()
    }
}

impl GaussianMixture {
    /// Unites components into clusters: each component with the one that its centre is assigned to, then clusters as `uniting`
    /// says, an overlap or a [`Uniting::Count`]. A mixture with too few components that are not outliers has fewer clusters than
    /// that; then no components are united.
    ///
    /// The result depends only on the mixture and `uniting`, because the random draws have a fixed seed.
    ///
    /// ```
    /// use gmm_bmm::GaussianMixture;
    /// use gmm_bmm::dist::{Factor, Gaussian, Uniting};
    /// let normal = |mean: f64| Gaussian::new(vec![mean], Factor::identity(1));
    /// let mixture = GaussianMixture::new(vec![0.3, 0.5, 0.2], vec![normal(0.0)?, normal(9.0)?, normal(30.0)?])?;
    /// let two = mixture.clusters(Uniting::Count(2));
    /// assert_eq!((two.of(0), two.of(1), two.of(2)), (Some(0), Some(0), Some(1)));
    /// # Ok::<(), gmm_bmm::dist::DistError>(())
    /// ```
    pub fn clusters(&self, uniting: impl Into<Uniting>) -> Clusters {
        let uniting = uniting.into();
        let light = light_below(self.k());
        let is_scattered = self.scattered(light);
        let draws = draws_per_component(self.k(), self.dim());
        let mut united = UnitedComponents::new(self.weights(), self.contested_rows(draws));
        let wanted = if let Uniting::Count(wanted) = uniting { wanted.max(1) } else { 0 };
        let overlap = if let Uniting::Overlap(overlap) = uniting { overlap } else { Clusters::OVERLAP };
        let clusters = |united: &UnitedComponents| -> Vec<bool> {
            let sizes = united.sizes();
            sizes.iter().zip(&is_scattered).map(|(size, scattered)| *size >= light && !scattered).collect()
        };
        let count = |clusters: &[bool]| clusters.iter().filter(|is_cluster| **is_cluster).count();
        for (component, home) in self.most_probable_components(self.means().view()).into_iter().enumerate() {
            let is_apart = is_scattered[component] || is_scattered[home];
            if !is_apart && (wanted == 0 || count(&clusters(&united)) > wanted) {
                united.unite(component, home);
            }
        }
        loop {
            // If their number is wanted, clusters are united below; here those that are too light for one.
            let is_cluster = clusters(&united);
            let may_unite = |one: usize, other: usize| {
                let is_free = wanted == 0 || !is_cluster[one] || !is_cluster[other];
                is_free && !is_scattered[one] && !is_scattered[other]
            };
            let confused = united.most_confused(may_unite, overlap * draws as f64);
            let Some((one, other)) = confused else { break };
            united.unite(one, other);
        }
        loop {
            let is_cluster = clusters(&united);
            if wanted == 0 || count(&is_cluster) <= wanted {
                break;
            }
            let confused = united.most_confused(|one, other| is_cluster[one] && is_cluster[other], 0.0);
            let (one, other) = confused.unwrap_or_else(|| self.nearest(&united.labels, &is_cluster));
            united.unite(one, other);
        }
        let (is_cluster, mut weights) = (clusters(&united), vec![0.0; self.k()]);
        let labels = united.labels;
        labels.iter().zip(self.weights()).for_each(|(&label, weight)| weights[label] += weight);
        let mut order: Vec<usize> = (0..self.k()).filter(|&label| is_cluster[label]).collect();
        order.sort_by(|&a, &b| weights[b].total_cmp(&weights[a]));
        Clusters {
            of: labels.iter().map(|label| order.iter().position(|other| other == label)).collect(),
            weights: order.iter().map(|&label| weights[label]).collect(),
        }
    }

    /// The labels of the two of these clusters that have the nearest components, by the Bhattacharyya distance.
    fn nearest(&self, labels: &[usize], is_cluster: &[bool]) -> (usize, usize) {
        let components: Vec<usize> = (0..self.k()).filter(|&j| is_cluster[labels[j]]).collect();
        let pairs = components.iter().flat_map(|&i| components.iter().map(move |&j| (i, j)));
        let apart = pairs.filter(|&(i, j)| labels[i] < labels[j]);
        let distance = |(i, j): (usize, usize)| self.components()[i].bhattacharyya(&self.components()[j]);
        let found = apart.map(|pair| (distance(pair), pair)).min_by(|a, b| a.0.total_cmp(&b.0));
        let (i, j) = found.expect("there are at least two clusters").1;
        (labels[i], labels[j])
    }

    /// The log-density of each row under the components that belong to clusters, where rows with gaps count as whole rows that are as rare.
    /// By this, and not by its log-density, a row of an outlier component is an anomaly.
    pub fn usualness(&self, rows: ArrayView2<f64>, uniting: impl Into<Uniting>) -> Array1<f64> {
        let mut log_densities = self.score_whole(rows);
        let light = light_below(self.k());
        if self.weights().iter().any(|&weight| weight < light) {
            let (clusters, responsibilities) = (self.clusters(uniting), self.probabilities(rows));
            for (log_density, row) in log_densities.iter_mut().zip(responsibilities.outer_iter()) {
                *log_density += clusters.log_share(row.iter().copied());
            }
        }
        log_densities
    }

    /// For each component, whether it is light and wider than all heavier ones together, by the determinants of the
    /// covariances.
    fn scattered(&self, light: f64) -> Vec<bool> {
        let lightest = self.weights().iter().copied().fold(f64::INFINITY, f64::min);
        if lightest >= light {
            return vec![false; self.k()];
        }
        let whole = self.log_volume_of_heavier(light);
        let is_scattered = |(component, &weight): (&Gaussian, &f64)| {
            weight < light && whole.is_some_and(|whole| component.covariance().log_det() > whole)
        };
        self.components().iter().zip(self.weights()).map(is_scattered).collect()
    }

    /// `ln |S|`, where `S` is the covariance of the mixture of all components that are not light.
    fn log_volume_of_heavier(&self, light: f64) -> Option<f64> {
        let heavier = self.components().iter().zip(self.weights()).filter(|(_, weight)| **weight >= light);
        let (components, weights): (Vec<Gaussian>, Vec<f64>) = heavier.map(|(c, w)| (c.clone(), *w)).unzip();
        let total: f64 = weights.iter().sum();
        let weights = weights.into_iter().map(|weight| weight / total).collect();
        let (_, units, correlation) = whole_mixture(&GaussianMixture::new(weights, components).ok()?);
        let correlation = Factor::from_matrix(correlation.view()).ok()?;
        Some(correlation.log_det() + 2.0 * units.iter().map(|unit| unit.ln()).sum::<f64>())
    }

    /// Rows drawn from each component that another component has a responsibility for. All components use the same standard
    /// normal draws, so the result does not depend on their order.
    fn contested_rows(&self, draws: usize) -> Vec<ContestedRow> {
        let mut normal = Array2::zeros((draws, self.dim()));
        let mut rng = ChaCha8Rng::seed_from_u64(0);
        for i in (0..draws).step_by(2) {
            let mut row = vec![0.0; self.dim()];
            fill_standard_normal(&mut rng, &mut row);
            let row = ArrayView1::from(&row);
            normal.row_mut(i).assign(&row);
            // Antithetic draws reduce the variance of the estimate.
            normal.row_mut(i + 1).assign(&-&row);
        }
        let scorer = BlockScorer::of_ordered(self);
        let correlated = |factor: &Factor| match factor.roots() {
            Some(roots) => &normal * &Array1::from(roots),
            None => normal.dot(&factor.lower_matrix().t()),
        };
        let is_tied = self.covariance_type() == CovarianceType::Tied;
        let shared = is_tied.then(|| correlated(self.components()[0].covariance()));
        let of_component = |component: usize| {
            let gaussian = &self.components()[component];
            let rows = shared.clone().unwrap_or_else(|| correlated(gaussian.covariance()));
            let rows = RowBlocks::new((rows + ArrayView1::from(gaussian.mean())).view());
            let mut scorer = scorer.clone();
            let mut contested = Vec::new();
            for (block, filled) in rows.iter() {
                scorer.score_block(self, &block, filled);
                for i in (0..filled).filter(|&i| scorer.responsibilities(component)[i] < 1.0 - NEGLIGIBLE) {
                    let all = (0..self.k()).map(|j| (j, scorer.responsibilities(j)[i]));
                    let responsibilities: Vec<(usize, f64)> = all.filter(|(_, r)| *r > NEGLIGIBLE).collect();
                    if !responsibilities.is_empty() {
                        contested.push(ContestedRow { component, responsibilities });
                    }
                }
            }
            contested
        };
        (0..self.k()).into_par_iter().flat_map_iter(of_component).collect()
    }
}

/// The weight below which one of `k` components is light. It decreases with `k`, so that not all components are light.
fn light_below(k: usize) -> f64 {
    1e-3f64.min(0.1 / k as f64)
}

/// Smaller responsibilities are ignored.
const NEGLIGIBLE: f64 = 1e-4;

/// Rows drawn from each of `k` components: whole blocks, and fewer where rows are many or expensive.
fn draws_per_component(k: usize, dim: usize) -> usize {
    const WORK: f64 = 5e9;
    const ROWS: usize = 65_536;
    let affordable = (WORK / (k as f64 * dim as f64).powi(2)) as usize;
    (affordable.min(ROWS / k) / BLOCK).clamp(2, 32) * BLOCK
}

/// A row drawn from one component that another one has a responsibility for.
struct ContestedRow {
    component: usize,
    /// Labels of clusters, in ascending order, and their responsibilities for the row.
    responsibilities: Vec<(usize, f64)>,
}

impl ContestedRow {
    /// The label of the cluster that the row is assigned to.
    fn assigned(&self) -> usize {
        self.responsibilities[most_probable(self.responsibilities.iter().map(|(_, r)| *r)).0].0
    }

    /// Moves the responsibility of label `from` to label `into`. Returns whether `into` is new in this row.
    fn relabel(&mut self, from: usize, into: usize) -> bool {
        let find = |all: &[(usize, f64)], label| all.binary_search_by_key(&label, |(label, _)| *label);
        let Ok(old) = find(&self.responsibilities, from) else { return false };
        let (_, responsibility) = self.responsibilities.remove(old);
        match find(&self.responsibilities, into) {
            Ok(place) => {
                self.responsibilities[place].1 += responsibility;
                false
            }
            Err(place) => {
                self.responsibilities.insert(place, (into, responsibility));
                true
            }
        }
    }
}

/// The state of the uniting.
struct UnitedComponents {
    weights: Vec<f64>,
    /// The label of each component: the first component of its cluster.
    labels: Vec<usize>,
    rows: Vec<ContestedRow>,
    /// For each label, the rows that its cluster has a responsibility for.
    rows_of: Vec<Vec<usize>>,
    /// The number of contested rows of each component that are assigned to each label.
    counts: Array2<u32>,
}

impl UnitedComponents {
    fn new(weights: &[f64], rows: Vec<ContestedRow>) -> Self {
        let k = weights.len();
        let mut rows_of = vec![Vec::new(); k];
        let mut counts = Array2::zeros((k, k));
        for (i, row) in rows.iter().enumerate() {
            row.responsibilities.iter().for_each(|&(label, _)| rows_of[label].push(i));
            counts[(row.component, row.assigned())] += 1;
        }
        let weights = weights.iter().map(|weight| weight.max(f64::MIN_POSITIVE)).collect();
        UnitedComponents { weights, labels: (0..k).collect(), rows, rows_of, counts }
    }

    /// Unites the clusters of two components.
    fn unite(&mut self, one: usize, other: usize) {
        let [one, other] = [self.labels[one], self.labels[other]];
        let (into, from) = (one.min(other), one.max(other));
        if into == from {
            return;
        }
        self.labels.iter_mut().filter(|label| **label == from).for_each(|label| *label = into);
        for i in std::mem::take(&mut self.rows_of[from]) {
            let row = &mut self.rows[i];
            self.counts[(row.component, row.assigned())] -= 1;
            if row.relabel(from, into) {
                self.rows_of[into].push(i);
            }
            self.counts[(row.component, row.assigned())] += 1;
        }
    }

    /// The weight of each label.
    fn sizes(&self) -> Vec<f64> {
        let mut sizes = vec![0.0; self.labels.len()];
        self.labels.iter().zip(&self.weights).for_each(|(&label, weight)| sizes[label] += weight);
        sizes
    }

    /// The labels of the two clusters that may be united with the largest misclassification: of the rows drawn from the first, the
    /// most, and more than `least`, are assigned to the second.
    fn most_confused(&self, may_unite: impl Fn(usize, usize) -> bool, least: f64) -> Option<(usize, usize)> {
        let k = self.labels.len();
        let (sizes, mut confused) = (self.sizes(), Array2::<f64>::zeros((k, k)));
        for ((component, to), &count) in self.counts.indexed_iter() {
            confused[(self.labels[component], to)] += self.weights[component] * f64::from(count);
        }
        let mut most = (least, None);
        for ((of, to), rows) in confused.indexed_iter().filter(|((of, to), _)| of != to) {
            if rows / sizes[of] > most.0 && may_unite(of, to) {
                most = (rows / sizes[of], Some((of, to)));
            }
        }
        most.1
    }
}

#[cfg(test)]
mod tests {
    use super::light_below;

    #[test]
    fn of_very_many_components_not_all_are_outliers() {
        assert_eq!((light_below(1), light_below(100), light_below(2000)), (1e-3, 1e-3, 5e-5));
    }
}
