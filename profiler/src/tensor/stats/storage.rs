//! The storages of the CPU, each by its element.

use super::Statistics;
use super::bytes::{E2M1, E4M3, E8M0};
use super::element::Element;
use super::layout::View;
use super::moments::Gathered;
use super::path::Path;
use super::scan::{self, Wanted};
use candle_core::{CpuStorage, DType, Error, Layout, Result, WithDType};

/// Runs `$do` with `$data` bound to the elements of a storage that keeps one a cell.
macro_rules! with_elements {
    ($storage:expr, $data:ident => $do:expr, f4($packed:ident) => $f4:expr) => {
        match $storage {
            CpuStorage::U8(v) => {
                let $data = v.as_slice();
                $do
            }
            CpuStorage::U32(v) => {
                let $data = v.as_slice();
                $do
            }
            CpuStorage::I16(v) => {
                let $data = v.as_slice();
                $do
            }
            CpuStorage::I32(v) => {
                let $data = v.as_slice();
                $do
            }
            CpuStorage::I64(v) => {
                let $data = v.as_slice();
                $do
            }
            CpuStorage::BF16(v) => {
                let $data = v.as_slice();
                $do
            }
            CpuStorage::F16(v) => {
                let $data = v.as_slice();
                $do
            }
            CpuStorage::F32(v) => {
                let $data = v.as_slice();
                $do
            }
            CpuStorage::F64(v) => {
                let $data = v.as_slice();
                $do
            }
            CpuStorage::F8E4M3(v) => {
                let $data = wrapped(bytes(v), E4M3);
                $do
            }
            CpuStorage::F8E8M0(v) => {
                let $data = wrapped(v, E8M0);
                $do
            }
            CpuStorage::F4($packed) => $f4,
            CpuStorage::F6E2M3(_) => Err(unknown_packing("f6e2m3")),
            CpuStorage::F6E3M2(_) => Err(unknown_packing("f6e3m2")),
        }
    };
}

/// Statistics of a view of `storage`.
pub(super) fn statistics(storage: &CpuStorage, layout: &Layout) -> Result<Statistics> {
    with_elements!(storage, data => of_elements(data, layout), f4(packed) => of_f4(packed, layout))
}

/// Row-major position and value of the first wanted element.
pub(super) fn first(
    storage: &CpuStorage,
    layout: &Layout,
    wanted: Wanted,
) -> Result<Option<(usize, f64)>> {
    with_elements!(
        storage,
        data => {
            let view = view(layout, data.len())?;
            Ok(scan::alarm(data, &view, Path::detect(), wanted))
        },
        // Every f4 is finite.
        f4(_packed) => Ok(None)
    )
}

fn view(layout: &Layout, cells: usize) -> Result<View> {
    View::new(layout.dims(), layout.stride(), layout.start_offset(), cells)
}

fn of_elements<T: Element>(data: &[T], layout: &Layout) -> Result<Statistics> {
    let view = view(layout, data.len())?;
    let path = Path::detect();
    let mut gathered = Gathered::new();
    // Where one chunk holds something that is not finite, the next most likely does too: masks.
    let mut holes = false;
    view.chunks(data, |elements| {
        let chunk = T::chunk(path, elements, holes);
        holes = chunk.counts.non_finite() > 0;
        gathered.add(&chunk);
    });
    let mut statistics = gathered.finish(view.elements, view.copies, T::FLOAT);
    if statistics.non_finite > 0 {
        statistics.first_non_finite = scan::first(data, &view, path, Wanted::NonFinite)
            .map(|(position, _)| scan::unravel(position, layout.dims()));
    }
    Ok(statistics)
}

/// An f4 storage keeps two elements a byte, which way round candle does not say. For a whole storage
/// that does not matter; the layout still counts elements.
fn of_f4(packed: &[u8], layout: &Layout) -> Result<Statistics> {
    let cells = packed.len().saturating_mul(2);
    let view = view(layout, cells)?;
    if view.elements > 0 && !view.covers(cells) {
        return Err(Error::Msg(format!(
            "statistics of an f4 tensor need all elements of its storage, two a byte; shape {:?} \
             shows a part of {} bytes",
            layout.dims(),
            packed.len()
        )));
    }
    let path = Path::detect();
    let mut gathered = Gathered::new();
    if view.elements > 0 {
        for chunk in packed.chunks(super::kernel::CHUNK) {
            gathered.add(&Element::chunk(path, wrapped(chunk, E2M1::<false>), false));
            gathered.add(&Element::chunk(path, wrapped(chunk, E2M1::<true>), false));
        }
    }
    Ok(gathered.finish(view.elements, view.copies, true))
}

fn unknown_packing(dtype: &str) -> Error {
    Error::Msg(format!(
        "no statistics of dtype {dtype}: candle keeps its packed bytes without saying how they are \
         packed"
    ))
}

/// A type that is one byte, as its wrapper promises by `repr(transparent)`.
trait Byte: Copy {}
impl Byte for E4M3 {}
impl Byte for E8M0 {}
impl<const HIGH: bool> Byte for E2M1<HIGH> {}

/// Bytes seen as the elements that they hold.
fn wrapped<T: Byte>(bytes: &[u8], _: fn(u8) -> T) -> &[T] {
    const { assert!(size_of::<T>() == 1 && align_of::<T>() == 1) };
    // SAFETY: every `Byte` is a transparent wrapper of u8, valid for any value of it; the length
    // counts bytes, and the lifetime is that of the bytes.
    unsafe { std::slice::from_raw_parts(bytes.as_ptr().cast(), bytes.len()) }
}

/// The bytes of candle's f8e4m3, whose crate is not a dependency of ours.
fn bytes<T: WithDType>(elements: &[T]) -> &[u8] {
    const { assert!(matches!(T::DTYPE, DType::F8E4M3) && size_of::<T>() == 1) };
    // SAFETY: the one type of this dtype is `float8::F8E4M3`, a transparent wrapper of u8: one
    // initialised byte each.
    unsafe { std::slice::from_raw_parts(elements.as_ptr().cast(), elements.len()) }
}
