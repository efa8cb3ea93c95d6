//! Formats numbers with their units and three digits, and capitalizes sentences.

/// Shown in place of a missing number.
pub(crate) const NONE: &str = "\u{2013}";

/// Three digits, of them at most three decimals: `0.123`, `0.012`, `12.3`; all digits of a larger number: `1234`.
pub fn digits(value: f64) -> String {
    if !value.is_finite() {
        return NONE.to_owned();
    }
    let size = value.abs();
    // A value that rounds up to one more digit has one decimal less.
    let decimals = match size {
        _ if size == 0.0 || size >= 99.95 => 0,
        _ if size >= 9.995 => 1,
        _ if size >= 0.9995 => 2,
        _ => 3,
    };
    format!("{value:.decimals$}")
}

/// Three digits without trailing zeros, for the ticks of an axis.
fn short(value: f64) -> String {
    let text = digits(value);
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

/// A value in the largest of `units`, each `step` times the one before, in which it is at least 1.
fn scaled(value: f64, step: f64, units: &[&str], number: fn(f64) -> String) -> String {
    if !value.is_finite() {
        return NONE.to_owned();
    }
    let (mut value, mut place) = (value, 0);
    // A value that rounds up to the next unit gets that unit.
    while value.abs() >= step * 0.9995 && place + 1 < units.len() {
        value /= step;
        place += 1;
    }
    match units[place] {
        "" => number(value),
        unit => format!("{} {unit}", number(value)),
    }
}

/// `512 B`, `16 KiB`, `1.5 MiB`.
pub fn bytes(value: f64) -> String {
    scaled(value, 1024.0, &["B", "KiB", "MiB", "GiB", "TiB"], short)
}

/// `832 MB`, with decimal prefixes.
pub fn size(value: f64) -> String {
    scaled(value, 1e3, &["B", "kB", "MB", "GB", "TB"], digits)
}

/// `55.3 GB/s`, with decimal prefixes.
pub fn bytes_per_s(value: f64) -> String {
    scaled(value, 1e3, &["B/s", "kB/s", "MB/s", "GB/s", "TB/s"], digits)
}

/// Like [`bytes_per_s`], in the short form for a tick of an axis.
pub fn bytes_per_s_tick(value: f64) -> String {
    scaled(value, 1e3, &["B/s", "kB/s", "MB/s", "GB/s", "TB/s"], short)
}

/// `9.70 µs`, from nanoseconds.
pub fn time(ns: f64) -> String {
    if ns.is_finite() && ns.abs() >= 0.9995e9 {
        return format!("{} s", digits(ns / 1e9));
    }
    scaled(ns, 1e3, &["ns", "µs", "ms"], digits)
}

/// Like [`time`], in the short form for a tick of an axis.
pub fn time_tick(ns: f64) -> String {
    if ns.is_finite() && ns.abs() >= 0.9995e9 {
        return format!("{} s", short(ns / 1e9));
    }
    scaled(ns, 1e3, &["ns", "µs", "ms"], short)
}

/// `103 k/s`, `1.20 M/s`.
pub fn per_s(value: f64) -> String {
    scaled(value, 1e3, &["/s", "k/s", "M/s", "G/s", "T/s"], digits)
}

/// Like [`per_s`], in the short form for a tick of an axis.
pub fn per_s_tick(value: f64) -> String {
    scaled(value, 1e3, &["/s", "k/s", "M/s", "G/s", "T/s"], short)
}

/// `103 k`, `1.20 M`: a count.
pub fn count(value: f64) -> String {
    scaled(value, 1e3, &["", "k", "M", "G", "T"], digits)
}

/// `1 residue`, `131,072 residues`.
pub fn counted(count: u64, thing: &str) -> String {
    let ending = if count == 1 { "" } else { "s" };
    format!("{} {thing}{ending}", whole(count))
}

/// `131,072`: all digits of a count.
pub fn whole(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `33.5 TFMA/s`.
pub fn fma_per_s(value: f64) -> String {
    const UNITS: [&str; 5] = ["FMA/s", "kFMA/s", "MFMA/s", "GFMA/s", "TFMA/s"];
    scaled(value, 1e3, &UNITS, digits)
}

/// A plain number, for a tick.
pub fn plain(value: f64) -> String {
    // Up to 1e15 every whole number is exact.
    if (1e3..1e15).contains(&value) && value.fract() == 0.0 {
        whole(value as u64)
    } else {
        short(value)
    }
}

/// `5.2`, with more digits near 1: how many times as much.
pub fn factor(ratio: f64) -> String {
    // A ratio that rounds up to one more digit has one decimal less.
    match ratio {
        r if !r.is_finite() => NONE.to_owned(),
        r if r >= 99.5 => format!("{r:.0}"),
        r if r >= 1.995 => format!("{r:.1}"),
        r => format!("{r:.2}"),
    }
}

/// `5.2x`.
pub fn times(ratio: f64) -> String {
    if ratio.is_finite() {
        factor(ratio) + "x"
    } else {
        NONE.to_owned()
    }
}

/// Like [`times`], in the short form for a tick of an axis.
pub fn times_tick(ratio: f64) -> String {
    if ratio.is_finite() {
        format!("{}x", short(ratio))
    } else {
        NONE.to_owned()
    }
}

/// `91%`, from a share.
pub fn percent(share: f64) -> String {
    match share {
        s if !s.is_finite() => NONE.to_owned(),
        // A share that rounds to 10% or more has no decimal.
        s if s != 0.0 && s.abs() < 0.0995 => format!("{:.1}%", s * 100.0),
        s => format!("{:.0}%", s * 100.0),
    }
}

/// Like [`percent`], in the short form for a tick of an axis.
pub fn percent_tick(share: f64) -> String {
    format!("{}%", short(share * 100.0))
}

/// `+5.2%` for a ratio of 1.052.
pub fn change(ratio: f64) -> String {
    if ratio.is_finite() {
        format!("{:+.1}%", (ratio - 1.0) * 100.0)
    } else {
        NONE.to_owned()
    }
}

/// The text with a capital first letter.
pub fn capital(text: &str) -> String {
    let mut letters = text.chars();
    match letters.next() {
        Some(first) => first.to_uppercase().chain(letters).collect(),
        None => String::new(),
    }
}

/// `2026-03-14 09:26 UTC`, from seconds since 1970.
pub fn date(unix_s: f64) -> String {
    // No measurement is thousands of years away.
    if !unix_s.is_finite() || unix_s.abs() > 1e11 {
        return NONE.to_owned();
    }
    let minutes = (unix_s / 60.0).floor() as i64;
    let (year, month, day) = civil(minutes.div_euclid(1440));
    let minute = minutes.rem_euclid(1440);
    let (hour, minute) = (minute / 60, minute % 60);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02} UTC")
}

/// The date of a day counted from 1970, by Howard Hinnant's `civil_from_days`: years begin in
/// March, so that the leap day is their last day.
fn civil(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 {
        (month + 3, 0)
    } else {
        (month - 9, 1)
    };
    (year_of_era + era * 400 + next, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_keep_three_digits_and_take_the_unit_that_fits() {
        assert_eq!(time(9_700.0), "9.70 µs");
        assert_eq!(time(999.7), "1.00 µs");
        assert_eq!(time(61e9), "61.0 s");
        assert_eq!(time_tick(20_000.0), "20 µs");
        assert_eq!(bytes(16_384.0), "16 KiB");
        assert_eq!(bytes(1_572_864.0), "1.5 MiB");
        assert_eq!(bytes_per_s(55.3e9), "55.3 GB/s");
        assert_eq!(per_s(103_092.0), "103 k/s");
        assert_eq!(count(16_384.0), "16.4 k");
        assert_eq!(whole(131_072), "131,072");
        assert_eq!(whole(72), "72");
        assert_eq!(times(5.18), "5.2x");
        assert_eq!(percent(0.912), "91%");
        assert_eq!(percent(0.031), "3.1%");
        assert_eq!(change(1.052), "+5.2%");
        for wrong in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            let texts = [
                time(wrong),
                bytes(wrong),
                per_s(wrong),
                times(wrong),
                percent(wrong),
                date(wrong),
                digits(wrong),
            ];
            assert!(texts.iter().all(|text| text == NONE), "{texts:?}");
        }
    }

    #[test]
    fn dates_are_those_of_the_calendar() {
        assert_eq!(date(0.0), "1970-01-01 00:00 UTC");
        assert_eq!(date(951_782_400.0), "2000-02-29 00:00 UTC");
        assert_eq!(date(1_772_323_199.0), "2026-02-28 23:59 UTC");
        assert_eq!(date(-1.0), "1969-12-31 23:59 UTC");
    }
}
