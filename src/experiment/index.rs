//! Records by data set, contender, K and fold.

use std::collections::{BTreeMap, BTreeSet};

use super::contender::Contender;
use super::external::ExternalLearner;
use super::record::{CellRecord, CurveRecord, DataRecord, Record, RunRecord};

/// The cells of one learner with one K, by fold.
pub type Folds<'a> = BTreeMap<usize, &'a CellRecord>;

/// Records sorted by what they are about, so that the order in which cells were finished does not matter. Where a cell
/// or a data set is recorded twice, the later record counts.
#[derive(Debug, Clone, Default)]
pub struct RecordIndex {
    runs: Vec<RunRecord>,
    sets: Vec<SetIndex>,
}

/// The records of one data set.
#[derive(Debug, Clone, Default)]
pub struct SetIndex {
    name: String,
    data: Option<DataRecord>,
    /// Cells with scores, by learner, K and fold.
    cells: BTreeMap<(Contender, usize, usize), CellRecord>,
    /// Cells without scores.
    failures: BTreeMap<(Contender, usize, usize), CellRecord>,
    /// Learners whose command a later run has replaced.
    replaced: BTreeSet<Contender>,
    curves: Vec<CurveRecord>,
}

impl FromIterator<Record> for RecordIndex {
    fn from_iter<I: IntoIterator<Item = Record>>(records: I) -> Self {
        let mut index = RecordIndex::default();
        records.into_iter().for_each(|record| index.add(record));
        index
    }
}

impl RecordIndex {
    /// Adds a record.
    pub fn add(&mut self, record: Record) {
        match record {
            Record::Run(run) => {
                self.runs.push(run);
                let current = current_commands(&self.runs);
                self.sets.iter_mut().for_each(|set| set.mark_replaced(&current));
            }
            Record::Data(data) => {
                let place = self.place_of(&data.data);
                let is_first = self.sets[place].data.is_none();
                self.sets[place].set_data(data);
                if is_first {
                    let last = self.sets.iter().filter(|set| set.data.is_some()).count() - 1;
                    self.sets[last..=place].rotate_right(1);
                }
            }
            Record::Cell(cell) => {
                let place = self.place_of(&cell.data);
                let is_command = cell.contender.commands().is_some();
                self.sets[place].add_cell(*cell);
                if is_command {
                    self.sets[place].mark_replaced(&current_commands(&self.runs));
                }
            }
            Record::Curve(curve) => {
                let place = self.place_of(&curve.data);
                self.sets[place].curves.push(curve);
            }
        }
    }

    /// The place of a data set, which is added if it is new.
    fn place_of(&mut self, name: &str) -> usize {
        if let Some(place) = self.sets.iter().position(|set| set.name == name) {
            return place;
        }
        let place = self.sets.partition_point(|set| set.data.is_some() || set.name.as_str() < name);
        self.sets.insert(place, SetIndex { name: name.to_string(), ..SetIndex::default() });
        place
    }

    /// The records, sorted, without learners whose command a later run has replaced.
    pub fn records(&self) -> impl Iterator<Item = Record> {
        let runs = self.runs.iter().cloned().map(Record::Run);
        runs.chain(self.sets.iter().flat_map(SetIndex::records))
    }

    /// The runs that wrote the records, in order.
    pub fn runs(&self) -> &[RunRecord] {
        &self.runs
    }

    /// The data sets: those that have a [`DataRecord`] in the order of the first one, then the others by name.
    pub fn sets(&self) -> &[SetIndex] {
        &self.sets
    }

    /// The records of a data set.
    pub fn set(&self, name: &str) -> Option<&SetIndex> {
        self.sets.iter().find(|set| set.name == name)
    }

    /// Keeps the sets that have a place, in the order of the places.
    pub fn choose_sets(&mut self, place: impl Fn(&str) -> Option<usize>) {
        self.sets.retain(|set| place(&set.name).is_some());
        self.sets.sort_by_key(|set| place(&set.name));
    }

