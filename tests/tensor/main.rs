//! The statistics of tensors, against a reference of compensated f64 sums.

mod alarm;
mod dtypes;
mod exact;
mod layouts;
mod memory;
mod properties;
mod reference;
mod values;
