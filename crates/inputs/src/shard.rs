//! A part of the inputs, so that several machines share a set.

use std::fmt;
use std::str::FromStr;
use tapeloop_error::{Error, Result};

/// Every `count`th input, from the one with the number `index`, which starts at 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    index: u64,
    count: u64,
}

impl Shard {
    /// All inputs.
    pub const WHOLE: Shard = Shard { index: 0, count: 1 };

    /// Whether the input with this number, from 0, is in the shard.
    pub fn contains(self, number: u64) -> bool {
        number % self.count == self.index
    }
}

impl FromStr for Shard {
    type Err = Error;

    /// Parses `3/16`, the third of sixteen shards.
    fn from_str(text: &str) -> Result<Self> {
        let parsed = text.split_once('/').and_then(|(number, count)| {
            let number: u64 = number.trim().parse().ok()?;
            let count: u64 = count.trim().parse().ok()?;
            (1..=count).contains(&number).then(|| (number - 1, count))
        });
        let (index, count) = parsed.ok_or_else(|| {
            let error = Error::config(format!("\"{text}\" is not a shard"));
            error.fix("write the third of 16 shards as \"3/16\"")
        })?;
        Ok(Shard { index, count })
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.index + 1, self.count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_input_is_in_one_shard() {
        let shards: Vec<Shard> = (1..=3).map(|k| format!("{k}/3").parse().unwrap()).collect();
        assert_eq!(shards[1].to_string(), "2/3");
        for number in 0..10 {
            let owners: Vec<_> = (0..3)
                .filter(|&index| shards[index as usize].contains(number))
                .collect();
            assert_eq!(owners, [number % 3]);
        }
        assert!(Shard::WHOLE.contains(7));
        for wrong in ["0/3", "4/3", "1/0", "1", "a/b", "", "-1/3"] {
            let error = wrong.parse::<Shard>().unwrap_err().to_string();
            assert!(error.contains(wrong) && error.contains("3/16"), "{error}");
        }
    }
}
