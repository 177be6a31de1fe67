//! The damage to one file, and the random numbers that choose it.

use std::fs::{self, File};
use std::os::unix::fs::{FileExt, symlink};
use std::path::Path;
use std::process::Command;

/// A sequence of random numbers that a seed fixes (SplitMix64).
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        let mut random = Random(seed.wrapping_mul(0x2545_F491_4F6C_DD1D));
        random.next();
        random
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        if bound == 0 { 0 } else { self.next() % bound }
    }

    pub fn pick<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len() as u64) as usize]
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Damage {
    Cut,
    Flip,
    Zero,
    Garbage,
    Grow,
    Remove,
    Directory,
    Link,
    Pipe,
}

impl Damage {
    pub const ALL: [Damage; 9] = [
        Damage::Cut,
        Damage::Flip,
        Damage::Zero,
        Damage::Garbage,
        Damage::Grow,
        Damage::Remove,
        Damage::Directory,
        Damage::Link,
        Damage::Pipe,
    ];

    /// Damages the file. Returns a description.
    pub fn apply(self, path: &Path, random: &mut Random) -> String {
        let len = fs::metadata(path).unwrap().len();
        let open = || File::options().read(true).write(true).open(path).unwrap();
        let from = random.below(len);
        let span = 1 + random.below((len - from).clamp(1, 600));
        match self {
            Damage::Cut => open().set_len(from).unwrap(),
            Damage::Flip => {
                let mut byte = [0];
                if open().read_at(&mut byte, from).unwrap() == 1 {
                    open().write_all_at(&[byte[0] ^ (1 << random.below(8))], from).unwrap();
                }
                return format!("flip a bit of byte {from} of {len}");
            }
            Damage::Zero if len > 0 => open().write_all_at(&vec![0; span as usize], from).unwrap(),
            Damage::Zero => {}
            Damage::Garbage => {
                let bytes: Vec<u8> = (0..span).map(|_| random.next() as u8).collect();
                open().write_all_at(&bytes, from).unwrap();
            }
            Damage::Grow => {
                let bytes: Vec<u8> = (0..1 + random.below(600)).map(|_| random.next() as u8).collect();
                open().write_all_at(&bytes, len).unwrap();
                return format!("grow {len} by {}", bytes.len());
            }
            Damage::Remove => fs::remove_file(path).unwrap(),
            Damage::Directory => {
                fs::remove_file(path).unwrap();
                fs::create_dir(path).unwrap();
            }
            Damage::Link => {
                fs::remove_file(path).unwrap();
                symlink("/etc/hostname", path).unwrap();
            }
            Damage::Pipe => {
                fs::remove_file(path).unwrap();
                assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
            }
        }
        format!("{self:?} at {from} for {span} of {len}")
    }
}
