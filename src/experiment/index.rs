//! Records sorted once, for lookups by data set, contender, K and fold.

use std::collections::{BTreeMap, HashMap};

use super::contender::Contender;
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
        index
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
        self.sets.iter().map(|set| set.cells().count()).sum()
    }
}

impl<'a> SetIndex<'a> {
    fn new(name: &'a str) -> Self {
        SetIndex { name, data: None, sample: None, cells: BTreeMap::new(), curves: Vec::new() }
    }

    fn insert(&mut self, record: &'a Record) {
        match record {
            Record::Run(_) => {}
            Record::Data(data) => {
                self.data = Some(data);
                self.sample = data.sample.as_deref().or(self.sample);
            }
            Record::Cell(cell) => {
                let by_k = self.cells.entry(cell.contender).or_default();
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

    /// The learners that have cells, in the order of the tables.
    pub fn contenders(&self) -> impl Iterator<Item = Contender> {
        self.cells.keys().copied()
    }

    /// The cells of a learner by K and fold, if it has any.
    pub fn by_k(&self, contender: Contender) -> Option<&BTreeMap<usize, Folds<'a>>> {
        self.cells.get(&contender)
    }

    /// The cells of a learner with one K, by fold.
    pub fn folds(&self, contender: Contender, k: usize) -> Option<&Folds<'a>> {
        self.by_k(contender)?.get(&k)
    }

    /// One cell.
    pub fn cell(&self, contender: Contender, k: usize, fold: usize) -> Option<&'a CellRecord> {
        self.folds(contender, k)?.get(&fold).copied()
    }

    /// The cells of a learner, by K and then fold.
    pub fn cells_of(&self, contender: Contender) -> impl Iterator<Item = &'a CellRecord> {
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
