//! Axes of charts: where values stand, and the ticks.

use tapeloop_svg::tick_step;

/// The scale of an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AxisScale {
    /// Linear, from zero.
    Linear,
    /// Logarithmic, with ticks at powers of ten.
    Decades,
    /// Logarithmic, with ticks at powers of two.
    Doublings,
    /// For shares near 1: 90%, 99% and 99.9% are equally far apart.
    Tail,
}

/// An axis without its range.
#[derive(Clone, Copy)]
pub(super) struct ChartAxis {
    pub(super) title: &'static str,
    pub(super) scale: AxisScale,
    /// Formats the value of a tick.
    pub(super) tick: fn(f64) -> String,
}

/// The range of an axis and its ticks, as positions on its scale ([`ChartAxis::place`]).
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Ruler {
    pub(super) low: f64,
    pub(super) high: f64,
    pub(super) ticks: Vec<(f64, String)>,
}

impl Ruler {
    /// The coordinate of `place` if the low end of the range is drawn at `from` and the high end at
    /// `to`.
    pub(super) fn between(&self, place: f64, from: f64, to: f64) -> f64 {
        from + (place - self.low) / (self.high - self.low) * (to - from)
    }
}

impl ChartAxis {
    /// The title, with the scale if it is not linear.
    pub(super) fn label(&self) -> String {
        match self.scale {
            AxisScale::Linear => self.title.to_owned(),
            AxisScale::Decades | AxisScale::Doublings => format!("{} (log scale)", self.title),
            AxisScale::Tail => format!("{} (not linear)", self.title),
        }
    }

    /// The position of a value on the scale; `None` if the scale cannot show the value.
    pub(super) fn place(&self, value: f64) -> Option<f64> {
        let place = match self.scale {
            // Ranges of subnormal numbers could not be divided into ticks. No measured value is as small.
            AxisScale::Linear if value.abs() < 1e-60 => 0.0,
            AxisScale::Linear => value,
            AxisScale::Decades => value.log10(),
            AxisScale::Doublings => value.log2(),
            AxisScale::Tail => -(1.0 - value).log10(),
        };
        // Larger values overflow when ranges are divided, and no measured value is as large.
        (place.is_finite() && place.abs() < 1e60).then_some(place)
    }

    /// The range and ticks for `values`, with at most `ticks` ticks; `None` if no value has a
    /// place.
    pub(super) fn ruler(&self, values: impl Iterator<Item = f64>, ticks: usize) -> Option<Ruler> {
        let places: Vec<f64> = values.filter_map(|value| self.place(value)).collect();
        let first = *places.first()?;
        let low = places.iter().copied().fold(first, f64::min);
        let high = places.iter().copied().fold(first, f64::max);
        let ruler = match self.scale {
            AxisScale::Linear => self.linear(low.min(0.0), high, ticks),
            AxisScale::Decades => self.decades(low, high, ticks),
            AxisScale::Doublings => self.doublings(low, high, ticks),
            AxisScale::Tail => self.tail(high, ticks),
        };
        Some(ruler)
    }

    /// A ruler with ticks at equal distances.
    fn linear(&self, low: f64, high: f64, ticks: usize) -> Ruler {
        let high = if high > low { high } else { low + 1.0 };
        let step = tick_step(high - low, ticks.max(1) as f64);
        let first = (low / step).ceil() as i64;
        let last = (high / step).floor() as i64;
        let values = (first..=last).map(|tick| tick as f64 * step);
        // Zero needs no unit.
        let text = |value: f64| {
            if value == 0.0 {
                "0".to_owned()
            } else {
                (self.tick)(value)
            }
        };
        Ruler {
            low,
            // Room above the highest marker.
            high: high + (high - low) * 0.06,
            ticks: values.map(|value| (value, text(value))).collect(),
        }
    }

    /// A ruler of a logarithmic scale; places are powers of ten.
    fn decades(&self, low: f64, high: f64, ticks: usize) -> Ruler {
        // The range is at least a third of a decade, so that noise does not fill the chart, and markers keep a
        // distance from its edges.
        let spare = ((0.35 - (high - low)) / 2.0)
            .max(0.04 * (high - low))
            .max(0.05);
        let (low, high) = (low - spare, high + spare);
        let decades = low.floor() as i32..=high.ceil() as i32;
        let ticks_of = |parts: &[f64], every: usize| -> Vec<f64> {
            let steps = decades.clone().filter(|d| d.rem_euclid(every as i32) == 0);
            let values = steps.flat_map(|d| parts.iter().map(move |part| part * 10_f64.powi(d)));
            let fits = |value: &f64| (low..=high).contains(&value.log10());
            values.filter(fits).collect()
        };
        // A label at each, such as `1.2 ms`, has room in a third of a decade.
        const FINE: [f64; 9] = [1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 5.0, 7.0, 8.5];
        let mut choices = vec![
            ticks_of(&FINE, 1),
            ticks_of(&[1.0, 2.0, 5.0], 1),
            ticks_of(&[1.0, 3.0], 1),
        ];
        // The longest steps have room for 160 decades, of which measurements span a dozen.
        choices.extend((1..40).map(|every| ticks_of(&[1.0], every)));
        // Fine ticks are used only if there would be fewer than three others.
        let plain = choices.iter().skip(1).find(|c| c.len() <= ticks);
        let chosen = match plain {
            Some(plain) if plain.len() >= 3 || choices[0].len() > ticks => plain.clone(),
            _ => choices[0].clone(),
        };
        let text = |value: f64| (value.log10(), (self.tick)(value));
        Ruler {
            low,
            high,
            ticks: chosen.into_iter().map(text).collect(),
        }
    }

