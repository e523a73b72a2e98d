//! The instruction sets against each other, and what no tensor of candle's own can show: views that
//! overlap, and the reduction for devices run on the CPU.

use super::bytes::{E2M1, E4M3, E8M0};
use super::element::{Element, Num};
use super::kernel::{CHUNK, Chunk};
use super::layout::View;
use super::path::Path;
use super::vector::WIDTH;
use half::{bf16, f16};

/// Bits that look random.
fn bits(count: usize, seed: u64) -> impl Iterator<Item = u64> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    (0..count).map(move |_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.wrapping_mul(0x2545_f491_4f6c_dd1d)
    })
}

/// A power of two, exact in Miri too.
fn power(exponent: i32) -> f64 {
    f64::from_bits(((1023 + exponent) as u64) << 52)
}

fn near(found: f64, expected: f64, allowed: f64) {
    let equal = found == expected || found.is_nan() && expected.is_nan();
    assert!(
        equal || (found - expected).abs() <= allowed,
        "{found:e} and {expected:e}"
    );
}

fn same(found: &Chunk, expected: &Chunk) {
    assert_eq!(
        format!("{:?}", found.counts),
        format!("{:?}", expected.counts)
    );
    assert_eq!((found.min, found.max), (expected.min, expected.max));
    let (a, b) = (&found.sums, &expected.sums);
    assert_eq!((a.scale, a.count), (b.scale, b.count));
    let root = (b.count * b.squares).sqrt();
    near(a.sum.0, b.sum.0, 1e-14 * root);
    near(a.squares, b.squares, 1e-13 * b.squares);
    // About whatever centre, all of a chunk's differences are the same.
    let mean = |sums: &super::kernel::Sums| sums.center + sums.offset / sums.count.max(1.0);
    near(
        mean(a),
        mean(b),
        1e-14 * (b.squares / b.count.max(1.0)).sqrt(),
    );
    near(a.spread, b.spread, 1e-11 * b.spread.max(1e-20 * b.squares));
}

fn paths_agree<T: Element>(make: impl Fn(u64) -> T) {
    let lengths = (0..40).chain([255, CHUNK - 1, CHUNK]);
    // Miri is slow: a few short ones.
    for count in lengths.step_by(if cfg!(miri) { 19 } else { 1 }) {
        let elements: Vec<T> = bits(count, count as u64 + 1).map(&make).collect();
        let plain = T::chunk(Path::Portable, &elements, false);
        for path in Path::all() {
            for holes in [false, true] {
                same(&T::chunk(path, &elements, holes), &plain);
            }
            for both in [false, true] {
                let any = T::any_alarm(Path::Portable, &elements, both);
                assert_eq!(T::any_alarm(path, &elements, both), any);
            }
        }
    }
}

#[test]
fn every_path_gives_the_same() {
    paths_agree(|bits| bits as u8);
    paths_agree(|bits| bits as i16);
    paths_agree(|bits| bits as i32);
    paths_agree(|bits| bits as u32);
    paths_agree(|bits| bits as i64);
    paths_agree(|bits| E4M3(bits as u8));
    paths_agree(|bits| E8M0(bits as u8));
    paths_agree(|bits| E2M1::<false>(bits as u8));
    paths_agree(|bits| E2M1::<true>(bits as u8));
    let unit = |bits: u64| (bits >> 40) as f64 / (1u64 << 24) as f64;
    // Any bits at all, numbers about zero, far from zero, and mostly zero.
    paths_agree(|bits| bf16::from_bits(bits as u16));
    paths_agree(|bits| f16::from_bits(bits as u16));
    paths_agree(|bits| f32::from_bits(bits as u32));
    paths_agree(f64::from_bits);
    paths_agree(|bits| unit(bits) as f32 - 0.5);
    paths_agree(|bits| unit(bits) as f32 + 1000.0);
    paths_agree(|bits| (unit(bits) as f32 - 0.9).max(0.0));
    for size in [1e-310, 1e-200, 1.0, 1e200, 1e307] {
        paths_agree(|bits| (unit(bits) - 0.5) * size);
        paths_agree(|bits| (unit(bits) + 5.0) * size);
    }
}

