//! From candle's tensors to records.

use anyhow::{Context, Result};
use candle_core::backprop::GradStore;
use candle_core::{DType, Device, DeviceLocation, Tensor, Var};

use super::{OpRecord, SpanId, TensorRecord, TraceSession};
use crate::capability::{ExpectedGradient, GradientContract, GradientFamilyContract};
use crate::phase::ExecutionStep;
use crate::tensor::gradient_state;
use crate::trace::MemoryCategory;
use crate::trace::memory::{category_for_step, dense_tensor_bytes};

/// What a trace says of a tensor, without the tensor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CandleCapture {
    storage_id: String,
    tensor_id: String,
    /// What the program calls it.
    pub label: Option<String>,
    /// Its shape.
    pub shape: Vec<usize>,
    /// Its element type, as in [`dtype_label`].
    pub dtype: String,
    /// Its device, as in [`device_label`].
    pub device: String,
    /// Its bytes, laid out without gaps.
    pub tensor_bytes: u64,
    /// Whether it is a variable.
    pub requires_grad: bool,
    /// What it is for.
    pub category: MemoryCategory,
}

impl CandleCapture {
    /// Looks at a tensor made in this step.
    pub fn from_tensor(t: &Tensor, step: Option<ExecutionStep>) -> Self {
        let requires_grad = t.is_variable();
        Self {
            storage_id: storage_id(t),
            tensor_id: tensor_id(t),
            label: None,
            shape: t.dims().to_vec(),
            dtype: dtype_label(t.dtype()),
            device: device_label(t.device()),
            tensor_bytes: tensor_dense_bytes(t),
            requires_grad,
            category: match requires_grad {
                true => MemoryCategory::Parameter,
                false => category_for_step(step, false),
            },
        }
    }

    /// Says what the program calls it.
    #[must_use]
    pub fn with_label(self, label: impl Into<String>) -> Self {
        Self {
            label: Some(label.into()),
            ..self
        }
    }

    /// Its storage, which views of it share.
    pub fn storage_id(&self) -> &str {
        &self.storage_id
    }

    /// What candle calls it.
    pub fn tensor_id(&self) -> &str {
        &self.tensor_id
    }
}

/// What a trace says of an operation, without its tensors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CandleOpCapture {
    /// What it is called.
    pub op_name: String,
    /// Ids of the tensors that went in.
    pub inputs: Vec<String>,
    /// The tensor that came out.
    pub output: CandleCapture,
    /// Bytes of all inputs together.
    pub input_tensor_bytes: u64,
    /// How long it took, in nanoseconds.
    pub duration_ns: u64,
    /// When it started, on the session's clock; 0 says that it ended when it is recorded.
    pub timestamp_ns: u64,
}

impl CandleOpCapture {
    /// Looks at an operation's output.
    pub fn new(
        op_name: impl Into<String>,
        inputs: Vec<String>,
        output: &Tensor,
        input_bytes: u64,
        duration_ns: u64,
        timestamp_ns: u64,
        step: Option<ExecutionStep>,
    ) -> Self {
        Self {
            op_name: op_name.into(),
            inputs,
            output: CandleCapture::from_tensor(output, step),
            input_tensor_bytes: input_bytes,
            duration_ns,
            timestamp_ns,
        }
    }
}

/// What candle calls a tensor: `TensorId(7)`.
pub fn tensor_id(t: &Tensor) -> String {
    format!("{:?}", t.id())
}

/// The address of a tensor's storage, which its views share, while it lives.
pub fn storage_id(t: &Tensor) -> String {
    let (storage, _) = t.storage_and_layout();
    format!("storage:{:p}", &*storage)
}

/// `cpu`, `cuda:0`, `metal:0`.
pub fn device_label(device: &Device) -> String {
    match device.location() {
        DeviceLocation::Cpu => "cpu".to_owned(),
        DeviceLocation::Cuda { gpu_id } => format!("cuda:{gpu_id}"),
        DeviceLocation::Metal { gpu_id } => format!("metal:{gpu_id}"),
    }
}

/// `f32`, `bf16`, …
pub fn dtype_label(dtype: DType) -> String {
    format!("{dtype:?}").to_ascii_lowercase()
}

/// Bytes of a tensor laid out without gaps; its storage may be larger.
pub fn tensor_dense_bytes(t: &Tensor) -> u64 {
    dense_tensor_bytes(t.dims(), &dtype_label(t.dtype()))
        .unwrap_or_else(|| (t.elem_count() as u64).saturating_mul(t.dtype().size_in_bytes() as u64))
}

