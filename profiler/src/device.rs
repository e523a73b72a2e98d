//! Naming a device.

/// A device that a sync can wait for.
#[cfg(feature = "candle")]
pub(crate) type DeviceHandle = candle_core::Device;
/// Without candle there is none.
#[cfg(not(feature = "candle"))]
pub(crate) type DeviceHandle = std::convert::Infallible;

/// What `device = EXPR` takes: a candle `Device` or `Tensor`, or a device's name such as `"cuda:0"`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` names no device",
    note = "allowed after `device =` are candle's `Device` and `Tensor`, references to them, and texts"
)]
pub trait DeviceName {
    /// The name in the trace, and the device itself where it is known.
    #[doc(hidden)]
    #[allow(private_interfaces, reason = "for this crate alone")]
    fn describe(&self) -> (String, Option<DeviceHandle>);
}

/// Waits for the device, unless it is recording a graph, which waiting would spoil.
#[cfg(feature = "candle")]
pub(crate) fn synchronize(device: &candle_core::Device) {
    if is_recording(device) {
        return;
    }
    if let Err(error) = device.synchronize() {
        crate::say::once(&format!("the device could not be waited for: {error}"));
    }
}

/// Whether what is enqueued now goes into a graph instead of being run.
#[cfg(feature = "cuda")]
pub(crate) fn is_recording(device: &candle_core::Device) -> bool {
    use candle_core::cuda_backend::cudarc::driver::sys::CUstreamCaptureStatus;
    let candle_core::Device::Cuda(device) = device else {
        return false;
    };
    device.cuda_stream().capture_status()
        == Ok(CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_ACTIVE)
}

/// Only CUDA has such graphs.
#[cfg(all(feature = "candle", not(feature = "cuda")))]
pub(crate) fn is_recording(_: &candle_core::Device) -> bool {
    false
}

/// Bytes used, free and there in all, where the device says so in absolute figures.
#[cfg(feature = "cuda")]
pub(crate) fn memory(device: &candle_core::Device) -> Option<(u64, u64, u64)> {
    use candle_core::cuda_backend::cudarc::driver::result;
    if !device.is_cuda() || is_recording(device) {
        return None;
    }
    // Of the device whose context is current on this thread: candle has just used it.
    let (free, all) = result::mem_get_info().ok()?;
    let (free, all) = (u64::try_from(free).ok()?, u64::try_from(all).ok()?);
    Some((all.saturating_sub(free), free, all))
}

/// Of other devices candle tells nothing.
#[cfg(all(feature = "candle", not(feature = "cuda")))]
pub(crate) fn memory(_: &candle_core::Device) -> Option<(u64, u64, u64)> {
    None
}

#[allow(private_interfaces, reason = "for this crate alone")]
impl DeviceName for str {
    fn describe(&self) -> (String, Option<DeviceHandle>) {
        (self.to_owned(), None)
    }
}

#[allow(private_interfaces, reason = "for this crate alone")]
impl DeviceName for String {
    fn describe(&self) -> (String, Option<DeviceHandle>) {
        (self.clone(), None)
    }
}

#[allow(private_interfaces, reason = "for this crate alone")]
impl<T: DeviceName + ?Sized> DeviceName for &T {
    fn describe(&self) -> (String, Option<DeviceHandle>) {
        (**self).describe()
    }
}

#[cfg(feature = "candle")]
#[allow(private_interfaces, reason = "for this crate alone")]
impl DeviceName for candle_core::Device {
    fn describe(&self) -> (String, Option<DeviceHandle>) {
        let name = crate::instrument::candle::device_label(self);
        (name, Some(self.clone()))
    }
}

#[cfg(feature = "candle")]
#[allow(private_interfaces, reason = "for this crate alone")]
impl DeviceName for candle_core::Tensor {
    fn describe(&self) -> (String, Option<DeviceHandle>) {
        self.device().describe()
    }
}
