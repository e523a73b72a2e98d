//! Operations of candle that are known to have no backward pass, by the words of a function's text or by the name of
//! a type, and what to write instead.
//!
//! Words never accuse: what went in and what came out does. They only help to say where to look, and they excuse.

/// What the text of a function hints at; the bits are those of the attributes' own table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Hints(pub(crate) u32);

impl Hints {
    /// `softmax_last_dim`.
    pub(crate) const SOFTMAX: Self = Self(1);
    /// `layer_norm`, `LayerNorm`.
    pub(crate) const LAYER_NORM: Self = Self(1 << 1);
    /// `rms_norm`, `RmsNorm`.
    pub(crate) const RMS_NORM: Self = Self(1 << 2);
    /// Another word with `norm` in it, or `ln`.
    pub(crate) const SOME_NORM: Self = Self(1 << 3);
    /// `rope`, `rotary_emb`.
    pub(crate) const ROPE: Self = Self(1 << 4);
    /// `sdpa`.
    pub(crate) const SDPA: Self = Self(1 << 5);
    /// `apply_op1_no_bwd` and its like.
    pub(crate) const NO_BWD: Self = Self(1 << 6);
    /// `QMatMul`, `QTensor`.
    pub(crate) const QUANTIZED: Self = Self(1 << 7);
    /// `detach`, `as_detached_tensor`, `detached`.
    pub(crate) const LEAVES: Self = Self(1 << 8);
    /// A tensor made of nothing: `zeros`, `from_vec`, `randn`.
    pub(crate) const CREATES: Self = Self(1 << 9);
    /// Steps and comparisons: `argmax`, `eq`, `round`.
    pub(crate) const STEPS: Self = Self(1 << 10);
    /// One number taken out of a tensor, mostly to be shown: `to_scalar`.
    pub(crate) const NUMBER: Self = Self(1 << 11);
    /// Many of them, to be shown or to be worked on: `to_vec1`.
    pub(crate) const NUMBERS: Self = Self(1 << 12);

    /// What has no backward pass in candle and is no measure of anything: never computed to be looked at alone.
    const LAYERS: Self = Self(
        Self::LAYER_NORM.0
            | Self::RMS_NORM.0
            | Self::SOME_NORM.0
            | Self::ROPE.0
            | Self::SDPA.0
            | Self::NO_BWD.0
            | Self::QUANTIZED.0,
    );

    pub(crate) fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Whether a known operation without backward pass is named.
    pub(crate) fn names_culprit(self) -> bool {
        self.has(Self(Self::LAYERS.0 | Self::SOFTMAX.0))
    }

    /// Whether that is a layer, which nobody calls just to look at its value.
    pub(crate) fn names_layer(self) -> bool {
        self.has(Self::LAYERS)
    }

    /// Whether that is a norm, which has weights.
    pub(crate) fn names_norm(self) -> bool {
        self.has(Self(
            Self::LAYER_NORM.0 | Self::RMS_NORM.0 | Self::SOME_NORM.0,
        ))
    }

    /// Whether the graph is left on purpose: numbers are taken out of it and a tensor is made again. Numbers alone may be
    /// a print.
    pub(crate) fn leaves(self) -> bool {
        self.has(Self::LEAVES) || self.takes_numbers_out()
    }

    /// Whether it is left that way, by nothing that says so.
    pub(crate) fn takes_numbers_out(self) -> bool {
        let takes_out = Self(Self::NUMBER.0 | Self::NUMBERS.0);
        !self.has(Self::LEAVES) && self.has(takes_out) && self.has(Self::CREATES)
    }

    /// Whether what comes out may not come from what went in.
    pub(crate) fn may_be_unrelated(self) -> bool {
        // Many numbers may go to a helper that makes a tensor of them; one makes no tensor of the same size.
        self.has(Self(Self::CREATES.0 | Self::STEPS.0 | Self::NUMBERS.0))
    }

    /// What the name of a type or of an operation hints at.
    pub(crate) fn of_name(name: &str) -> Self {
        // `candle_nn::layer_norm::RmsNorm` is no LayerNorm.
        let head = name.split('<').next().unwrap_or(name);
        Self::of_words(head.rsplit("::").next().unwrap_or(head))
    }