/// [`tensor_dense_bytes`] of several, summed.
pub fn inputs_dense_bytes(tensors: &[&Tensor]) -> u64 {
    tensors
        .iter()
        .fold(0, |sum: u64, t| sum.saturating_add(tensor_dense_bytes(t)))
}

/// Records a tensor.
///
/// # Errors
/// Those of [`TraceSession::record_tensor`].
pub fn record_tensor(session: &TraceSession, span_id: SpanId, cap: &CandleCapture) -> Result<()> {
    let record = TensorRecord {
        tensor_id: cap.tensor_id(),
        label: cap.label.as_deref(),
        shape: &cap.shape,
        dtype: &cap.dtype,
        device: &cap.device,
        requires_grad: cap.requires_grad,
        dense_bytes: Some(cap.tensor_bytes),
        category: cap.category,
    };
    session.record_tensor(span_id, record)
}

/// Records a tensor under the name that the program has for it.
///
/// # Errors
/// Those of [`TraceSession::record_tensor`].
pub fn record_tensor_with_label(
    session: &TraceSession,
    span_id: SpanId,
    label: impl Into<String>,
    tensor: &Tensor,
    step: Option<ExecutionStep>,
) -> Result<()> {
    let capture = CandleCapture::from_tensor(tensor, step).with_label(label);
    record_tensor(session, span_id, &capture)
}

/// Records an operation, then its output.
///
/// # Errors
/// Those of [`TraceSession::record_op`] and [`TraceSession::record_tensor`].
pub fn record_op(session: &TraceSession, span_id: SpanId, cap: &CandleOpCapture) -> Result<()> {
    let record = OpRecord {
        op_name: &cap.op_name,
        inputs: &cap.inputs,
        output: Some(cap.output.tensor_id()),
        shape: &cap.output.shape,
        dtype: &cap.output.dtype,
        device: &cap.output.device,
        duration_ns: cap.duration_ns,
        timestamp_ns: cap.timestamp_ns,
        output_dense_bytes: Some(cap.output.tensor_bytes),
        input_dense_bytes: cap.input_tensor_bytes,
    };
    session.record_op(span_id, record)?;
    record_tensor(session, span_id, &cap.output)
}

/// Named variables whose gradients are all recorded, and the contract that promises it.
#[derive(Debug)]
pub struct GradientCapturePlan {
    root: String,
    entries: Vec<(String, Var)>,
    contract: GradientContract,
}

impl GradientCapturePlan {
    /// Makes the plan, with the variables in the order of their names.
    ///
    /// # Errors
    /// Those of [`GradientContract::new`]: no variable, a name twice, a family without a rule, …
    pub fn from_named_vars(
        root: impl Into<String>,
        vars: impl IntoIterator<Item = (String, Var)>,
        assign_family: impl Fn(&str) -> String,
        families: Vec<GradientFamilyContract>,
    ) -> Result<Self> {
        let root = root.into();
        let mut entries: Vec<(String, Var)> = vars.into_iter().collect();
        entries.sort_by(|(a, _), (b, _)| a.cmp(b));
        let expected = entries
            .iter()
            .map(|(key, _)| ExpectedGradient::new(&root, key, assign_family(key)))
            .collect();
        let contract = GradientContract::new(expected, families)
            .with_context(|| format!("gradient contract of the variables under {root:?}"))?;
        Ok(Self {
            root,
            entries,
            contract,
        })
    }

    /// The set that the names belong to.
    pub fn root(&self) -> &str {
        &self.root
    }

    /// What goes into [`crate::CaptureContract::gradient_contract`], with `gradients` complete.
    pub fn contract(&self) -> &GradientContract {
        &self.contract
    }

    /// The variables by name.
    pub(crate) fn entries(&self) -> &[(String, Var)] {
        &self.entries
    }

    /// Records one gradient for each variable, in the contract's order.
    ///
    /// # Errors
    /// A gradient that cannot be read, and those of [`TraceSession::record_gradient`].
    pub fn record(&self, session: &TraceSession, grads: &GradStore) -> Result<()> {
        for (key, var) in self.entries() {
            let (state, norm) = gradient_state(grads.get(var.as_tensor()))
                .with_context(|| format!("gradient of {key:?}"))?;
            session.record_gradient(&self.root, key, state, norm)?;
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "candle_tests.rs"]
mod tests;
