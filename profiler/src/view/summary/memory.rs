//! Peaks and growth of memory.

use super::bounded::Rows;
use super::digest::Digest;
use super::page::{Page, Tone};
use crate::allocator::Taken;
use crate::view::text::{bytes, signed_bytes};

/// Rows shown.
const MOST_SHOWN: usize = 8;

/// The samples of one device.
#[derive(Debug, Default)]
pub(super) struct DeviceRow {
    samples: u64,
    first: u64,
    pub(super) last: u64,
    pub(super) most: u64,
}

impl DeviceRow {
    pub(super) fn take(&mut self, used: u64) {
        if self.samples == 0 {
            self.first = used;
        }
        self.samples += 1;
        self.last = used;
        self.most = self.most.max(used);
    }

    pub(super) fn growth(&self) -> i64 {
        self.last.wrapping_sub(self.first) as i64
    }
}

/// What is known of memory.
#[derive(Debug, Default)]
pub(super) struct Memory {
    /// Of the measured span's thread: bytes allocated less bytes freed, and the most above the start.
    pub(super) step: Option<(i64, u64)>,
    pub(super) devices: Rows<DeviceRow>,
    /// The most bytes of storages that the trace says were alive at once.
    pub(super) storages: Option<u64>,
    /// The process's memory grew from call to call.
    pub(super) growth: Option<String>,
}

pub(super) fn memory(page: &mut Page, digest: &Digest) {
    let mut rows = Vec::new();
    if let Some((net, peak)) = digest.memory.step {
        let name = "heap of the step's thread".to_owned();
        rows.push(vec![name, bytes(peak), signed_bytes(net)]);
    }
    let mut sites: Vec<(&str, Taken)> = digest
        .sites
        .rows
        .iter()
        .filter_map(|site| Some((&*site.name, site.memory?)))
        .filter(|(_, taken)| taken.peak > 0 || taken.net != 0)
        .collect();
    sites.sort_by_key(|(_, taken)| std::cmp::Reverse(taken.peak));
    for (name, taken) in sites.iter().take(MOST_SHOWN) {
        rows.push(vec![
            (*name).to_owned(),
            bytes(taken.peak),
            signed_bytes(taken.net),
        ]);
    }
    for (device, row) in digest.memory.devices.iter().take(MOST_SHOWN) {
        let cells = [bytes(row.most), signed_bytes(row.growth())];
        rows.push([vec![device.to_owned()], cells.to_vec()].concat());
    }
    if let Some(peak) = digest.memory.storages {
        rows.push(vec![
            "recorded storages".to_owned(),
            bytes(peak),
            String::new(),
        ]);
    }
    if !rows.is_empty() {
        page.table(&["memory", "peak", "growth"], &rows);
    }
    if let Some(growth) = &digest.memory.growth {
        if rows.is_empty() {
            page.heading("memory");
        }
        page.sentence(Tone::Plain, 2, growth);
    }
}
