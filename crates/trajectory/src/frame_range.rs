//! A range of frames: `start:stop:step`.

use std::fmt;
use std::str::FromStr;
use tapeloop_error::{Error, Result};

/// Every `step`th frame from `start` to before `stop`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameRange {
    start: u32,
    stop: Option<u32>,
    step: u32,
}

impl FrameRange {
    /// All frames.
    pub const ALL: FrameRange = FrameRange {
        start: 0,
        stop: None,
        step: 1,
    };

    /// Whether the frame with this number is in the range.
    pub(super) fn contains(self, frame: u32) -> bool {
        // Asked last, as no earlier frame may be subtracted from.
        let is_on_step = |start: u32| (frame - start).is_multiple_of(self.step);
        frame >= self.start && !self.ends_before(frame) && is_on_step(self.start)
    }

    /// Whether neither the frame nor any later one is in the range.
    pub(super) fn ends_before(self, frame: u32) -> bool {
        self.stop.is_some_and(|stop| frame >= stop)
    }
}

impl FromStr for FrameRange {
    type Err = Error;

    /// Parses `100:200:10`, in which each number may be missing, as in Python.
    fn from_str(text: &str) -> Result<Self> {
        let numbers = text.split(':').map(|number| match number.trim() {
            "" => Ok(None),
            number => number.parse::<u32>().map(Some),
        });
        let numbers: Vec<Option<u32>> = numbers.collect::<Result<_, _>>().unwrap_or_default();
        let range = match numbers[..] {
            [start, stop] => Some((start, stop, None)),
            [start, stop, step] => Some((start, stop, step)),
            _ => None,
        };
        let range = range.map(|(start, stop, step)| FrameRange {
            start: start.unwrap_or(0),
            stop,
            step: step.unwrap_or(1),
        });
        let is_some_frame =
            |range: &FrameRange| range.step > 0 && range.stop.is_none_or(|stop| range.start < stop);
        range.filter(is_some_frame).ok_or_else(|| {
            let error = Error::config(format!("\"{text}\" is not a range of frames"));
            error.fix("write start:stop:step, such as \"100:200:10\", \"100:\" or \"::10\"")
        })
    }
}

impl fmt::Display for FrameRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stop = self.stop.map_or(String::new(), |stop| stop.to_string());
        write!(f, "{}:{stop}:{}", self.start, self.step)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_has_the_frames_of_a_python_slice() {
        let frames = |text: &str| -> Vec<u32> {
            let range: FrameRange = text.parse().unwrap();
            assert_eq!(range.to_string().parse::<FrameRange>().unwrap(), range);
            (0..10).filter(|&frame| range.contains(frame)).collect()
        };
        assert_eq!(frames("0:10:4"), [0, 4, 8]);
        assert_eq!(frames("1:9:4"), [1, 5]);
        assert_eq!(frames("7:"), [7, 8, 9]);
        assert_eq!(frames(":2"), [0, 1]);
        assert_eq!(frames("::5"), [0, 5]);
        assert_eq!(frames(":").len(), 10);
        for wrong in ["", "5", "3:3", "4:3", "0:9:0", "-1:4", "1:2:3:4", "a:b"] {
            let error = wrong.parse::<FrameRange>().unwrap_err().to_string();
            assert!(error.contains("range"), "{error}");
        }
    }
}
