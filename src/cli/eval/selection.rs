//! Which rows are written: all, those of low rank, or the most unusual ones.

use std::io;

pub(super) struct Selection {
    max_rank: Option<f64>,
    /// How many of the most unusual rows are written, and those so far: a log-density and the line, the lowest first.
    top: Option<(usize, Vec<(f64, String)>)>,
    written: u64,
}

impl Selection {
    pub fn new(max_rank: Option<f64>, top: Option<u32>) -> Self {
        Selection { max_rank, top: top.map(|most| (most as usize, Vec::new())), written: 0 }
    }

    /// Whether every row is written, also without a score.
    pub fn takes_all(&self) -> bool {
        self.max_rank.is_none() && self.top.is_none()
    }

    /// Whether a row may be written, by its log-density without outlier components and its rank.
    pub fn takes(&self, usualness: f64, rank: Option<f64>) -> bool {
        let is_low = self.max_rank.is_none_or(|most| rank.is_some_and(|rank| rank <= most));
        let is_lower = |(most, lines): &(usize, Vec<(f64, String)>)| {
            lines.len() < *most || lines.last().is_some_and(|(highest, _)| usualness < *highest)
        };
        is_low && self.top.as_ref().is_none_or(is_lower)
    }

    /// Keeps a line that may be among the most unusual ones, or writes it.
    pub fn keep_or(
        &mut self,
        usualness: f64,
        line: String,
        write: impl FnOnce(&str) -> io::Result<()>,
    ) -> io::Result<()> {
        let Some((most, lines)) = &mut self.top else {
            self.written += 1;
            return write(&line);
        };
        let place = lines.partition_point(|(other, _)| *other <= usualness);
        lines.insert(place, (usualness, line));
        lines.truncate(*most);
        Ok(())
    }

    /// The number of rows selected; `None` if all are written.
    pub fn rows_written(&self) -> Option<u64> {
        let kept = self.top.as_ref().map(|(_, lines)| lines.len() as u64);
        (!self.takes_all()).then(|| kept.unwrap_or(self.written))
    }

    /// The lines of the most unusual rows, the lowest first.
    pub fn top(self) -> Vec<String> {
        self.top.map_or(Vec::new(), |(_, lines)| lines.into_iter().map(|(_, line)| line).collect())
    }
}
