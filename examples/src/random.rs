//! Random numbers that are the same in every run.

use candle_core::{Result, Tensor};
use candle_nn::VarMap;

/// The generator `splitmix64`.
///
/// candle's generator on the CPU cannot be seeded, and a program whose accuracy changes from run to run shows little.
/// This one is good enough for initial weights and for shuffling.
#[derive(Debug, Clone)]
pub struct Random {
    state: u64,
}

impl Random {
    /// A generator that gives the same numbers whenever it starts from the same `seed`.
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// The next 64 random bits.
    pub fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.state;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    /// A number from -1 (included) to 1 (excluded), in steps that an `f32` holds exactly.
    pub fn symmetric(&mut self) -> f32 {
        const STEPS: f32 = (1 << 23) as f32;
        let high = (self.next_u64() >> 40) as f32;
        high / STEPS - 1.0
    }

    /// Puts `items` into a random order (Fisher and Yates).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            let other = self.next_u64() % (last as u64 + 1);
            items.swap(last, other as usize);
        }
    }
}

/// Gives every variable of `vars` its first value: matrices are uniform after Kaiming He for a ReLU network,
/// vectors called `weight` (of a norm) are one, everything else (the biases) is zero.
///
/// A matrix of shape (out, in) gets values within ±√(6 / in). The variables are taken in the order of their names,
/// since a `VarMap` has none of its own.
///
/// # Errors
/// What candle says when a value cannot be made or set.
pub fn init_weights(vars: &mut VarMap, random: &mut Random) -> Result<()> {
    let mut shapes: Vec<_> = match vars.data().lock() {
        Ok(data) => data
            .iter()
            .map(|(name, var)| (name.clone(), var.shape().clone(), var.device().clone()))
            .collect(),
        Err(_) => candle_core::bail!(
            "the variables cannot be read: a thread panicked while it changed them"
        ),
    };
    shapes.sort_by(|a, b| a.0.cmp(&b.0));
    for (name, shape, device) in shapes {
        let (middle, bound) = match shape.dims() {
            [_, inputs] => (0.0, (6.0 / *inputs as f32).sqrt()),
            [_] if name.ends_with("weight") => (1.0, 0.0),
            _ => (0.0, 0.0),
        };
        let values: Vec<f32> = (0..shape.elem_count())
            .map(|_| middle + bound * random.symmetric())
            .collect();
        vars.set_one(name, Tensor::from_vec(values, shape, &device)?)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use candle_core::{DType, Device};
    use candle_nn::{VarBuilder, linear};

    #[test]
    fn gives_the_published_numbers_of_splitmix64() {
        let mut random = Random::new(1_234_567);
        let first: Vec<u64> = (0..5).map(|_| random.next_u64()).collect();
        let published = [
            6_457_827_717_110_365_317,
            3_203_168_211_198_807_973,
            9_817_491_932_198_370_423,
            4_593_380_528_125_082_431,
            16_408_922_859_458_223_821,
        ];
        assert_eq!(first, published);
    }

    #[test]
    fn shuffle_keeps_every_item_once() {
        let mut items: Vec<u32> = (0..100).collect();
        Random::new(1).shuffle(&mut items);
        assert_ne!(items, (0..100).collect::<Vec<_>>());
        items.sort_unstable();
        assert_eq!(items, (0..100).collect::<Vec<_>>());
    }

    #[test]
    fn weights_repeat_and_stay_within_the_bound() -> anyhow::Result<()> {
        let make = || -> anyhow::Result<(Vec<f32>, Vec<f32>)> {
            let mut vars = VarMap::new();
            let layer = linear(
                24,
                50,
                VarBuilder::from_varmap(&vars, DType::F32, &Device::Cpu),
            )?;
            init_weights(&mut vars, &mut Random::new(7))?;
            let bias = layer.bias().map(Tensor::to_vec1).transpose()?;
            Ok((
                layer.weight().flatten_all()?.to_vec1()?,
                bias.unwrap_or_default(),
            ))
        };
        let (weight, bias) = make()?;
        assert_eq!((weight.clone(), bias.clone()), make()?);
        // The bound is √(6 / 24); of 1,200 uniform values some come near to both ends of it.
        let (low, high) = weight
            .iter()
            .fold((0f32, 0f32), |(low, high), &w| (low.min(w), high.max(w)));
        assert!((-0.5..-0.49).contains(&low), "{low}");
        assert!((0.49..0.5).contains(&high), "{high}");
        assert_eq!(bias, vec![0.0; 50]);
        Ok(())
    }
}
