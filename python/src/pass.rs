//! One pass over a stream that several threads of Python may use.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, TryLockError};
use std::thread;
use std::time::Duration;

use gmm_bmm::dist::AnomalyScore;
use gmm_bmm::ndarray::{ArrayView2, s};
use gmm_bmm::{Model, ModelError, OnlineFit, Progress};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use crate::errors::learn_error;
use crate::interrupt::{check_signals, interruptible};
use crate::one::One;
use crate::threads::{forks, with_threads};

/// Numbers that are learned between two looks at pending signals.
const BLOCK: usize = 1 << 18;

/// One pass over a stream of rows. Threads that use it at the same time wait for each other.
#[pyclass(frozen, module = "gmm_bmm._core")]
pub struct Fit {
    pass: Mutex<Pass>,
    /// [`forks`] in the process that locked the pass last.
    locked_in: AtomicU64,
}

pub struct Pass {
    pub fit: OnlineFit,
    /// The model after the latest row, once it was asked for. The next row discards it.
    pub model: Option<Model>,
    /// The score of anomalies under that model with this contamination, once it was asked for.
    pub anomaly_score: Option<(Option<f64>, AnomalyScore)>,
    pub one: One,
}

impl Fit {
    pub fn of(fit: OnlineFit, model: Option<Model>) -> Self {
        let pass = Pass { fit, model, anomaly_score: None, one: One::default() };
        Fit { pass: Mutex::new(pass), locked_in: AtomicU64::new(forks()) }
    }

    pub fn of_model(model: Model) -> Result<Self, ModelError> {
        Ok(Fit::of(model.clone().resume()?, Some(model)))
    }

    /// Uses the pass without the interpreter's lock.
    pub fn with<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut Pass) -> PyResult<T> + Send,
    ) -> PyResult<T> {
        py.detach(|| work(&mut *self.lock()?))
    }

    /// Uses the model after the latest row, without the interpreter's lock.
    pub fn with_model<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut Model) -> PyResult<T> + Send,
    ) -> PyResult<T> {
        self.with(py, |pass| {
            let model = pass.model()?;
            with_threads(|| work(model))?
        })
    }

    /// The pass for work of a moment with the interpreter's lock. `None` if another thread uses it, which may wait for that lock, and
    /// in a forked process, where threads need care.
    pub fn at_once(&self) -> Option<MutexGuard<'_, Pass>> {
        if forks() > 0 { None } else { self.pass.try_lock().ok() }
    }

    fn lock(&self) -> PyResult<MutexGuard<'_, Pass>> {
        let broken = || PyRuntimeError::new_err("an earlier call ended in an internal error");
        let pass = match self.pass.try_lock() {
            Ok(pass) => pass,
            Err(TryLockError::Poisoned(_)) => return Err(broken()),
            Err(TryLockError::WouldBlock) if self.was_locked_at_the_fork() => {
                return Err(PyRuntimeError::new_err(
                    "another thread used this estimator when the process was forked, so this process has it in the \
                     middle of a change: fork while no thread uses it, or pickle it before",
                ));
            }
            Err(TryLockError::WouldBlock) => self.pass.lock().map_err(|_| broken())?,
        };
        self.locked_in.store(forks(), Ordering::Release);
        Ok(pass)
    }

    /// Whether a thread that this process does not have holds the lock.
    fn was_locked_at_the_fork(&self) -> bool {
        let own = forks();
        // A thread of this process that has just taken the lock says so within this time.
        let is_foreign = |_| {
            thread::sleep(Duration::from_millis(1));
            self.locked_in.load(Ordering::Acquire) != own
                && matches!(self.pass.try_lock(), Err(TryLockError::WouldBlock))
        };
        self.locked_in.load(Ordering::Acquire) != own && (0..200).all(is_foreign)
    }
}

impl Pass {
    pub fn observe(&mut self, rows: ArrayView2<f64>, weights: Option<&[f64]>) -> PyResult<()> {
        let block = (BLOCK / rows.ncols().max(1)).max(1);
        let mut from = 0;
        loop {
            let fit = &mut self.fit;
            let to = rows.nrows().min(from + block);
            let (next, weights) = (rows.slice(s![from..to, ..]), weights.map(|weights| &weights[from..to]));
            match with_threads(|| fit.advance_weighted(next, weights))?.map_err(learn_error)? {
                Progress::RevisionDue => drop(interruptible(|stop| fit.revise(stop))?.map_err(learn_error)?),
                Progress::Learned(taken) => from += taken,
            }
            if from < rows.nrows() {
                check_signals()?;
            } else if self.fit.revision_due().is_none() {
                return Ok(());
            }
        }
    }

    /// Runs the closing revision and returns the finished model.
    pub fn finish(&mut self) -> PyResult<&mut Model> {
        self.one.forget();
        let fit = &mut self.fit;
        interruptible(|stop| fit.finish(stop))?.map_err(learn_error)?;
        let model = self.present()?;
        self.anomaly_score = None;
        Ok(self.model.insert(model))
    }

    fn present(&self) -> PyResult<Model> {
        with_threads(|| self.fit.to_model())?.map_err(learn_error)
    }

    /// The model after the latest row. Rows that wait for the start are fitted as if the stream ended here.
    pub fn model(&mut self) -> PyResult<&mut Model> {
        if self.model.is_none() {
            if !self.fit.has_started() {
                return self.finish();
            }
            self.model = Some(self.present()?);
        }
        self.model.as_mut().ok_or_else(|| PyRuntimeError::new_err("there is no model"))
    }

    /// The score of anomalies after the latest row.
    pub fn anomaly_score(&mut self, contamination: Option<f64>) -> PyResult<&AnomalyScore> {
        if self.anomaly_score.as_ref().is_none_or(|(own, _)| *own != contamination) {
            let model = self.model()?;
            self.anomaly_score = Some((contamination, with_threads(|| model.anomaly_score(contamination))?));
        }
        let own = self.anomaly_score.as_ref().map(|(_, score)| score);
        own.ok_or_else(|| PyRuntimeError::new_err("there is no score"))
    }
}