    /// A ruler of a logarithmic scale; places are powers of two.
    fn doublings(&self, low: f64, high: f64, ticks: usize) -> Ruler {
        // Markers keep a distance from the edges of the chart.
        let spare = (0.03 * (high - low)).max(0.25);
        let (first, last) = (low.ceil() as i64, high.floor() as i64);
        let every = ((last - first + 1) as f64 / ticks.max(1) as f64)
            .ceil()
            .max(1.0) as i64;
        let powers = (first..=last).filter(|power| power.rem_euclid(every) == 0);
        Ruler {
            low: low - spare,
            high: high + spare,
            ticks: powers
                .map(|p| (p as f64, (self.tick)((p as f64).exp2())))
                .collect(),
        }
    }

    /// A ruler of shares of batches that stretches towards 1; places are as in [`Self::place`].
    fn tail(&self, high: f64, ticks: usize) -> Ruler {
        // The range reaches 90% at least.
        let high = high.max(1.0);
        let shares = [0.0, 0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999, 0.999_999];
        let mut kept: Vec<(f64, String)> = Vec::new();
        for share in shares {
            let Some(place) = self.place(share).filter(|place| *place <= high) else {
                continue;
            };
            // A tick is left out if its label has no room: the first ticks are close together, and
            // the last have long labels. A letter with its gap takes 0.12 of the room of a tick.
            let text = (self.tick)(share);
            let room = 0.12 * text.chars().count() as f64 / ticks.max(1) as f64 * high;
            if kept.last().is_none_or(|(last, _)| place - last >= room) {
                kept.push((place, text));
            }
        }
        Ruler {
            low: 0.0,
            high: high * 1.03,
            ticks: kept,
        }
    }
}

/// Formats a share from 0 to 1 as a percentage: `99.9%`.
pub(super) fn share(value: f64) -> String {
    let text = format!("{:.4}", value * 100.0);
    format!("{}%", text.trim_end_matches('0').trim_end_matches('.'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format;

    fn texts(axis: &ChartAxis, values: &[f64], ticks: usize) -> Vec<String> {
        let ruler = axis.ruler(values.iter().copied(), ticks).unwrap();
        ruler.ticks.into_iter().map(|(_, text)| text).collect()
    }

    fn axis(scale: AxisScale, tick: fn(f64) -> String) -> ChartAxis {
        let title = "";
        ChartAxis { title, scale, tick }
    }

    #[test]
    fn ticks_are_round_and_no_more_than_fit() {
        let bytes = axis(AxisScale::Doublings, format::bytes);
        assert_eq!(
            texts(&bytes, &[1024.0, 16_777_216.0], 5),
            ["4 KiB", "32 KiB", "256 KiB", "2 MiB", "16 MiB"]
        );
        let time = axis(AxisScale::Decades, format::time_tick);
        assert_eq!(texts(&time, &[8e3, 3e6], 5), ["10 µs", "100 µs", "1 ms"]);
        let linear = axis(AxisScale::Linear, format::time_tick);
        assert_eq!(texts(&linear, &[6e4], 4), ["0", "20 µs", "40 µs", "60 µs"]);
        let tail = axis(AxisScale::Tail, share);
        assert_eq!(
            texts(&tail, &[0.5, 0.99999], 4),
            ["0%", "90%", "99%", "99.9%", "99.99%"]
        );
        assert_eq!(
            texts(&tail, &[0.5, 0.9995], 9),
            ["0%", "50%", "90%", "99%", "99.9%"]
        );
    }

    #[test]
    fn any_values_have_a_ruler_or_none() {
        for scale in [
            AxisScale::Linear,
            AxisScale::Decades,
            AxisScale::Doublings,
            AxisScale::Tail,
        ] {
            let axis = axis(scale, format::plain);
            assert_eq!(axis.ruler([f64::NAN, f64::INFINITY].into_iter(), 5), None);
            for value in [5e-324, 1e-30, 0.3, 1.0, 7.0, 1e30, 1e300] {
                let Some(ruler) = axis.ruler([value, value].into_iter(), 5) else {
                    continue;
                };
                assert!(ruler.high > ruler.low, "{scale:?} {value}");
                assert!(ruler.ticks.len() <= 9, "{scale:?} {value}: {ruler:?}");
            }
        }
    }
}
