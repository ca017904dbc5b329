//! Spans of time as people write them.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// A span of time, as text: `250ms`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(try_from = "String", into = "String")]
pub struct TimeSpan(pub Duration);

/// A span of time, or without bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(try_from = "String", into = "String")]
pub struct WaitLimit(pub Option<Duration>);

/// A text that is no span of time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{span_text}` is no span of time; write 50us, 250ms, 10s, 5min, 12h or 30d")]
pub struct TimeSpanRefusal {
    /// As it was written, not escaped.
    pub span_text: String,
}

impl FromStr for TimeSpan {
    type Err = TimeSpanRefusal;

    fn from_str(text: &str) -> Result<Self, TimeSpanRefusal> {
        let wrong = || TimeSpanRefusal { span_text: text.to_owned() };
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        let n: u64 = text[..digits].parse().map_err(|_| wrong())?;
        let unit_ns: u64 = match text[digits..].trim() {
            "us" => 1_000,
            "ms" => 1_000_000,
            "s" => 1_000_000_000,
            "min" => 60_000_000_000,
            "h" => 3_600_000_000_000,
            "d" => 86_400_000_000_000,
            _ => return Err(wrong()),
        };
        n.checked_mul(unit_ns).map(|ns| Self(Duration::from_nanos(ns))).ok_or_else(wrong)
    }
}

impl fmt::Display for TimeSpan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let us = self.0.as_micros();
        match us {
            _ if us.is_multiple_of(1_000_000) => write!(f, "{}s", us / 1_000_000),
            _ if us.is_multiple_of(1_000) => write!(f, "{}ms", us / 1_000),
            _ => write!(f, "{us}us"),
        }
    }
}

impl TryFrom<String> for TimeSpan {
    type Error = TimeSpanRefusal;

    fn try_from(text: String) -> Result<Self, TimeSpanRefusal> {
        text.parse()
    }
}

impl From<TimeSpan> for String {
    fn from(span: TimeSpan) -> String {
        span.to_string()
    }
}

impl TryFrom<String> for WaitLimit {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        match text.as_str() {
            "unbounded" => Ok(Self(None)),
            text => text
                .parse()
                .map(|TimeSpan(s)| Self(Some(s)))
                .map_err(|e: TimeSpanRefusal| format!("{e}, or unbounded")),
        }
    }
}

impl From<WaitLimit> for String {
    fn from(wait: WaitLimit) -> String {
        wait.0.map_or_else(|| "unbounded".to_owned(), |s| TimeSpan(s).to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_come_back() {
        for text in ["50us", "250ms", "10s", "300s", "0s"] {
            assert_eq!(text.parse::<TimeSpan>().unwrap().to_string(), text);
        }
        assert_eq!("5min".parse::<TimeSpan>().unwrap().to_string(), "300s");
        assert_eq!("2h".parse::<TimeSpan>().unwrap(), "120min".parse().unwrap());
        assert_eq!("3d".parse::<TimeSpan>().unwrap(), "72h".parse().unwrap());
        for text in ["", "5", "ms", "-1s", "1w", "99999999999999999999s", "99999999999999min"] {
            assert!(text.parse::<TimeSpan>().is_err(), "{text}");
        }
    }
}
