//! A backend that continues without a treatment that fails: a program may not fit on one node, or
//! may be refused huge pages, and the others should be tried nevertheless.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use numalab_record::study::{Evidence, Observation, Treatment};
use numalab_study::{
    Backend, BackendError, Inspection, Preparation, PrepareError, Prepared, SampleRequest, Scope,
};

/// The reasons for failures, by the treatments' positions.
pub type Failures = Rc<RefCell<BTreeMap<usize, String>>>;

/// A backend with the failures of its treatments.
pub struct Tolerant {
    pub inner: Box<dyn Backend>,
    pub failures: Failures,
}

struct PreparedTolerant {
    inner: Box<dyn Prepared>,
    failures: Failures,
}

/// Returns the position of a treatment of the one factor.
fn position(treatment: &Treatment) -> usize {
    treatment.levels.first().copied().unwrap_or(0)
}

impl PreparedTolerant {
    /// Records a failure of any treatment except the baseline, which must work.
    fn noted<T: Default>(
        &self,
        treatment: &Treatment,
        done: Result<T, BackendError>,
    ) -> Result<T, BackendError> {
        match done {
            Err(error) if position(treatment) > 0 && error != BackendError::Interrupted => {
                let mut failures = self.failures.borrow_mut();
                failures.entry(position(treatment)).or_insert_with(|| error.to_string());
                Ok(T::default())
            }
            done => done,
        }
    }
}

impl Backend for Tolerant {
    fn describe(&self) -> String {
        self.inner.describe()
    }

    fn own_metrics(&self) -> usize {
        self.inner.own_metrics()
    }

    fn inspect(&self, scope: &Scope<'_>) -> Result<Inspection, BackendError> {
        self.inner.inspect(scope)
    }

    fn prepare(self: Box<Self>, scope: &Scope<'_>) -> Result<Preparation, PrepareError> {
        let prepared = self.inner.prepare(scope)?;
        let backend = PreparedTolerant { inner: prepared.backend, failures: self.failures };
        Ok(Preparation { backend: Box::new(backend), ..prepared })
    }
}

impl Prepared for PreparedTolerant {
    fn expect(&mut self, treatments: &[&Treatment]) {
        self.inner.expect(treatments);
    }

    fn apply(&mut self, treatment: &Treatment) -> Result<Vec<Evidence>, BackendError> {
        let done = self.inner.apply(treatment);
        self.noted(treatment, done)
    }

    fn sample(&mut self, request: &SampleRequest<'_>) -> Result<Observation, BackendError> {
        if self.failures.borrow().contains_key(&position(request.treatment)) {
            return Ok(Observation::default());
        }
        let done = self.inner.sample(request);
        self.noted(request.treatment, done)
    }

    fn restore(self: Box<Self>) -> Result<(), BackendError> {
        self.inner.restore()
    }
}