/// A sum that loses nothing that counts (Neumaier).
fn compensated(numbers: impl Iterator<Item = f64>) -> f64 {
    let (mut sum, mut lost) = (0f64, 0f64);
    for x in numbers {
        let next = sum + x;
        lost += if sum.abs() >= x.abs() {
            (sum - next) + x
        } else {
            (x - next) + sum
        };
        sum = next;
    }
    sum + lost
}

/// What a chunk says of a few numbers, against a loop that a person can check.
fn as_counted(elements: &[f32], path: Path, holes: bool) {
    let chunk = f32::chunk(path, elements, holes);
    let kept = || {
        let wide = elements.iter().map(|x| f64::from(*x));
        wide.filter(|x| x.is_finite())
    };
    let number = |what: fn(f32) -> bool| elements.iter().filter(|x| what(**x)).count() as u64;
    let found = &chunk.counts;
    assert_eq!(found.nan, number(f32::is_nan));
    assert_eq!(found.pos_inf, number(|x| x == f32::INFINITY));
    assert_eq!(found.neg_inf, number(|x| x == f32::NEG_INFINITY));
    assert_eq!(found.zeros, number(|x| x == 0.0));
    assert_eq!(found.subnormal, number(f32::is_subnormal));
    let beyond = |x: f32| x.is_finite() && f64::from(x.abs()) > 0.9 * f64::from(f32::MAX);
    assert_eq!(found.near_max, number(beyond));
    assert_eq!(chunk.sums.count, kept().count() as f64);
    assert_eq!(chunk.min, kept().fold(f64::INFINITY, f64::min));
    assert_eq!(chunk.max, kept().fold(f64::NEG_INFINITY, f64::max));
    let squares = compensated(kept().map(|x| x * x));
    near(chunk.sums.squares, squares, 1e-12 * squares);
    let size = compensated(kept().map(f64::abs));
    near(chunk.sums.sum.0, compensated(kept()), 1e-14 * size);
}

#[test]
fn whatever_stands_at_whatever_place() {
    let rare = [
        f32::NAN,
        f32::INFINITY,
        f32::NEG_INFINITY,
        0.0,
        -0.0,
        f32::MIN_POSITIVE / 2.0,
        f32::MAX,
        -f32::MAX,
    ];
    let longest = if cfg!(miri) { WIDTH + 1 } else { 5 * WIDTH };
    for length in 1..longest {
        for (at, x) in (0..length).flat_map(|at| rare.map(|x| (at, x))) {
            let mut elements: Vec<f32> = (0..length).map(|i| i as f32 - 3.5).collect();
            elements[at] = x;
            // And another kind of them three places on, so that they mix.
            elements[(at + 3) % length] = rare[at % rare.len()];
            for path in Path::all() {
                as_counted(&elements, path, false);
                as_counted(&elements, path, true);
            }
        }
    }
}

#[test]
fn long_sums_lose_nothing_that_counts() {
    let unit = |bits: u64| (bits >> 40) as f32 / (1u64 << 24) as f32;
    for seed in 1..4 {
        for length in [CHUNK, CHUNK - 1, CHUNK / 2 + 3] {
            let mixed: Vec<f32> = bits(length, seed)
                .map(|bits| {
                    if bits % 97 == 0 {
                        f32::NEG_INFINITY
                    } else {
                        unit(bits) - 0.3
                    }
                })
                .collect();
            let finite: Vec<f32> = bits(length, seed).map(|bits| 1e18 * unit(bits)).collect();
            for path in Path::all() {
                for holes in [false, true] {
                    as_counted(&mixed, path, holes);
                    as_counted(&finite, path, holes);
                }
            }
        }
    }
}

