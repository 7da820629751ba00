//! Records sorted once, for lookups by data set, contender, K and fold.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::contender::Contender;
use super::external::ExternalLearner;
use super::record::{CellRecord, CurveRecord, DataRecord, Record, RunRecord};

/// The cells of one learner with one K, by fold.
pub type Folds<'a> = BTreeMap<usize, &'a CellRecord>;

/// Records sorted by what they are about, so that the order in which cells were finished does not matter. Where a cell
/// or a data set is recorded twice, the later record counts.
#[derive(Debug, Default)]
pub struct RecordIndex<'a> {
    runs: Vec<&'a RunRecord>,
    sets: Vec<SetIndex<'a>>,
}

/// The records of one data set.
#[derive(Debug)]
pub struct SetIndex<'a> {
    name: &'a str,
    data: Option<&'a DataRecord>,
    sample: Option<&'a [Vec<f64>]>,
    cells: BTreeMap<Contender, BTreeMap<usize, Folds<'a>>>,
    /// Cells without scores, by learner, K and fold.
    failures: BTreeMap<(Contender, usize, usize), &'a CellRecord>,
    /// Learners whose command a later run has replaced.
    replaced: BTreeSet<Contender>,
    curves: Vec<&'a CurveRecord>,
}

impl<'a> RecordIndex<'a> {
    /// Sorts records.
    pub fn new(records: &'a [Record]) -> Self {
        let mut index = RecordIndex::default();
        let mut places: HashMap<&str, usize> = HashMap::new();
        // Data records first: they set the order of the sets.
        let (data, rest): (Vec<_>, Vec<_>) =
            records.iter().partition(|record| matches!(record, Record::Data(_)));
        for record in data.into_iter().chain(rest) {
            let name = match record {
                Record::Run(run) => {
                    index.runs.push(run);
                    continue;
                }
                Record::Data(data) => &data.data,
                Record::Cell(cell) => &cell.data,
                Record::Curve(curve) => &curve.data,
            };
            let place = *places.entry(name).or_insert_with(|| {
                index.sets.push(SetIndex::new(name));
                index.sets.len() - 1
            });
            index.sets[place].insert(record);
        }
        index.sets.sort_by_key(|set| set.data.is_none().then_some(set.name));
        let current = index.current_commands();
        for set in &mut index.sets {
            let is_replaced = |contender: &Contender| {
                current
                    .get(contender.name())
                    .is_some_and(|now| contender.commands().is_some_and(|own| own != *now))
            };
            set.replaced = set.all_contenders().into_iter().filter(|one| is_replaced(one)).cloned().collect();
        }
        index
    }

    /// The learners that are commands, as the last run with their name had them.
    fn current_commands(&self) -> BTreeMap<&'a str, &'a ExternalLearner> {
        self.runs
            .iter()
            .flat_map(|run| &run.learners)
            .map(|learner| (learner.name.as_str(), learner))
            .collect()
    }

    /// The runs that wrote the records, in order.
    pub fn runs(&self) -> &[&'a RunRecord] {
        &self.runs
    }

    /// The data sets: those that have a [`DataRecord`] in the order of the first one, then the others by name.
    pub fn sets(&self) -> &[SetIndex<'a>] {
        &self.sets
    }

    /// The records of a data set.
    pub fn set(&self, name: &str) -> Option<&SetIndex<'a>> {
        self.sets.iter().find(|set| set.name == name)
    }

    /// Finished cells.
    pub fn cell_count(&self) -> usize {
        self.sets.iter().map(|set| set.cells().count() + set.failures.len()).sum()
    }
}

impl<'a> SetIndex<'a> {
    fn new(name: &'a str) -> Self {
        SetIndex {
            name,
            data: None,
            sample: None,
            cells: BTreeMap::new(),
            failures: BTreeMap::new(),
            replaced: BTreeSet::new(),
            curves: Vec::new(),
        }
    }

    fn insert(&mut self, record: &'a Record) {
        match record {
            Record::Run(_) => {}
            Record::Data(data) => {
                self.data = Some(data);
                self.sample = data.sample.as_deref().or(self.sample);
            }
            Record::Cell(cell) => {
                let place = (cell.contender.clone(), cell.k, cell.fold);
                if cell.failure.is_some() {
                    if self.cell(&cell.contender, cell.k, cell.fold).is_none() {
                        self.failures.insert(place, cell);
                    }
                    return;
                }
                match cell.contender.learns_k() {
                    true => self
                        .failures
                        .retain(|(contender, _, fold), _| (contender, *fold) != (&cell.contender, cell.fold)),
                    false => drop(self.failures.remove(&place)),
                }
                let by_k = self.cells.entry(place.0).or_default();
                by_k.entry(cell.k).or_default().insert(cell.fold, cell);
            }
            Record::Curve(curve) => self.curves.push(curve),
        }
    }

    /// [`DataRecord::data`].
    pub fn name(&self) -> &'a str {
        self.name
    }

    /// The set as it was used; `None` if only its cells are recorded.
    pub fn data(&self) -> Option<&'a DataRecord> {
        self.data
    }

    /// Some of its rows.
    pub fn sample(&self) -> Option<&'a [Vec<f64>]> {
        self.sample
    }

    /// The learners that have cells, in the order of the tables, without those whose command a later run has replaced.
    pub fn contenders(&self) -> impl Iterator<Item = &Contender> {
        self.all_contenders().into_iter().filter(|contender| !self.replaced.contains(*contender))
    }

    fn all_contenders(&self) -> BTreeSet<&Contender> {
        self.cells.keys().chain(self.failures.keys().map(|(contender, ..)| contender)).collect()
    }

    /// The cells of a learner that failed, by K and then fold.
    pub fn failures_of(&self, contender: &Contender) -> impl Iterator<Item = &'a CellRecord> {
        self.failures.iter().filter(move |((of, ..), _)| of == contender).map(|(_, cell)| *cell)
    }

    /// The cells of a learner by K and fold, if it has any.
    pub fn by_k(&self, contender: &Contender) -> Option<&BTreeMap<usize, Folds<'a>>> {
        self.cells.get(contender)
    }

    /// The cells of a learner with one K, by fold.
    pub fn folds(&self, contender: &Contender, k: usize) -> Option<&Folds<'a>> {
        self.by_k(contender)?.get(&k)
    }

    /// One cell.
    pub fn cell(&self, contender: &Contender, k: usize, fold: usize) -> Option<&'a CellRecord> {
        self.folds(contender, k)?.get(&fold).copied()
    }

    /// The cells of a learner, by K and then fold.
    pub fn cells_of(&self, contender: &Contender) -> impl Iterator<Item = &'a CellRecord> {
        self.by_k(contender).into_iter().flat_map(BTreeMap::values).flat_map(BTreeMap::values).copied()
    }

    /// All cells, by learner, K and fold.
    pub fn cells(&self) -> impl Iterator<Item = &'a CellRecord> {
        self.cells.values().flat_map(BTreeMap::values).flat_map(BTreeMap::values).copied()
    }

    /// The learning curves, in the order of the records.
    pub fn curves(&self) -> &[&'a CurveRecord] {
        &self.curves
    }
}
