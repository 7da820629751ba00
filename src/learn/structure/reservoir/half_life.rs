//! Samples of a pass with a half-life.

use std::sync::Arc;

use super::{
    Drawn, KeptRows, MAX_VALIDATION, MIN_VALIDATION, PLACE, RESERVOIR, VALIDATION_SHARE, below, random,
    uniform,
};
use crate::hash::mix_bits;
use crate::learn::rows::RowBuffer;
use crate::learn::rules::forgetting::Forgetting;
use crate::learn::structure::fading::{Fading, SampleWeights};

impl KeptRows {
    /// Changes the half-life. Rows that had no weights get those of their ages if their order is known, and equal ones
    /// otherwise. If there is no half-life any more, rows stay with a probability equal to their weight, and count alike.
    pub(in crate::learn) fn set_half_life(&mut self, half_life: Option<u64>, dim: usize) {
        let (held, validation) = (self.held(dim), self.validation.len() / dim);
        match (half_life, &mut self.fading) {
            (None, None) => {}
            (Some(rows), Some(fading)) => fading.half_life = rows.max(1),
            (Some(rows), None) => {
                let forgetting = Forgetting::new(rows);
                let own = self.own_weights.as_ref();
                let own = [own.map(|own| &own.of_reservoir), own.map(|own| &own.of_validation)];
                let ages = |count: usize, own: Option<&Arc<Vec<f64>>>| {
                    let mut rows = 0.0;
                    let own = own.cloned();
                    (0..count).map(move |i| {
                        rows += own.as_ref().map_or(1.0, |own| own[i]);
                        rows
                    })
                };
                let weights = |count: usize, in_order: bool, rate: f64, own| match in_order {
                    true => SampleWeights::in_order(ages(count, own), rate),
                    false => SampleWeights::equal(count, forgetting.rate() / rate * forgetting.most_rows()),
                };
                let rate = VALIDATION_SHARE as f64 * forgetting.rate();
                self.fading = Some(Fading {
                    half_life: rows.max(1),
                    of_reservoir: weights(held, self.learned <= self.most as u64, forgetting.rate(), own[0]),
                    of_validation: weights(validation, self.drawn <= MAX_VALIDATION as u64, rate, own[1]),
                });
            }
            (None, Some(fading)) => {
                let total = fading.forgetting().weight_of(self.learned_weight());
                let stay = [self.staying(self.reservoir_ages()), self.staying(self.validation_ages())];
                if let Some(stay) = &stay[0] {
                    self.reservoir = Arc::new(self.reservoir.chosen(stay.iter().copied(), dim));
                }
                self.validation = Arc::new(chosen(&self.validation, &stay[1], dim));
                if let Some(own) = &mut self.own_weights {
                    own.learned = total;
                    own.of_reservoir = Arc::new(chosen(&own.of_reservoir, &stay[0], 1));
                    own.of_validation = Arc::new(chosen(&own.of_validation, &stay[1], 1));
                }
                self.learned = (total.round() as u64).max(self.held(dim) as u64);
                self.drawn = (self.validation.len() / dim) as u64;
                self.fading = None;
            }
        }
    }

    /// [`KeptRows::take_drawn`] in a pass with a half-life.
    pub(super) fn take_drawn_fading(
        &mut self,
        row: &[f64],
        weight: f64,
        index: u64,
        out: &mut RowBuffer,
    ) -> Drawn {
        let Some(mut fading) = self.fading.take() else { return Drawn::Learn };
        let most = most_validation(&fading);
        let (p, random) = (self.validation_admission(&fading), random(self.seed, index, PLACE));
        let count = self.validation.len() / row.len();
        let drawn = if count < most {
            fading.of_validation.push();
            Arc::make_mut(&mut self.validation).extend_from_slice(row);
            self.hold_weight(weight, None);
            Drawn::HeldBack
        } else {
            fading.of_validation.offered(p);
            if uniform(random) < p {
                let (place, random) = (below(mix_bits(random), count as u64) as usize, mix_bits(!random));
                let learned = uniform(random) < fading.of_validation.replace(place, p);
                self.exchange(row, weight, place, learned.then_some(out));
                if learned { Drawn::Exchanged } else { Drawn::HeldBack }
            } else {
                Drawn::Learn
            }
        };
        self.fading = Some(fading);
        drawn
    }

    /// Offers a learned row to the reservoir, in a pass with a half-life.
    pub(super) fn keep_fading(&mut self, row: &[f64], weight: f64) {
        let Some(mut fading) = self.fading.take() else { return };
        self.note_weight(weight, row.len());
        let index = self.learned;
        self.learned += 1;
        if let Some(own) = &mut self.own_weights {
            own.learned += weight;
        }
        let p = self.reservoir_admission(&fading);
        let weights = &mut fading.of_reservoir;
        weights.age(Forgetting::new(fading.half_life).rate() * weight);
        let mut own = self.own_weights.as_mut().map(|own| Arc::make_mut(&mut own.of_reservoir));
        let reservoir = Arc::make_mut(&mut self.reservoir);
        if reservoir.len() < self.most.saturating_mul(row.len()) {
            weights.push();
            reservoir.push(row);
            if let Some(own) = &mut own {
                own.push(weight);
            }
        } else {
            weights.offered(p);
            let random = random(self.seed, index, RESERVOIR);
            if uniform(random) < p {
                let place = below(mix_bits(random), self.most as u64) as usize;
                weights.replace(place, p);
                reservoir.set(place, row);
                if let Some(own) = &mut own {
                    own[place] = weight;
                }
            }
        }
        self.fading = Some(fading);
    }

    /// Which rows stay, with a probability equal to their weight; `None` if all do.
    pub(super) fn staying(&self, weights: Option<Vec<f64>>) -> Option<Vec<usize>> {
        let weights = weights?;
        let stays =
            |i: &usize| uniform(mix_bits(self.seed ^ mix_bits(self.seen ^ (*i as u64) << 40))) < weights[*i];
        Some((0..weights.len()).filter(stays).collect())
    }
}

/// The rows with these indices, of `dim` numbers each; all if there are none.
pub(super) fn chosen(values: &[f64], indices: &Option<Vec<usize>>, dim: usize) -> Vec<f64> {
    match indices {
        None => values.to_vec(),
        Some(indices) => indices.iter().flat_map(|i| &values[i * dim..(i + 1) * dim]).copied().collect(),
    }
}

/// The largest number of validation rows in a pass with a half-life: twice their total weight.
pub(super) fn most_validation(fading: &Fading) -> usize {
    let weight = fading.forgetting().most_rows() / VALIDATION_SHARE as f64;
    ((2.0 * weight) as usize).clamp(MIN_VALIDATION, MAX_VALIDATION)
}
