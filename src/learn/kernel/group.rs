use crate::learn::kernel::MatrixState;
use crate::learn::kernel::component::{Component, MAX_JUMP, MIN_SCALE, most_log_growth};
use crate::learn::kernel::interleaved::{Interleaved, MAX_COLUMNS};
use crate::linalg::Factor;
use crate::linalg::simd::Arithmetic;
use crate::linalg::special::ln_1p;
use crate::linalg::vector::{Quad, Vector, Vector4};

/// Means and matrices of up to four components while they are being learned, one component per vector lane.
///
/// Scalars of all four are computed with the same instructions. With few columns means and matrices are interleaved too.
/// Lanes without a component hold harmless numbers: they are finite and have no effect.
#[derive(Debug, Clone)]
pub(crate) struct ComponentGroup {
    /// Stale while `interleaved` is `Some`; refreshed by `flush`.
    components: Vec<Component>,
    interleaved: Option<Box<Interleaved>>,
    /// `vᵀΨ⁻¹v` of the current row.
    pub q: Quad,
    pub scalars: MatrixScalars,
}

/// Numbers of each matrix that change with every row. In a lane in the Cholesky form they are constants.
#[derive(Debug, Clone)]
pub(crate) struct MatrixScalars {
    /// `ln |Ψ| = log_det + log_growth + d·log_scale`.
    pub log_det: Quad,
    pub log_growth: Quad,
    pub log_scale: Quad,
    scale: Quad,
    inverse_scale: Quad,
    /// See [`crate::learn::kernel::precision::Precision::gain`].
    gain: Quad,
    /// See [`crate::learn::kernel::component::FormSchedule`].
    margin: Quad,
    updates_left: Quad,
    /// The largest `τq` that is learned for all lanes together. It is negative in the Cholesky form, which is always
    /// learned separately.
    largest_jump: Quad,
}

/// The update of each component whose responsibility `r` is positive: `m ← m + step·v`,
/// `Ψ ← stretch·(Ψ + τ v vᵀ)`, then pivots are raised to the floor.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Changes<V> {
    pub r: V,
    pub step: V,
    pub tau: V,
    /// `τ/(1 + τq)`.
    pub gain: V,
    pub stretch: V,
    pub log_stretch: V,
}

impl Changes<Quad> {
    #[inline(always)]
    pub fn load<V: Vector4>(&self) -> Changes<V> {
        Changes {
            r: V::load(&self.r),
            step: V::load(&self.step),
            tau: V::load(&self.tau),
            gain: V::load(&self.gain),
            stretch: V::load(&self.stretch),
            log_stretch: V::load(&self.log_stretch),
        }
    }
}

impl<V: Vector4> Changes<V> {
    /// The numbers in memory.
    pub fn store(&self) -> Changes<Quad> {
        Changes {
            r: self.r.to_quad(),
            step: self.step.to_quad(),
            tau: self.tau.to_quad(),
            gain: self.gain.to_quad(),
            stretch: self.stretch.to_quad(),
            log_stretch: self.log_stretch.to_quad(),
        }
    }
}

impl MatrixScalars {
    fn new(components: &[Component]) -> Self {
        let all = |value: f64| Quad([value; 4]);
        let mut scalars = MatrixScalars {
            log_det: all(0.0),
            log_growth: all(0.0),
            log_scale: all(0.0),
            scale: all(1.0),
            inverse_scale: all(1.0),
            gain: all(0.0),
            margin: all(f64::MAX),
            updates_left: all(f64::MAX),
            largest_jump: all(MAX_JUMP),
        };
        components.iter().enumerate().for_each(|(i, component)| scalars.load_lane(i, component));
        scalars
    }

