//! What the text of a function hints at: operations without a backward pass, and ways of leaving the graph on purpose.
//!
//! The bits are those of the run time's `Hints`. They never accuse: they say where to look, and they excuse.

const SOFTMAX: u32 = 1;
const LAYER_NORM: u32 = 1 << 1;
const RMS_NORM: u32 = 1 << 2;
const SOME_NORM: u32 = 1 << 3;
const ROPE: u32 = 1 << 4;
const SDPA: u32 = 1 << 5;
const NO_BWD: u32 = 1 << 6;
const QUANTIZED: u32 = 1 << 7;
const LEAVES: u32 = 1 << 8;
const CREATES: u32 = 1 << 9;
const STEPS: u32 = 1 << 10;
const NUMBER: u32 = 1 << 11;
const NUMBERS: u32 = 1 << 12;

/// The words of a text: identifiers and keywords.
fn words(text: &str) -> impl Iterator<Item = &str> {
    // No word that is looked for holds a letter of another script, so bytes will do.
    text.as_bytes()
        .split(|byte| !(byte.is_ascii_alphanumeric() || *byte == b'_' || !byte.is_ascii()))
        .filter(|word| !word.is_empty())
        .filter_map(|word| std::str::from_utf8(word).ok())
}

/// What a function's text hints at.
pub(crate) fn of(text: &str) -> u32 {
    let mut hints = 0;
    let mut before = "";
    let mut differentiable = false;
    for word in words(text) {
        differentiable |= word == "forward_diff";
        hints |= match word {
            "new" if before == "Tensor" => CREATES,
            word => of_word(word),
        };
        before = word;
    }
    if differentiable {
        // The way out that RmsNorm itself offers.
        hints &= !(RMS_NORM | SOME_NORM);
    }
    hints
}

/// What the parameters hint at: the types of layers among them.
pub(crate) fn of_params(text: &str) -> u32 {
    let layers = LAYER_NORM | RMS_NORM | QUANTIZED;
    words(text).fold(0, |hints, word| hints | of_word(word) & layers)
}

fn of_word(word: &str) -> u32 {
    // Most words of a body are names of one letter, and this is asked of every word.
    if word.len() < 2 {
        return 0;
    }
    match word {
        "softmax_last_dim" => SOFTMAX,
        "layer_norm" | "LayerNorm" | "layernorm" => LAYER_NORM,
        "rms_norm" | "RmsNorm" | "rmsnorm" => RMS_NORM,
        "rope" | "rope_i" | "rope_thd" | "apply_rotary_emb" | "apply_rotary_emb_qkv" => ROPE,
        "sdpa" => SDPA,
        "apply_op1_no_bwd" | "apply_op2_no_bwd" | "apply_op3_no_bwd" => NO_BWD,
        "QMatMul" | "QTensor" | "qmatmul" => QUANTIZED,
        "detach" | "detached" | "as_detached_tensor" => LEAVES,
        "to_vec0" | "to_scalar" => NUMBER,
        "to_vec1" | "to_vec2" | "to_vec3" => NUMBERS,
        "zeros" | "ones" | "zeros_like" | "ones_like" | "full" | "from_vec" | "from_slice"
        | "from_iter" | "arange" | "arange_step" | "rand" | "randn" | "rand_like"
        | "randn_like" | "eye" | "tril2" | "triu2" | "one_hot" | "meshgrid" => CREATES,
        "argmax" | "argmin" | "argmax_keepdim" | "argmin_keepdim" | "arg_sort_last_dim"
        | "sort_last_dim" | "eq" | "ne" | "lt" | "le" | "gt" | "ge" | "broadcast_eq"
        | "broadcast_ne" | "broadcast_lt" | "broadcast_le" | "broadcast_gt" | "broadcast_ge"
        | "round" | "round_to" | "floor" | "ceil" | "sign" => STEPS,
        word if is_norm(word) => SOME_NORM,
        _ => 0,
    }
}

/// A field or function that is some normalisation: `norm1`, `post_attention_norm`, `ln_f`.
fn is_norm(word: &str) -> bool {
    if !word.bytes().any(|byte| matches!(byte, b'n' | b'N')) {
        return false;
    }
    let lower = word.to_ascii_lowercase();
    let other = [
        "normal", "batch", "group", "instance", "slow", "grad", "log",
    ];
    let named = lower.contains("norm") && !other.iter().any(|other| lower.contains(other));
    let short = lower.strip_prefix("ln").is_some_and(|rest| {
        rest.is_empty() || rest.starts_with(|c: char| c == '_' || c.is_ascii_digit())
    });
    named || short
}

/// Whether a function's text calls `backward`.
pub(crate) fn calls_backward(text: &str) -> bool {
    text.contains("backward")
        && words(text).any(|word| matches!(word, "backward" | "backward_step"))
}

/// Whether a word stands in a text.
pub(crate) fn mentions(text: &str, wanted: &str) -> bool {
    let is_letter = |letter: char| letter.is_alphanumeric() || letter == '_';
    text.match_indices(wanted).any(|(at, _)| {
        let before = text.get(..at).and_then(|text| text.chars().next_back());
        let after = text
            .get(at + wanted.len()..)
            .and_then(|text| text.chars().next());
        !before.is_some_and(is_letter) && !after.is_some_and(is_letter)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_hint_at_what_cuts_and_what_leaves() {
        for (text, hints) in [
            ("candle_nn::ops::softmax_last_dim(&x)", SOFTMAX),
            ("softmax(&x, D::Minus1)", 0),
            ("self . norm1 . forward (& x)", SOME_NORM),
            ("self.ln_f.forward(x)", SOME_NORM),
            ("let ln = linear(x)", SOME_NORM),
            ("self.norm.forward_diff(x)", 0),
            ("candle_nn::ops::layer_norm_slow(x, w, b, 1e-5)", 0),
            ("candle_nn::ops::layer_norm(x, w, b, 1e-5)", LAYER_NORM),
            ("self.batch_norm.forward_t(x, true)", 0),
            ("candle_nn::rotary_emb::rope(x, cos, sin)", ROPE),
            ("candle_nn::rotary_emb::rope_slow(x, cos, sin)", 0),
            ("x.apply_op1_no_bwd(&Mine)", NO_BWD),
            ("x.sqr()?.detach()", LEAVES),
            ("y.mean_all()?.to_scalar::<f32>()?", NUMBER),
            ("y.to_vec2::<f32>()?", NUMBERS),
            ("Tensor::new(x.to_vec1::<f32>()?, d)", NUMBERS | CREATES),
            ("Tensor::new(0f32, d)", CREATES),
            ("Linear::new(w, None)", 0),
            ("logits.argmax(1)?.eq(labels)", STEPS),
            ("x.randn_like(0., 1.)", CREATES),
            ("normalize(x)", 0),
            ("global_grad_norm(x)", 0),
        ] {
            assert_eq!(of(text), hints, "{text}");
        }
    }

    #[test]
    fn only_whole_words_count() {
        assert!(calls_backward("loss.backward()?") && calls_backward("opt.backward_step(&loss)"));
        assert!(!calls_backward("self.backwards(x)"));
        assert!(mentions("f(x)", "x") && mentions("x", "x") && mentions("max.x", "x"));
        assert!(!mentions("max + xs", "x"));
    }
}
