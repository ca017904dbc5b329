//! `--tune NAME=VALUE`: the tape options that a measurement changes, for the tables of the tuning guide.

use crate::error::Error;
use unitape_tape::{Backing, HelperThreadAffinity, WriterOptions};

/// The requested settings.
#[derive(Clone, Debug)]
pub struct TapeTuning {
    words: Vec<String>,
    segment_bytes: Option<u64>,
    window_segments: Option<u32>,
    prefault_bytes: Option<u64>,
    helpers: HelperThreadAffinity,
    /// Whether the two processes are pinned to cores.
    pub pin: bool,
}

impl TapeTuning {
    /// Reads the words of the command line.
    pub fn parse(words: &[String]) -> Result<Self, Error> {
        let mut tune = Self {
            words: words.to_vec(),
            segment_bytes: None,
            window_segments: None,
            prefault_bytes: None,
            helpers: HelperThreadAffinity::default(),
            pin: true,
        };
        for word in words {
            let wrong = |reason: &str| Error::Usage(format!("--tune {word}: {reason}"));
            let (name, value) = word.split_once('=').ok_or_else(|| wrong("write NAME=VALUE"))?;
            let number = || size(value).ok_or_else(|| wrong("a number, also with KiB, MiB or GiB"));
            match name {
                "segment_bytes" => tune.segment_bytes = Some(number()?),
                "prefault_bytes" => tune.prefault_bytes = Some(number()?),
                "window_segments" => {
                    let window = number()?.try_into().map_err(|_| wrong("too many"))?;
                    tune.window_segments = Some(window);
                }
                "helper_cpus" => {
                    let cpus = value.split(',').map(str::parse).collect::<Result<_, _>>();
                    tune.helpers.cpus = cpus.map_err(|_| wrong("numbers of cores, with commas between"))?;
                }
                "helper_nice" => {
                    let nice = value.parse().map_err(|_| wrong("a number from -20 to 19"))?;
                    tune.helpers.nice_value = Some(nice);
                }
                "pin" => {
                    tune.pin = match value {
                        "on" => true,
                        "off" => false,
                        _ => return Err(wrong("on or off")),
                    }
                }
                _ => {
                    return Err(wrong(
                        "there are segment_bytes, window_segments, prefault_bytes, helper_cpus, helper_nice, pin",
                    ));
                }
            }
        }
        if let Err(e) = tune.helpers.check() {
            return Err(Error::Usage(format!("--tune: {e}")));
        }
        Ok(tune)
    }

    /// Returns the writer's options with these changes.
    pub fn apply(&self, options: &WriterOptions) -> WriterOptions {
        let mut options = options.clone();
        options.segment_bytes = self.segment_bytes.unwrap_or(options.segment_bytes);
        options.prefault_bytes = self.prefault_bytes.unwrap_or(options.prefault_bytes);
        if let (Backing::Hot { window_segments, .. }, Some(wanted)) =
            (&mut options.backing, self.window_segments)
        {
            *window_segments = wanted;
        }
        options.helpers = self.helpers.clone();
        options
    }

    /// Describes the changed options for the record. Returns `None` if nothing was changed.
    pub fn description(&self) -> Option<String> {
        (!self.words.is_empty()).then(|| self.words.join(" "))
    }
}

fn size(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let shift = match &text[digits.len()..] {
        "" => 0,
        "KiB" => 10,
        "MiB" => 20,
        "GiB" => 30,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(1 << shift)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if a tuning word does not change what it names, because the figure would then claim nothing.
    #[test]
    fn words_change_what_they_name_and_wrong_ones_are_usage_errors() {
        let parse =
            |words: &[&str]| TapeTuning::parse(&words.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>());
        let tune =
            parse(&["segment_bytes=16MiB", "window_segments=8", "prefault_bytes=0", "pin=off"]).unwrap();
        let hot = WriterOptions {
            backing: Backing::Hot { dir: None, window_segments: 64 },
            ..WriterOptions::default()
        };
        let options = tune.apply(&hot);
        assert_eq!((options.segment_bytes, options.prefault_bytes, tune.pin), (16 << 20, 0, false));
        assert_eq!(options.backing, Backing::Hot { dir: None, window_segments: 8 });
        assert_eq!(
            tune.description().unwrap(),
            "segment_bytes=16MiB window_segments=8 prefault_bytes=0 pin=off"
        );
        assert_eq!(parse(&[]).unwrap().description(), None);
        for wrong in
            ["segment_bytes", "segment_bytes=x", "pin=1", "cpus=1", "helper_nice=99", "prefault_bytes=9TB"]
        {
            assert!(matches!(parse(&[wrong]), Err(Error::Usage(_))), "{wrong}");
        }
    }
}