    /// Copies the scalars of a component into its lane.
    fn load_lane(&mut self, i: usize, component: &Component) {
        let Component { factor, precision, schedule, .. } = component;
        let values = match precision {
            Some(own) => {
                let left = f64::from(schedule.updates_left);
                [
                    own.log_det,
                    own.log_growth,
                    own.log_scale,
                    own.scale,
                    own.gain,
                    schedule.margin,
                    left,
                    MAX_JUMP,
                ]
            }
            None => [factor.log_det(), 0.0, 0.0, 1.0, 0.0, f64::MAX, f64::MAX, -1.0],
        };
        self.inverse_scale.0[i] = 1.0 / values[3];
        let MatrixScalars {
            log_det,
            log_growth,
            log_scale,
            scale,
            gain,
            margin,
            updates_left,
            largest_jump,
            ..
        } = self;
        let places = [log_det, log_growth, log_scale, scale, gain, margin, updates_left, largest_jump];
        places.into_iter().zip(values).for_each(|(place, value)| place.0[i] = value);
    }

    /// Copies a lane back to its component.
    fn store_lane(&self, i: usize, component: &mut Component) {
        if let Some(precision) = &mut component.precision {
            precision.log_growth = self.log_growth.0[i];
            precision.log_scale = self.log_scale.0[i];
            precision.scale = self.scale.0[i];
            precision.gain = self.gain.0[i];
            component.schedule.margin = self.margin.0[i];
            component.schedule.updates_left = self.updates_left.0[i] as u32;
        }
    }
}

