//! The clock by which retention counts ages. Within one boot it does not follow the wall clock, also not over a restart:
//! a file in the state directory has its time at a moment of this boot.

use crate::clock::{boot_id, boot_ms, set_retention, wall_ms};
use crate::events::disk::{can_pass, open_regular, quarantine, replace};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

const FILE_NAME: &str = "retention_clock";
const MAGIC: [u8; 8] = *b"toolclk1";
const LEN: usize = 44;

/// The retention time at a moment of a boot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Anchor {
    boot: [u8; 16],
    boot_ms: u64,
    at_ms: u64,
}

impl Anchor {
    fn encode(&self) -> [u8; LEN] {
        let mut bytes = [0; LEN];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..24].copy_from_slice(&self.boot);
        bytes[24..32].copy_from_slice(&self.boot_ms.to_le_bytes());
        bytes[32..40].copy_from_slice(&self.at_ms.to_le_bytes());
        let sum = crc32fast::hash(&bytes[..40]);
        bytes[40..].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<Anchor> {
        let whole: &[u8; LEN] = bytes.try_into().ok()?;
        let number = |at: usize| whole.get(at..)?.first_chunk().map(|b| u64::from_le_bytes(*b));
        if whole[..8] != MAGIC || crc32fast::hash(&whole[..40]).to_le_bytes() != whole[40..] {
            return None;
        }
        Some(Anchor { boot: *whole[8..].first_chunk()?, boot_ms: number(24)?, at_ms: number(32)? })
    }
}

/// Decides the retention time now; `now` has the wall clock in `at_ms`. In the boot of the anchor the time goes on from
/// there. If the wall clock is behind that, it is taken: to keep something for too long is bounded by counts and bytes, to
/// forget it too early cannot be undone. After another boot only the wall clock knows how long the machine was off.
fn retention_time(anchor: Option<Anchor>, now: Anchor) -> u64 {
    let known = anchor.filter(|anchor| anchor.boot == now.boot && now.boot != [0; 16]);
    let passed = known.and_then(|anchor| now.boot_ms.checked_sub(anchor.boot_ms)?.checked_add(anchor.at_ms));
    passed.map_or(now.at_ms, |continued| continued.min(now.at_ms))
}

/// Sets the clock of retention, before anything is opened that retention removes. Returns a description of damage.
pub fn start(state_dir: &Path) -> io::Result<Vec<String>> {
    let (path, mut damage) = (state_dir.join(FILE_NAME), Vec::new());
    let anchor = match read(&path) {
        // A power cut right after it was written.
        Ok(bytes) if bytes.is_empty() => Err(String::new()),
        Ok(bytes) => Anchor::decode(&bytes).ok_or_else(|| "does not match its checksum".to_string()),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Err(String::new()),
        Err(e) if can_pass(&e) => return Err(e),
        Err(e) => Err(e.to_string()),
    };
    if let Err(why) = anchor.as_ref()
        && !why.is_empty()
    {
        damage.push(format!("the clock of retention in {}: {why}; it was set by the wall clock", path.display()));
        quarantine(&path, &mut damage);
    }
    let now = Anchor { boot: boot_id(), boot_ms: boot_ms(), at_ms: wall_ms() };
    let at_ms = retention_time(anchor.ok(), now);
    set_retention(at_ms, now.boot_ms);
    if let Err(e) = replace(&path, &Anchor { at_ms, ..now }.encode()) {
        // The next start counts by the wall clock.
        tracing::warn!(%e, path = %path.display(), "failed to write the clock of retention");
    }
    Ok(damage)
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    let file = open_regular(path, File::options().read(true))?;
    let mut bytes = Vec::new();
    file.take(LEN as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: u64 = 86_400_000;
    const THEN: u64 = 20_000 * DAY;

    fn anchor(boot: u8, boot_ms: u64, at_ms: u64) -> Anchor {
        Anchor { boot: [boot; 16], boot_ms, at_ms }
    }

    #[test]
    fn jumps_of_the_wall_clock_ahead_do_not_count_within_a_boot() {
        let before = Some(anchor(1, 1000, THEN));
        for (known, now, expected, what) in [
            (before, anchor(1, 6000, THEN + 5000), THEN + 5000, "no jump"),
            (before, anchor(1, 6000, THEN + 8 * DAY), THEN + 5000, "eight days ahead"),
            (before, anchor(1, 6000, THEN - 365 * DAY), THEN - 365 * DAY, "a year back"),
            (before, anchor(2, 6000, THEN + 8 * DAY), THEN + 8 * DAY, "off for eight days"),
            (before, anchor(1, 999, THEN + DAY), THEN + DAY, "another time namespace"),
            (Some(anchor(0, 1000, THEN)), anchor(0, 6000, THEN + DAY), THEN + DAY, "the boot is not known"),
            (Some(anchor(1, 0, u64::MAX)), anchor(1, 6000, THEN), THEN, "an absurd anchor"),
            (None, anchor(1, 6000, THEN), THEN, "no anchor"),
        ] {
            assert_eq!(retention_time(known, now), expected, "{what}");
        }
    }

    #[test]
    fn the_file_is_as_recorded_and_any_change_is_found() {
        let value = Anchor { boot: *b"0123456789abcdef", boot_ms: 0x1122, at_ms: 0x33_4455 };
        let bytes = value.encode();
        assert_eq!(&bytes[..40], b"toolclk10123456789abcdef\x22\x11\0\0\0\0\0\0\x55\x44\x33\0\0\0\0\0");
        assert_eq!(Anchor::decode(&bytes), Some(value));
        for at in 0..LEN {
            let mut changed = bytes;
            changed[at] ^= 1;
            assert_eq!(Anchor::decode(&changed), None, "byte {at}");
            assert_eq!(Anchor::decode(&bytes[..at]), None, "cut at {at}");
        }
    }
}
