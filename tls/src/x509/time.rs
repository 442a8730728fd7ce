//! The two forms of time in a certificate (RFC 5280 §4.1.2.5).

use skerry_core::time::Timestamp;

use super::der::{Malformed, Reader, tag};

/// The next value as a moment, in whole seconds.
///
/// Shape: `YYMMDDHHMMSSZ` as UTCTime for the years 1950 to 2049; `YYYYMMDDHHMMSSZ` as GeneralizedTime for every other one. No fractions,
///   no other zone.
/// Errors: [`Malformed`] for another shape, and for a day that no calendar has.
pub fn time(reader: &mut Reader<'_>) -> Result<Timestamp, Malformed> {
    let element = reader.element()?;
    let digits = element.value.strip_suffix(b"Z").ok_or(Malformed)?;
    let (year, rest) = match (element.tag, digits.len()) {
        (tag::UTC_TIME, 12) => {
            let (year, rest) = digits.split_at_checked(2).ok_or(Malformed)?;
            let year = number(year)?;
            (if year < 50 { 2000 + year } else { 1900 + year }, rest)
        }
        (tag::GENERALIZED_TIME, 14) => {
            let (year, rest) = digits.split_at_checked(4).ok_or(Malformed)?;
            let year = number(year)?;
            // What UTCTime can say must be said by it.
            if (1950..2050).contains(&year) {
                return Err(Malformed);
            }
            (year, rest)
        }
        _ => return Err(Malformed),
    };
    let mut parts = rest.chunks(2).map(number);
    let mut part = |range: core::ops::RangeInclusive<i64>| {
        let part = parts.next().ok_or(Malformed)??;
        if range.contains(&part) {
            Ok(part)
        } else {
            Err(Malformed)
        }
    };
    let month = part(1..=12)?;
    let day = part(1..=days_of(year, month))?;
    let (hour, minute, second) = (part(0..=23)?, part(0..=59)?, part(0..=59)?);
    Ok(Timestamp(
        (((days_before(year, month) + day - 1) * 24 + hour) * 60 + minute) * 60_000 + second * 1000,
    ))
}

/// A moment by the calendar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Civil {
    /// Astronomical: 0 is 1 BC.
    pub year: i64,
    /// 1 to 12.
    pub month: i64,
    /// 1 to 31.
    pub day: i64,
    /// 0 to 23.
    pub hour: i64,
    /// 0 to 59.
    pub minute: i64,
    /// 0 to 59.
    pub second: i64,
}

impl Civil {
    /// When `moment` is, in UTC; a fraction of a second is left out.
    #[must_use]
    pub fn of(moment: Timestamp) -> Self {
        let seconds = moment.0.div_euclid(1000);
        let (mut day, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
        // Never too late, whichever years are the long ones; the loop makes up for the others.
        let mut year = 1970 + day.div_euclid(if day < 0 { 365 } else { 366 });
        while day >= days_before(year + 1, 1) {
            year += 1;
        }
        day -= days_before(year, 1);
        let mut month = 1;
        while day >= days_of(year, month) {
            day -= days_of(year, month);
            month += 1;
        }
        Self {
            year,
            month,
            day: day + 1,
            hour: second / 3600,
            minute: second / 60 % 60,
            second: second % 60,
        }
    }
}

/// A moment as `YYYY-MM-DDTHH:MM:SSZ`, for people.
pub struct Readable(pub Timestamp);

impl core::fmt::Display for Readable {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let Civil {
            year,
            month,
            day,
            hour,
            minute,
            second,
        } = Civil::of(self.0);
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
    }
}

fn number(digits: &[u8]) -> Result<i64, Malformed> {
    digits.iter().try_fold(0, |number, digit| match digit {
        b'0'..=b'9' => Ok(number * 10 + i64::from(digit - b'0')),
        _ => Err(Malformed),
    })
}

const fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

const fn days_of(year: i64, month: i64) -> i64 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if is_leap(year) => 29,
        2 => 28,
        _ => 31,
    }
}

/// Days from the begin of 1970 to the begin of `month` of `year`.
fn days_before(year: i64, month: i64) -> i64 {
    let past = year - 1;
    let leap_days = past.div_euclid(4) - past.div_euclid(100) + past.div_euclid(400) - 477;
    (year - 1970) * 365 + leap_days + (1..month).map(|month| days_of(year, month)).sum::<i64>()
}

#[cfg(test)]
mod tests {
    use std::string::ToString;
    use std::vec::Vec;

    use super::*;

    fn read(tag: u8, text: &str) -> Result<Timestamp, Malformed> {
        let mut bytes = Vec::from([tag, text.len() as u8]);
        bytes.extend(text.as_bytes());
        time(&mut Reader::new(&bytes))
    }

    #[test]
    fn moments_are_read_and_written() {
        for (tag, text, seconds, readable) in [
            (tag::UTC_TIME, "700101000000Z", 0, "1970-01-01T00:00:00Z"),
            (tag::UTC_TIME, "500101000000Z", -631_152_000, "1950-01-01T00:00:00Z"),
            (tag::UTC_TIME, "491231235959Z", 2_524_607_999, "2049-12-31T23:59:59Z"),
            (tag::UTC_TIME, "000229120000Z", 951_825_600, "2000-02-29T12:00:00Z"),
            (tag::UTC_TIME, "240229120001Z", 1_709_208_001, "2024-02-29T12:00:01Z"),
            (
                tag::GENERALIZED_TIME,
                "20500101000000Z",
                2_524_608_000,
                "2050-01-01T00:00:00Z",
            ),
            (
                tag::GENERALIZED_TIME,
                "99991231235959Z",
                253_402_300_799,
                "9999-12-31T23:59:59Z",
            ),
            (
                tag::GENERALIZED_TIME,
                "00010101000000Z",
                -62_135_596_800,
                "0001-01-01T00:00:00Z",
            ),
            (
                tag::GENERALIZED_TIME,
                "21000301000000Z",
                4_107_542_400,
                "2100-03-01T00:00:00Z",
            ),
        ] {
            assert_eq!(read(tag, text), Ok(Timestamp(seconds * 1000)), "{text}");
            assert_eq!(Readable(Timestamp(seconds * 1000)).to_string(), readable);
        }
    }

    #[test]
    fn other_shapes_and_days_that_are_none_are_refused() {
        for (tag, text) in [
            (tag::UTC_TIME, "7001010000Z"),
            (tag::UTC_TIME, "700101000000+0000"),
            (tag::UTC_TIME, "700101000000"),
            (tag::UTC_TIME, "70010100000-Z"),
            (tag::UTC_TIME, "230229000000Z"),
            (tag::UTC_TIME, "231301000000Z"),
            (tag::UTC_TIME, "230001000000Z"),
            (tag::UTC_TIME, "230100000000Z"),
            (tag::UTC_TIME, "230101240000Z"),
            (tag::UTC_TIME, "230101006000Z"),
            (tag::UTC_TIME, "230101000060Z"),
            (tag::GENERALIZED_TIME, "20491231235959Z"),
            (tag::GENERALIZED_TIME, "20500101000000.5Z"),
            (tag::GENERALIZED_TIME, "21000229000000Z"),
            (tag::INTEGER, "700101000000Z"),
        ] {
            assert_eq!(read(tag, text), Err(Malformed), "{text}");
        }
    }
}