impl ComponentGroup {
    /// From each component's mean and matrix, and the state of the matrix if it was saved.
    pub fn new<'a>(parts: impl Iterator<Item = (&'a [f64], &'a Factor, Option<&'a MatrixState>)>) -> Self {
        let component =
            |(mean, factor, matrix_state): (&[f64], &Factor, _)| Component::new(mean, factor, matrix_state);
        let components: Vec<Component> = parts.map(component).collect();
        let dim = components.first().map_or(0, |component| component.dim());
        let interleaved = (dim <= MAX_COLUMNS).then(|| Box::new(Interleaved::new(&components, dim)));
        let scalars = MatrixScalars::new(&components);
        ComponentGroup { components, interleaved, q: Quad::default(), scalars }
    }

    pub fn count(&self) -> usize {
        self.components.len()
    }

    pub fn mean(&self, i: usize) -> Vec<f64> {
        match &self.interleaved {
            Some(interleaved) => interleaved.mean(i),
            None => self.components[i].unpadded(&self.components[i].mean).to_vec(),
        }
    }

    /// `x − m` of the current row.
    pub fn deviation(&self, i: usize) -> Vec<f64> {
        match &self.interleaved {
            Some(interleaved) => interleaved.deviation(i),
            None => self.components[i].unpadded(&self.components[i].deviation).to_vec(),
        }
    }

    pub fn factor(&self, i: usize) -> Factor {
        self.component(i).to_factor()
    }

    pub fn matrix_state(&self, i: usize) -> MatrixState {
        self.component(i).matrix_state()
    }

    /// A copy of a component that includes every row.
    fn component(&self, i: usize) -> Component {
        let mut component = self.components[i].clone();
        self.scalars.store_lane(i, &mut component);
        if let Some(interleaved) = &self.interleaved {
            let mut current = interleaved.clone();
            current.apply_pending(&mut self.scalars.gain.clone());
            current.store_lane(i, &mut component);
        }
        component
    }

    /// Copies the current numbers of a lane to its component.
    fn flush(&mut self, i: usize) {
        if let Some(interleaved) = &mut self.interleaved {
            interleaved.apply_pending(&mut self.scalars.gain);
            interleaved.store_lane(i, &mut self.components[i]);
        }
        self.scalars.store_lane(i, &mut self.components[i]);
    }

    /// Runs a step on one component that is not done for all lanes together.
    fn with_component<T>(&mut self, i: usize, act: impl FnOnce(&mut Component) -> T) -> T {
        self.flush(i);
        let component = &mut self.components[i];
        let result = act(component);
        self.scalars.load_lane(i, component);
        if let Some(interleaved) = &mut self.interleaved {
            interleaved.load_lane(i, component.precision.as_deref());
        }
        result
    }

    /// Computes the deviations and the quadratic forms of a row, padded with zeros. Returns the quadratic forms.
    #[inline(always)]
    pub fn quadratic_forms<A: Arithmetic>(&mut self, x: &[Quad]) -> A::Vector {
        let zero = A::Vector::splat(0.0);
        let mut form = match &mut self.interleaved {
            Some(interleaved) => {
                interleaved.quadratic_forms::<A, false>(Quad::flat(x), A::Vector::load(&self.scalars.gain))
            }
            None => {
                let mut forms = [zero; 4];
                let places = self.scalars.gain.0.iter().zip(&mut forms);
                for (component, (gain, form)) in self.components.iter_mut().zip(places) {
                    *form = component.quadratic_form::<A>(x, *gain);
                }
                A::Vector::sum_of_each(forms)
            }
        };
        zero.store(&mut self.scalars.gain);
        if self.interleaved.is_some() && !zero.all_at_most(A::Vector::load(&self.scalars.largest_jump)) {
            form = A::Vector::load(&self.quadratic_forms_by_factor(form.to_quad()));
        }
        let q = form * A::Vector::load(&self.scalars.inverse_scale);
        q.store(&mut self.q);
        if zero.all_at_most(q) { q } else { self.repair_quadratic_forms::<A>() }
    }

    /// Replaces the quadratic forms of lanes in the Cholesky form while the others are interleaved.
    #[inline(never)]
    fn quadratic_forms_by_factor(&mut self, mut forms: Quad) -> Quad {
        let Some(interleaved) = &self.interleaved else { return forms };
        for (i, component) in self.components.iter_mut().enumerate() {
            if component.precision.is_none() {
                interleaved.store_lane(i, component);
                forms.0[i] = component.quadratic_form_by_factor();
            }
        }
        forms
    }

    /// Recomputes, by the Cholesky form, quadratic forms that are negative or NaN: rounding has made `M` indefinite.
    #[cold]
    #[inline(never)]
    fn repair_quadratic_forms<A: Arithmetic>(&mut self) -> A::Vector {
        for i in 0..self.count() {
            if !(self.q.0[i] >= 0.0) && self.components[i].precision.is_some() {
                self.q.0[i] = self.with_component(i, Component::quadratic_form_without_precision);
            }
        }
        A::Vector::load(&self.q)
    }

    /// Learns the row of the last call of `quadratic_forms`. Returns how many pivots were raised.
    #[inline(always)]
    pub fn learn<A: Arithmetic>(&mut self, changes: Changes<A::Vector>, floor: &[f64]) -> usize {
        let (zero, one) = (A::Vector::splat(0.0), A::Vector::splat(1.0));
        let Changes { mut r, step, tau, gain, stretch, log_stretch } = changes;
        let step = step.where_positive(r);
        match &mut self.interleaved {
            Some(interleaved) => interleaved.move_means::<A>(step),
            None => {
                for (component, step) in self.components.iter_mut().zip(step.to_array()) {
                    if step > 0.0 {
                        component.move_mean::<A>(step);
                    }
                }
            }
        }
        let mut raised = 0;
        let jump = tau * A::Vector::load(&self.q);
        if !jump.all_at_most(A::Vector::load(&self.scalars.largest_jump)) {
            let mut left = r.to_quad();
            raised = self.learn_separately(&mut left, tau.to_quad(), stretch.to_quad(), floor);
            r = A::Vector::load(&left);
        }
        let scalars = &mut self.scalars;
        let old_inverse = A::Vector::load(&scalars.inverse_scale);
        (gain * old_inverse).where_positive(r).store(&mut scalars.gain);
        let MatrixScalars { log_growth, log_scale, scale, inverse_scale, margin, updates_left, .. } = scalars;
        // Lanes that do not learn the row get τ = 0, even where their own numbers are infinite or NaN.
        let tau = tau.where_positive(r);
        let stretch = zero.if_below(r, stretch, one);
        let t = tau * old_inverse;
        let new_growth = A::Vector::load(log_growth) + ln_1p(jump.where_positive(r));
        new_growth.store(log_growth);
        (A::Vector::load(log_scale) + log_stretch.where_positive(r)).store(log_scale);
        let new_scale = A::Vector::load(scale) * stretch;
        new_scale.store(scale);
        (one / new_scale).store(inverse_scale);
        let new_margin = A::Vector::load(margin) * stretch;
        new_margin.store(margin);
        let left = A::Vector::load(updates_left) - one.where_positive(r);
        left.store(updates_left);
        match &mut self.interleaved {
            Some(interleaved) => interleaved.add_row::<A>(t),
            None => {
                for (component, root) in self.components.iter_mut().zip(t.sqrt().to_array()) {
                    if root > 0.0 {
                        component.add_row::<A>(root);
                    }
                }
            }
        }
        let due = left.if_below(one, one, zero);
        let due = new_margin.if_below(one, one, due);
        let due = A::Vector::splat(most_log_growth(floor.len())).if_below(new_growth, one, due);
        let due = new_scale.if_below(A::Vector::splat(MIN_SCALE), one, due);
        let due = new_scale.if_below(A::Vector::splat(1.0 / MIN_SCALE), due, one);
        let due = due.where_positive(r);
        if !due.all_at_most(zero) {
            raised += self.rebuild(due.to_quad(), floor);
        }
        raised
    }

    /// `Ψ ← factor·Ψ` of every lane, given `ln factor`.
    #[inline(always)]
    pub fn scale<A: Arithmetic>(&mut self, factor: A::Vector, log_factor: A::Vector) {
        let one = A::Vector::splat(1.0);
        let (mut factor, mut log_factor) = (factor, log_factor);
        if !A::Vector::splat(0.0).all_at_most(A::Vector::load(&self.scalars.largest_jump)) {
            let (mut factors, mut logs) = (factor.to_quad(), log_factor.to_quad());
            self.scale_factors(&mut factors, &mut logs);
            (factor, log_factor) = (A::Vector::load(&factors), A::Vector::load(&logs));
        }
        let MatrixScalars { log_scale, scale, inverse_scale, margin, .. } = &mut self.scalars;
        (A::Vector::load(log_scale) + log_factor).store(log_scale);
        let new_scale = A::Vector::load(scale) * factor;
        new_scale.store(scale);
        (one / new_scale).store(inverse_scale);
        (A::Vector::load(margin) * factor).store(margin);
    }

    /// Scales the lanes in the Cholesky form, and sets their factors to 1.
    #[inline(never)]
    fn scale_factors(&mut self, factors: &mut Quad, logs: &mut Quad) {
        for (i, component) in self.components.iter_mut().enumerate() {
            if component.precision.is_none() {
                component.factor.scale_by(factors.0[i]);
                self.scalars.log_det.0[i] = component.factor.log_det();
                (factors.0[i], logs.0[i]) = (1.0, 0.0);
            }
        }
    }

    /// Learns the row for lanes in the Cholesky form and for lanes with too large a `τq`, and sets their `r` to 0.
    #[inline(never)]
    fn learn_separately(&mut self, r: &mut Quad, tau: Quad, stretch: Quad, floor: &[f64]) -> usize {
        let mut raised = 0;
        for i in 0..self.count() {
            let (tau, stretch) = (tau.0[i], stretch.0[i]);
            if r.0[i] > 0.0 && !(tau * self.q.0[i] <= self.scalars.largest_jump.0[i]) {
                raised += self.with_component(i, |component| component.update_factor(tau, stretch, floor));
                r.0[i] = 0.0;
            }
        }
        raised
    }

    /// Rebuilds the matrices that are due.
    #[cold]
    #[inline(never)]
    fn rebuild(&mut self, due: Quad, floor: &[f64]) -> usize {
        let mut raised = 0;
        for i in 0..self.count() {
            if due.0[i] > 0.0 {
                raised += self.with_component(i, |component| component.rebuild(floor));
            }
        }
        raised
    }
}

mod gaps;
#[cfg(test)]
mod tests;

pub(in crate::learn) use gaps::{CompletedRows, complete};
