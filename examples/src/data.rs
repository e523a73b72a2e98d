//! The handwritten digits.

use anyhow::{Context, Result, ensure};
use candle_core::{D, Device, Tensor};

/// 1,797 digits as gzipped lines of comma-separated numbers; `data/README.md` says where they come from.
const FILE: &[u8] = include_bytes!("../data/digits.csv.gz");

/// The pixels of one image of 8 x 8.
const PIXELS: usize = 64;

/// The darkest value of a pixel in the file.
const INK: f32 = 16.0;

/// Images of handwritten digits with the digit that each shows.
#[derive(Debug, Clone)]
pub struct Digits {
    /// Shape (n, 64), `f32`: 8 x 8 pixels row by row, from 0 (paper) to 1 (ink).
    pub images: Tensor,
    /// Shape (n,), `u32`: the digit, 0 to 9.
    pub labels: Tensor,
}

impl Digits {
    /// All 1,797 digits that come with the examples.
    ///
    /// # Errors
    /// The line and column of the file that does not hold what it should, or what candle says when the tensors cannot
    /// be made on `device`.
    pub fn load(device: &Device) -> Result<Self> {
        let mut images = Vec::new();
        let mut labels = Vec::new();
        let mut lines = csv::ReaderBuilder::new()
            .has_headers(false)
            .from_reader(flate2::read::GzDecoder::new(FILE));
        for (at, line) in lines.deserialize().enumerate() {
            let numbers: Vec<u32> = line.with_context(|| format!("digits, line {}", at + 1))?;
            let (&label, pixels) = numbers
                .split_last()
                .with_context(|| format!("digits, line {}: empty", at + 1))?;
            ensure!(
                pixels.len() == PIXELS && label < 10,
                "digits, line {}: {} pixels and class {label}, where {PIXELS} and 0 to 9 are allowed",
                at + 1,
                pixels.len(),
            );
            images.extend(pixels.iter().map(|&pixel| pixel as f32 / INK));
            labels.push(label);
        }
        let n = labels.len();
        Ok(Self {
            images: Tensor::from_vec(images, (n, PIXELS), device)?,
            labels: Tensor::from_vec(labels, n, device)?,
        })
    }

    /// Splits into the digits to train on and a held-out fifth to judge with: every fifth line of the file.
    ///
    /// The file goes from writer to writer, so both parts hold digits of the same people.
    ///
    /// # Errors
    /// What candle says when the rows cannot be gathered.
    pub fn split(&self) -> Result<(Self, Self)> {
        let rows = 0..self.len() as u32;
        let (held_out, training): (Vec<u32>, Vec<u32>) = rows.partition(|row| row % 5 == 4);
        Ok((self.select(&training)?, self.select(&held_out)?))
    }

    /// How many digits there are.
    pub fn len(&self) -> usize {
        self.labels.elem_count()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The digits of these rows, in this order.
    ///
    /// # Errors
    /// A row that is not below [`Digits::len`].
    pub fn select(&self, rows: &[u32]) -> candle_core::Result<Self> {
        let rows = Tensor::new(rows, self.labels.device())?;
        Ok(Self {
            images: self.images.index_select(&rows, 0)?,
            labels: self.labels.index_select(&rows, 0)?,
        })
    }

    /// How many of these digits `logits`, of shape (n, 10), tell right: the largest one names the class.
    ///
    /// # Errors
    /// What candle says when `logits` has another shape.
    pub fn count_right(&self, logits: &Tensor) -> candle_core::Result<usize> {
        let right = logits.argmax(D::Minus1)?.eq(&self.labels)?;
        let sum: u32 = right
            .to_dtype(candle_core::DType::U32)?
            .sum_all()?
            .to_scalar()?;
        Ok(sum as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holds_the_digits_that_scikit_learn_counts() -> Result<()> {
        let digits = Digits::load(&Device::Cpu)?;
        assert_eq!(digits.len(), 1797);
        assert_eq!(digits.images.dims(), [1797, 64]);
        let mut classes = [0; 10];
        for label in digits.labels.to_vec1::<u32>()? {
            classes[label as usize] += 1;
        }
        assert_eq!(classes, [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]);
        let ink = digits.images.max_all()?.to_scalar::<f32>()?;
        let paper = digits.images.min_all()?.to_scalar::<f32>()?;
        assert_eq!((paper, ink), (0.0, 1.0));
        Ok(())
    }

    #[test]
    fn holds_every_fifth_digit_out() -> Result<()> {
        let digits = Digits::load(&Device::Cpu)?;
        let (training, held_out) = digits.split()?;
        assert_eq!((training.len(), held_out.len()), (1438, 359));
        let all = digits.labels.to_vec1::<u32>()?;
        assert_eq!(held_out.labels.to_vec1::<u32>()?[..2], [all[4], all[9]]);
        assert_eq!(
            training.labels.to_vec1::<u32>()?[3..6],
            [all[3], all[5], all[6]]
        );
        Ok(())
    }

    #[test]
    fn counts_what_the_largest_logit_tells_right() -> Result<()> {
        let digits = Digits::load(&Device::Cpu)?.select(&[0, 1, 2])?;
        // The file begins with the digits 0, 1, 2; the last is told to be a 9.
        let mut logits = [[0f32; 10]; 3];
        logits[0][0] = 1.0;
        logits[1][1] = 1.0;
        logits[2][9] = 1.0;
        let logits = Tensor::new(&logits, &Device::Cpu)?;
        assert_eq!(digits.count_right(&logits)?, 2);
        Ok(())
    }
}
