//! The age of what retention removes. Pure: times are arguments.

/// The most that is added to the age limit of what a daemon finds at its start.
const MAX_GRACE_MS: u64 = 3_600_000;

/// Returns the time from which the age of something is counted that has, by its stamp, the age `age_ms`. It is too old an
/// hour from now at the earliest, or a tenth of the limit if that is shorter: the stamp, or the clock that it is compared
/// with, may be wrong, and there must be time to notice.
pub fn counted_from(age_ms: u64, now_ms: u64, max_age_ms: u64) -> u64 {
    let grace = (max_age_ms / 10).min(MAX_GRACE_MS);
    now_ms.saturating_sub(age_ms.min(max_age_ms - grace))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: u64 = 3_600_000;
    const DAY: u64 = 24 * HOUR;
    const NOW: u64 = 20_000 * DAY;

    #[test]
    fn an_age_counts_up_to_an_hour_or_a_tenth_before_the_limit() {
        for (age, limit, counted) in [
            (0, DAY, 0),
            (5 * HOUR, DAY, 5 * HOUR),
            (23 * HOUR, DAY, 23 * HOUR),
            (DAY, DAY, 23 * HOUR),
            (365 * DAY, DAY, 23 * HOUR),
            (8 * DAY, 7 * DAY, 7 * DAY - HOUR),
            (500, 300, 270),
            (DAY, 0, 0),
            (u64::MAX, DAY, 23 * HOUR),
            (DAY, u64::MAX, DAY),
        ] {
            assert_eq!(NOW - counted_from(age, NOW, limit), counted, "age {age}, limit {limit}");
        }
        assert_eq!(counted_from(u64::MAX, 5, u64::MAX), 0);
    }
}
