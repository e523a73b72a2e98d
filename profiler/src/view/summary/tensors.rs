//! Tensor statistics, boiled down to what the summary shows.

use super::bounded::{Names, Rows};
use crate::nonfinite::Good;
use crate::trace::TensorStatsEvent;
use crate::view::text::printable;

/// The statistics of one tensor. What is `None` is not known.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Statistics<'a> {
    pub(crate) shape: &'a [usize],
    pub(crate) dtype: &'a str,
    pub(crate) elements: u64,
    pub(crate) non_finite: u64,
    pub(crate) rms: f64,
    pub(crate) abs_max: f64,
    pub(crate) mean: f64,
    pub(crate) min: Option<f64>,
    pub(crate) max: Option<f64>,
    pub(crate) zeros: Option<u64>,
    pub(crate) nan: Option<u64>,
    pub(crate) pos_inf: Option<u64>,
    pub(crate) neg_inf: Option<u64>,
    /// The index of the first value that is not finite.
    pub(crate) first_non_finite: Option<&'a [usize]>,
    /// What the tensor of this label held when it was all right, as far as is known from elsewhere.
    pub(crate) before: Option<Good>,
    /// Whether these statistics are an alarm. Left open, NaN and +inf are one; where those are
    /// not counted, any value that is not finite.
    pub(crate) alarm: Option<bool>,
}

impl<'a> Statistics<'a> {
    /// An event's figures.
    pub(crate) fn of(event: &'a TensorStatsEvent, alarm: Option<bool>) -> Self {
        let extra = event.extra.as_deref();
        // They are of the finite values.
        let figure = |value: f64| match event.non_finite > 0 && event.non_finite == event.elements {
            true => f64::NAN,
            false => value,
        };
        Self {
            shape: &event.shape,
            dtype: &event.dtype,
            elements: event.elements,
            non_finite: event.non_finite,
            rms: figure(event.rms),
            abs_max: figure(event.abs_max),
            mean: figure(event.mean),
            min: extra.and_then(|extra| extra.min),
            max: extra.and_then(|extra| extra.max),
            zeros: extra.and_then(|extra| extra.zeros),
            nan: extra.and_then(|extra| extra.nan),
            pos_inf: extra.and_then(|extra| extra.pos_inf),
            neg_inf: extra.and_then(|extra| extra.neg_inf),
            first_non_finite: extra.and_then(|extra| extra.first_non_finite.as_deref()),
            before: None,
            alarm,
        }
    }

    pub(crate) fn alarms(&self) -> bool {
        self.alarm.unwrap_or_else(|| self.usually_alarms())
    }

    /// What holds where nothing else is said.
    pub(crate) fn usually_alarms(&self) -> bool {
        match (self.nan, self.pos_inf) {
            (Some(nan), Some(pos_inf)) => nan > 0 || pos_inf > 0,
            _ => self.non_finite > 0,
        }
    }

    /// Whether the place is told.
    pub(super) fn stand_out(&self) -> bool {
        self.alarms() || self.is_all_zero() || self.is_all_equal()
    }

    /// A single value is as often zero by right as not.
    fn is_all_zero(&self) -> bool {
        let zero = match self.zeros {
            Some(zeros) => zeros == self.elements,
            None => self.non_finite == 0 && self.abs_max == 0.0,
        };
        zero && self.elements > 1
    }

    fn is_all_equal(&self) -> bool {
        self.elements > 1 && self.non_finite == 0 && self.min.is_some() && self.min == self.max
    }

    /// `3 of 640 values (2 NaN, 1 +inf), first at [4, 2]`
    pub(crate) fn non_finite_text(&self) -> String {
        let mut text = format!("{} of {} values", self.non_finite, self.elements);
        let parts = [
            (self.nan, "NaN"),
            (self.pos_inf, "+inf"),
            (self.neg_inf, "-inf"),
        ];
        let parts: Vec<String> = parts
            .iter()
            .filter_map(|(count, what)| Some(((*count)?, what)))
            .filter(|(count, _)| *count > 0)
            .map(|(count, what)| format!("{count} {what}"))
            .collect();
        if !parts.is_empty() {
            text += &format!(" ({})", parts.join(", "));
        }
        if let Some(index) = self.first_non_finite {
            text += &format!(", first at {}", printable(&format!("{index:?}"), 60));
        }
        text
    }
}

/// What is shown of one label.
#[derive(Debug, Default)]
pub(super) struct TensorRow {
    pub(super) events: u64,
    /// Type and shape, such as `f32 [64, 10]`.
    pub(super) what: String,
    /// Of the last event, like the next two.
    pub(super) rms: f64,
    pub(super) mean: f64,
    pub(super) abs_max: f64,
    /// Of all events.
    pub(super) non_finite: u64,
    /// Of the last event that did not alarm.
    good: Option<Good>,
    alarmed: bool,
    zero: bool,
    equal: bool,
}

/// Everything that was said of tensors.
#[derive(Debug, Default)]
pub(super) struct Tensors {
    pub(super) rows: Rows<TensorRow>,
    /// The first alarm in execution order, ready to be read.
    pub(super) first_alarm: Option<String>,
    /// Labels that alarmed after it.
    pub(super) later_alarms: Names,
    pub(super) all_zero: Names,
    pub(super) all_equal: Names,
}

impl Tensors {
    /// Takes in the next statistics, in the order of execution.
    pub(super) fn take(&mut self, label: &str, span: &str, statistics: &Statistics<'_>) {
        let alarms = statistics.alarms();
        let mut unknown = TensorRow::default();
        let row = self.rows.row(label).unwrap_or(&mut unknown);
        row.events += 1;
        row.what = described(statistics);
        row.rms = statistics.rms;
        row.mean = statistics.mean;
        row.abs_max = statistics.abs_max;
        row.non_finite = row.non_finite.saturating_add(statistics.non_finite);

        let what = row.what.clone();
        let whole = || {
            format!(
                "{} ({} in {})",
                printable(label, 160),
                what,
                printable(span, 160)
            )
        };
        if alarms {
            match self.first_alarm {
                None => {
                    let mut text = format!("{}: {}", whole(), statistics.non_finite_text());
                    // Many tensors may have one label: which of them came before is known only where it was recorded.
                    if let Some(good) = statistics.before {
                        text += &format!("; before that {}", good.text());
                    } else if let Some(good) = row.good {
                        text += &format!("; the last of this label before it: {}", good.text());
                    }
                    self.first_alarm = Some(text);
                }
                Some(_) if !row.alarmed => self.later_alarms.push(label),
                Some(_) => {}
            }
            row.alarmed = true;
        } else {
            row.good = Some(Good {
                rms: statistics.rms,
                abs_max: statistics.abs_max,
                step: None,
            });
        }
        if statistics.is_all_zero() {
            if !std::mem::replace(&mut row.zero, true) {
                self.all_zero.push(&whole());
            }
        } else if statistics.is_all_equal() && !std::mem::replace(&mut row.equal, true) {
            self.all_equal.push(&whole());
        }
    }
}

/// Type and shape, such as `f32 [64, 10]`.
pub(crate) fn described(statistics: &Statistics<'_>) -> String {
    let text = format!("{} {:?}", statistics.dtype, statistics.shape);
    printable(&text, 40)
}
