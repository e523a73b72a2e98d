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
