//! Any values of the variables: an understood setting, or a complaint of one line.

#![no_main]

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use candle_profiler::private::{VARIABLES, read_settings};
use candle_profiler_fuzz::bounded;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    // One value for each variable, parted by line ends; the first may be left out.
    let values: Vec<&[u8]> = data.split(|byte| *byte == b'\n').collect();
    let get = |name: &str| {
        let place = VARIABLES.iter().position(|known| *known == name)?;
        let value = values.get(place)?;
        (!value.is_empty()).then(|| OsString::from_vec(value.to_vec()))
    };
    if let Err(complaint) = bounded(data, || read_settings(&get)) {
        assert!(
            !complaint.is_empty() && !complaint.contains('\n'),
            "{complaint:?}"
        );
    }
});
