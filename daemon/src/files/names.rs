//! Names that are similar to one that does not exist. Pure.

/// Names in an answer.
const MAX_NAMES: usize = 5;
/// The longest name that is compared: the file systems have no longer ones.
const MAX_NAME_CHARS: usize = 255;

/// Keeps the names that are nearest to `wanted`.
pub struct Similar {
    wanted: Vec<char>,
    // The distance and the name, nearest first.
    best: Vec<(usize, String)>,
}

impl Similar {
    pub fn to(wanted: &str) -> Similar {
        Similar { wanted: folded(wanted), best: Vec::new() }
    }

    /// Looks at a name that exists.
    pub fn add(&mut self, name: &str) {
        let folded = folded(name);
        let Some(distance) = self.distance(&folded) else { return };
        let at = self.best.partition_point(|(d, n)| (*d, n.as_str()) <= (distance, name));
        if at < MAX_NAMES {
            self.best.insert(at, (distance, name.to_owned()));
            self.best.truncate(MAX_NAMES);
        }
    }

    pub fn into_names(self) -> Vec<String> {
        self.best.into_iter().map(|(_, name)| name).collect()
    }

    /// Returns the number of edits from one name to the other. None: they are not similar.
    fn distance(&self, name: &[char]) -> Option<usize> {
        let wanted = self.wanted.as_slice();
        if wanted.is_empty() || name.is_empty() {
            return None;
        }
        let (short, long) = if name.len() < wanted.len() { (name, wanted) } else { (wanted, name) };
        let edits = edits(wanted, name);
        let contains = short.len() >= 3 && long.windows(short.len()).any(|part| part == short);
        let stem =
            |name: &[char]| name.iter().rposition(|c| *c == '.').filter(|at| *at > 0).map(|at| name[..at].to_vec());
        let same_stem = stem(wanted).is_some() && stem(wanted) == stem(name);
        (edits * 5 <= long.len() * 2 || contains || same_stem).then_some(edits)
    }
}

fn folded(name: &str) -> Vec<char> {
    name.chars().flat_map(char::to_lowercase).take(MAX_NAME_CHARS).collect()
}

/// Counts the characters to insert, remove or replace.
fn edits(a: &[char], b: &[char]) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, y) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_names_come_first_and_others_not_at_all() {
        let table: [(&str, &[&str], &[&str]); 5] = [
            ("main.rs", &["mian.rs", "main.rc", "lib.rs", "Cargo.toml", "MAIN.RS"], &["MAIN.RS", "main.rc", "mian.rs"]),
            ("config.yml", &["config.yaml", "config.toml", "x"], &["config.yaml", "config.toml"]),
            ("read", &["read.rs", "thread.rs", "a"], &["read.rs", "thread.rs"]),
            ("a", &["b", "", "abc"], &[]),
            ("café.txt", &["cafe\u{301}.txt"], &["cafe\u{301}.txt"]),
        ];
        for (wanted, names, expected) in table {
            let mut similar = Similar::to(wanted);
            names.iter().for_each(|name| similar.add(name));
            assert_eq!(similar.into_names(), expected, "{wanted}");
        }
    }

    #[test]
    fn at_most_five_names_are_kept() {
        let mut similar = Similar::to("file");
        (0..20).for_each(|n| similar.add(&format!("file{n}")));
        assert_eq!(similar.into_names(), ["file0", "file1", "file2", "file3", "file4"]);
    }
}