#[test]
fn integers_become_the_nearest_f64() {
    let some = [
        0,
        1,
        -1,
        i64::MAX,
        i64::MIN,
        1 << 53,
        (1 << 53) + 1,
        -(1 << 32),
        (1 << 62) + 511,
    ];
    for x in some.into_iter().chain(bits(100, 7).map(|bits| bits as i64)) {
        assert_eq!(x.num(), x as f64);
        for path in Path::all() {
            let chunk = i64::chunk(path, &[x; 3], false);
            assert_eq!((chunk.min, chunk.max), (x as f64, x as f64));
            let (sum, lost) = chunk.sums.sum;
            assert_eq!(sum as i128 + lost as i128, 3 * i128::from(x));
        }
    }
}

/// The first of `elements` alone must be what its own decoder says, in every set of instructions.
fn decodes<T: Element>(element: T, expected: f64) {
    let equal = |x: f64| x == expected || x.is_nan() && expected.is_nan();
    assert!(
        equal(element.num().wide()),
        "{} is not {expected}",
        element.num().wide()
    );
    for path in Path::all() {
        let chunk = T::chunk(path, &[element; 2 * WIDTH], false);
        if expected.is_finite() {
            assert_eq!((chunk.min, chunk.max), (expected, expected));
        } else {
            assert_eq!(chunk.sums.count, 0.0);
        }
    }
}

#[test]
fn short_floats_are_decoded_as_their_crate_does() {
    let step = if cfg!(miri) { 251 } else { 1 };
    for bits in (0..=u16::MAX).step_by(step) {
        decodes(bf16::from_bits(bits), bf16::from_bits(bits).to_f64());
        decodes(f16::from_bits(bits), f16::from_bits(bits).to_f64());
    }
}

#[test]
fn bytes_are_decoded_by_their_definition() {
    for bits in 0..=u8::MAX {
        let sign = if bits & 0x80 == 0 { 1.0 } else { -1.0 };
        let (exponent, mantissa) = (i32::from(bits >> 3 & 15), f64::from(bits & 7));
        let e4m3 = match (exponent, mantissa) {
            (15, 7.0) => f64::NAN,
            (0, _) => sign * mantissa / 8.0 * power(-6),
            _ => sign * (1.0 + mantissa / 8.0) * power(exponent - 7),
        };
        decodes(E4M3(bits), e4m3);
        let e8m0 = if bits == 255 {
            f64::NAN
        } else {
            power(i32::from(bits) - 127)
        };
        decodes(E8M0(bits), e8m0);
        let e2m1 = |half: u8| {
            let size = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0][usize::from(half & 7)];
            if half & 8 == 0 { size } else { -size }
        };
        decodes(E2M1::<false>(bits), e2m1(bits & 15));
        decodes(E2M1::<true>(bits), e2m1(bits >> 4));
    }
}

#[test]
fn all_cells_of_overlapping_views() {
    let data: Vec<f32> = (0..6000).map(|i| i as f32).collect();
    // Windows over a signal, and steps that meet by chance.
    let views = [
        (vec![50, 7], vec![2, 1], 3),
        (vec![7, 50], vec![1, 2], 0),
        (vec![20, 30, 4], vec![3, 5, 2], 9),
        (vec![2, 1500], vec![1000, 1], 0),
        (vec![3, 2000, 2], vec![0, 1, 1], 5),
    ];
    for (dims, strides, offset) in views {
        let view = View::new(&dims, &strides, offset, data.len()).unwrap();
        let mut found = Vec::new();
        view.chunks(&data, |chunk| {
            assert!(chunk.len() <= CHUNK);
            found.extend_from_slice(chunk);
        });
        let mut cells = vec![offset];
        for (len, stride) in dims.iter().zip(&strides).filter(|(_, stride)| **stride > 0) {
            cells = cells
                .iter()
                .flat_map(|c| (0..*len).map(move |i| c + i * stride))
                .collect();
        }
        let mut expected: Vec<f32> = cells.iter().map(|cell| data[*cell]).collect();
        expected.sort_by(f32::total_cmp);
        found.sort_by(f32::total_cmp);
        assert_eq!(found, expected);
        assert_eq!(view.elements, dims.iter().product::<usize>() as u64);
    }
}