    /// Keeps the cells and curves of these learners.
    pub fn choose_learners(&mut self, wanted: &[Contender]) {
        for set in &mut self.sets {
            set.cells.retain(|(contender, ..), _| wanted.contains(contender));
            set.failures.retain(|(contender, ..), _| wanted.contains(contender));
            set.curves.retain(|curve| wanted.contains(&curve.contender));
        }
    }

    /// Finished cells.
    pub fn cell_count(&self) -> usize {
        self.sets.iter().map(|set| set.cells.len() + set.failures.len()).sum()
    }
}

/// The learners that are commands, as the last run with their name had them.
fn current_commands(runs: &[RunRecord]) -> BTreeMap<&str, &ExternalLearner> {
    let learners = runs.iter().flat_map(|run| &run.learners);
    learners.map(|learner| (learner.name.as_str(), learner)).collect()
}

impl SetIndex {
    fn set_data(&mut self, mut data: DataRecord) {
        let before = self.data.take();
        data.sample = data.sample.or_else(|| before?.sample);
        self.data = Some(data);
    }

    fn add_cell(&mut self, cell: CellRecord) {
        let place = (cell.contender.clone(), cell.k, cell.fold);
        if cell.failure.is_some() {
            if !self.cells.contains_key(&place) {
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
        self.cells.insert(place, cell);
    }

    fn mark_replaced(&mut self, current: &BTreeMap<&str, &ExternalLearner>) {
        let is_replaced = |contender: &&Contender| {
            let now = current.get(contender.name());
            now.is_some_and(|now| contender.commands().is_some_and(|own| own != *now))
        };
        self.replaced = self.all_contenders().into_iter().filter(is_replaced).cloned().collect();
    }

    fn records(&self) -> impl Iterator<Item = Record> {
        let is_shown = |cell: &&CellRecord| !self.replaced.contains(&cell.contender);
        let cells = self.cells().chain(self.failures.values()).filter(is_shown);
        let data = self.data.iter().cloned().map(Record::Data);
        data.chain(cells.map(|cell| Record::Cell(Box::new(cell.clone()))))
            .chain(self.curves.iter().cloned().map(Record::Curve))
    }

    /// [`DataRecord::data`].
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The set as it was used; `None` if only its cells are recorded.
    pub fn data(&self) -> Option<&DataRecord> {
        self.data.as_ref()
    }

    /// The learners that have cells, in the order of the tables, without those whose command a later run has replaced.
    pub fn contenders(&self) -> impl Iterator<Item = &Contender> {
        self.all_contenders().into_iter().filter(|contender| !self.replaced.contains(*contender))
    }

    fn all_contenders(&self) -> BTreeSet<&Contender> {
        self.cells.keys().chain(self.failures.keys()).map(|(contender, ..)| contender).collect()
    }

    /// The cells of a learner that failed, by K and then fold.
    pub fn failures_of(&self, contender: &Contender) -> impl Iterator<Item = &CellRecord> {
        self.failures.iter().filter(move |((of, ..), _)| of == contender).map(|(_, cell)| cell)
    }

    /// The cells of a learner, by K and then fold.
    pub fn cells_of(&self, contender: &Contender) -> impl Iterator<Item = &CellRecord> {
        self.cells
            .range((contender.clone(), 0, 0)..=(contender.clone(), usize::MAX, usize::MAX))
            .map(|(_, cell)| cell)
    }

    /// The cells of a learner by K and fold.
    pub fn by_k(&self, contender: &Contender) -> BTreeMap<usize, Folds<'_>> {
        let mut by_k: BTreeMap<usize, Folds> = BTreeMap::new();
        for cell in self.cells_of(contender) {
            by_k.entry(cell.k).or_default().insert(cell.fold, cell);
        }
        by_k
    }

    /// One cell.
    pub fn cell(&self, contender: &Contender, k: usize, fold: usize) -> Option<&CellRecord> {
        self.cells.get(&(contender.clone(), k, fold))
    }

    /// All cells, by learner, K and fold.
    pub fn cells(&self) -> impl Iterator<Item = &CellRecord> {
        self.cells.values()
    }

    /// The learning curves, in the order of the records.
    pub fn curves(&self) -> &[CurveRecord] {
        &self.curves
    }
}
