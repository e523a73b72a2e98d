//! What a call is given by reference: the operands of an operation, the arguments of a function.

/// References to values, of which those to tensors are told by the types they turn out to have.
pub trait Operands {
    /// Shows each.
    #[cfg(feature = "candle")]
    fn show(&self, see: &mut dyn FnMut(&candle_core::Tensor));

    /// Shows the weights of the norms among them, and gives the name of the last one's type.
    #[cfg(feature = "candle")]
    fn show_weights(&self, see: &mut dyn FnMut(&candle_core::Tensor)) -> Option<&'static str>;
}

macro_rules! operands {
    ($(($($name:ident $index:tt),*))*) => {$(
        impl<$($name: ?Sized),*> Operands for ($(&$name,)*) {
            #[cfg(feature = "candle")]
            fn show(&self, see: &mut dyn FnMut(&candle_core::Tensor)) {
                let _ = &see;
                $(
                    if let Some(tensor) = crate::tensor::as_tensor(self.$index) {
                        see(tensor);
                    }
                )*
            }

            #[cfg(feature = "candle")]
            fn show_weights(
                &self,
                see: &mut dyn FnMut(&candle_core::Tensor),
            ) -> Option<&'static str> {
                let _ = &see;
                let norm = None;
                $(let norm = crate::tensor::norm_weights(self.$index, see).or(norm);)*
                norm
            }
        }
    )*};
}

operands! {
    ()
    (A 0)
    (A 0, B 1)
    (A 0, B 1, C 2)
    (A 0, B 1, C 2, D 3)
    (A 0, B 1, C 2, D 3, E 4)
    (A 0, B 1, C 2, D 3, E 4, F 5)
}