#[test]
fn views_beyond_the_storage_are_refused() {
    assert!(View::new(&[3], &[2], 0, 5).is_ok());
    assert!(View::new(&[3], &[2], 1, 5).is_err());
    assert!(View::new(&[], &[], 0, 0).is_err());
    assert!(View::new(&[usize::MAX, 2], &[usize::MAX, 1], 0, 5).is_err());
    assert!(View::new(&[0, 9], &[9, 1], 7, 0).is_ok());
}

#[cfg(not(miri))]
mod on_a_device {
    use super::super::scan::Wanted;
    use super::super::{Statistics, device, statistics};
    use super::bits;
    use candle_core::{DType, Device, Result, Tensor};

    fn same(found: &Statistics, expected: &Statistics) {
        let close = |a: f64, b: f64| (a - b).abs() <= 1e-12 * b.abs() + 1e-15 * expected.rms;
        assert!(close(found.rms, expected.rms), "{found:?} and {expected:?}");
        assert!(
            close(found.mean, expected.mean),
            "{found:?} and {expected:?}"
        );
        assert!((found.std - expected.std).abs() <= 1e-9 * expected.std + 1e-15 * expected.rms);
        assert!(close(found.l2, expected.l2));
        let Statistics {
            rms, mean, std, l2, ..
        } = *expected;
        assert_eq!(
            &Statistics {
                rms,
                mean,
                std,
                l2,
                ..found.clone()
            },
            expected
        );
    }

    fn check(tensor: &Tensor) -> Result<()> {
        let expected = statistics(tensor)?;
        same(&device::statistics(tensor)?, &expected);
        let first = device::first(tensor, Wanted::NonFinite)?;
        let place = first.map(|(at, _)| super::super::scan::unravel(at, tensor.dims()));
        assert_eq!(place, expected.first_non_finite);
        Ok(())
    }

    #[test]
    fn the_reduction_gives_what_the_cpu_gives() -> Result<()> {
        let unit = |bits: u64| (bits >> 40) as f64 / f64::from(1 << 24) - 0.25;
        let mut values: Vec<f64> = bits(3 * 5000, 4).map(unit).collect();
        values[77] = 0.0;
        let finite = Tensor::from_vec(values.clone(), (3, 5000), &Device::Cpu)?;
        (values[9000], values[4999]) = (f64::NAN, f64::INFINITY);
        let holed = Tensor::from_vec(values, (3, 5000), &Device::Cpu)?;
        for dtype in [
            DType::F64,
            DType::F32,
            DType::BF16,
            DType::F16,
            DType::F8E4M3,
        ] {
            for tensor in [finite.to_dtype(dtype)?, holed.to_dtype(dtype)?] {
                check(&tensor)?;
                check(&tensor.t()?)?;
                check(&tensor.narrow(1, 100, 4500)?)?;
                check(&tensor.narrow(1, 4999, 1)?.broadcast_as((2, 3, 7))?)?;
            }
        }
        for size in [1e300, 1e-300, 1e-310] {
            check(&finite.affine(size, 0.0)?)?;
        }
        for dtype in [DType::U8, DType::U32, DType::I64] {
            check(&finite.affine(100.0, 30.0)?.to_dtype(dtype)?)?;
        }
        check(&Tensor::zeros((2, 0), DType::F32, &Device::Cpu)?)?;
        check(&Tensor::new(f32::NEG_INFINITY, &Device::Cpu)?)
    }
}