    /// What any word of a span's name hints at: `Norm::forward`.
    pub(crate) fn of_words(name: &str) -> Self {
        let name = name.to_ascii_lowercase();
        let tables: [(&[&str], Self); 8] = [
            (&["softmax_last_dim"], Self::SOFTMAX),
            (&["layer_norm", "layernorm"], Self::LAYER_NORM),
            (&["rms_norm", "rmsnorm"], Self::RMS_NORM),
            (&["norm"], Self::SOME_NORM),
            (&["rope", "rotary"], Self::ROPE),
            (&["sdpa"], Self::SDPA),
            (&["no_bwd"], Self::NO_BWD),
            (&["qmatmul", "qtensor", "quantized"], Self::QUANTIZED),
        ];
        let named = |words: &[&str]| words.iter().any(|word| name.contains(word));
        let other = ["_slow", "batch", "group", "normal", "grad"];
        let slow = other.iter().any(|other| name.contains(other));
        tables
            .iter()
            .filter(|(words, _)| !slow && named(words))
            .fold(Self::default(), |all, (_, bit)| Self(all.0 | bit.0))
    }

    /// What the name of one operation hints at: some leave the graph, or make a tensor of another's shape alone.
    pub(crate) fn of_operation(name: &str) -> Self {
        let last = name.rsplit(['.', ':']).next().unwrap_or(name);
        match last {
            "detach" | "as_detached_tensor" | "zeros_like" | "ones_like" | "rand_like"
            | "randn_like" => Self::LEAVES,
            _ => Self::of_name(name),
        }
    }

    /// The operations that are likely the cause, each with what to write instead of it.
    pub(crate) fn explain(self) -> Vec<Explanation> {
        const KNOWN: [(Hints, Explanation); 8] = [
            (
                Hints::SOFTMAX,
                Explanation {
                    cause: "softmax_last_dim has no backward pass",
                    twin: "candle_nn::ops::softmax(x, D::Minus1)",
                },
            ),
            (
                Hints::LAYER_NORM,
                Explanation {
                    cause: "LayerNorm has no backward pass for contiguous input",
                    twin: "candle_nn::ops::layer_norm_slow(x, weight, bias, eps)",
                },
            ),
            (
                Hints::RMS_NORM,
                Explanation {
                    cause: "RmsNorm has no backward pass for contiguous input",
                    twin: "RmsNorm::forward_diff(x)",
                },
            ),
            (
                Hints::SOME_NORM,
                Explanation {
                    cause: "LayerNorm and RmsNorm have no backward pass for contiguous input",
                    twin: "candle_nn::ops::layer_norm_slow or RmsNorm::forward_diff",
                },
            ),
            (
                Hints::ROPE,
                Explanation {
                    cause: "the rotary embedding has no backward pass",
                    twin: "candle_nn::rotary_emb::rope_slow or rope_i_slow",
                },
            ),
            (
                Hints::SDPA,
                Explanation {
                    cause: "sdpa has no backward pass",
                    twin: "matmul, candle_nn::ops::softmax, matmul",
                },
            ),
            (
                Hints::QUANTIZED,
                Explanation {
                    cause: "a quantized matmul has no backward pass",
                    twin: "matmul with the dequantized weight",
                },
            ),
            (
                Hints::NO_BWD,
                Explanation {
                    cause: "what apply_op*_no_bwd applies has no backward pass",
                    twin: "apply_op1, apply_op2 or apply_op3, and a `bwd` of the operation",
                },
            ),
        ];
        let exact = self.has(Self(Self::LAYER_NORM.0 | Self::RMS_NORM.0));
        KNOWN
            .iter()
            .filter(|(bit, _)| self.has(*bit) && !(exact && *bit == Self::SOME_NORM))
            .map(|(_, explanation)| *explanation)
            .collect()
    }
}

/// An operation without backward pass, and what to write instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Explanation {
    pub(crate) cause: &'static str,
    pub(crate) twin: &'static str,
}

#[cfg(test)]
mod tests {
    use super::Hints;

    #[test]
    fn names_of_types_and_operations_tell_the_culprit() {
        for (name, twin) in [
            ("candle_nn::layer_norm::LayerNorm", Some("layer_norm_slow")),
            ("candle_nn::layer_norm::RmsNorm", Some("forward_diff")),
            ("softmax_last_dim", Some("softmax(x, D::Minus1)")),
            ("candle_nn::rotary_emb::rope", Some("rope_slow")),
            ("my::Norm", Some("layer_norm_slow or")),
            ("candle_nn::batch_norm::BatchNorm", None),
            ("layer_norm_slow", None),
            ("candle_nn::linear::Linear", None),
            ("softmax", None),
        ] {
            let found = Hints::of_name(name).explain();
            assert!(found.len() < 2, "{name}: {found:?}");
            let said = found.first().map(|found| found.twin);
            let fits = match twin {
                Some(twin) => said.is_some_and(|said| said.contains(twin)),
                None => said.is_none(),
            };
            assert!(fits, "{name}: {said:?}");
        }
    }
}
