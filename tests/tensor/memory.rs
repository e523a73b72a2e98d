//! What the statistics take from the allocator.

use candle_core::{DType, Device, Result, Tensor};
use candle_profiler::tensor::stats::{AlarmOn, has_alarm, statistics};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    static BYTES: Cell<usize> = const { Cell::new(0) };
}

struct Counting;

// SAFETY: all memory comes from the system's allocator, unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let _ = BYTES.try_with(|bytes| bytes.set(bytes.get() + layout.size()));
        // SAFETY: what the caller promises is what is asked for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: what the caller promises is what is asked for.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn taken(work: impl FnOnce()) -> usize {
    let before = BYTES.get();
    work();
    BYTES.get() - before
}

#[test]
fn nothing_grows_with_the_tensor() -> Result<()> {
    let whole = Tensor::full(1.5f32, (2048, 2048), &Device::Cpu)?;
    let holed = Tensor::full(f32::NAN, (2048, 2048), &Device::Cpu)?;
    assert!(
        taken(|| drop(whole.copy())) > 16 << 20,
        "the allocator does not count"
    );
    let half = whole.to_dtype(DType::BF16)?;
    let views = [
        whole.clone(),
        whole.t()?,
        whole.narrow(1, 3, 500)?,
        whole.reshape((2048, 1024, 2))?.narrow(2, 1, 1)?,
        half.clone(),
        half.t()?,
        holed.t()?,
    ];
    for view in views {
        let bytes = taken(|| drop(statistics(&view)));
        assert!(bytes < 64 << 10, "{bytes} bytes for {:?}", view.layout());
        let bytes = taken(|| drop(has_alarm(&view, AlarmOn::default())));
        assert!(bytes < 64 << 10, "{bytes} bytes for {:?}", view.layout());
    }
    Ok(())
}
