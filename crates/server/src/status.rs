//! Asks a monitor whether its run is well.

use serde::Deserialize;
use std::time::Duration;

/// What a monitor answered.
#[derive(Clone, Debug)]
pub struct RunStatus {
    /// Whether the run is ready.
    pub is_ready: bool,
    /// Why it is not.
    pub reasons: Vec<StatusReason>,
    /// The figures.
    pub figures: Vec<StatusFigure>,
}

/// A reason why a run is not ready.
#[derive(Clone, Debug, Deserialize)]
pub struct StatusReason {
    /// Its kind, see [`crate::monitor::NotReadyCode`].
    pub code: String,
    /// The reason in words.
    pub what: String,
}

/// A figure of the page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatusFigure {
    /// Its name.
    pub name: String,
    /// The value of its label: a feed or a cursor.
    pub label: Option<String>,
    /// Its value.
    pub value: String,
}

/// The monitor cannot be asked, or is none.
#[derive(Debug, thiserror::Error)]
#[error("{url}: {reason}")]
pub struct StatusError {
    /// The address that was asked.
    pub url: String,
    /// The problem, in words.
    pub reason: String,
}

impl RunStatus {
    /// Asks the monitor at `url`, such as `http://127.0.0.1:9464`.
    ///
    /// # Errors
    /// Fails if nobody answers within ten seconds, or if the answer is not that of a monitor.
    pub fn ask(url: &str) -> Result<Self, StatusError> {
        #[derive(Deserialize)]
        struct Ready {
            ready: bool,
            reasons: Vec<StatusReason>,
        }
        let url = url.trim_end_matches('/');
        let not_ours = |reason: String| StatusError {
            url: url.to_owned(),
            reason: format!("who answers is not a monitor of unitape: {reason}"),
        };
        let other_status = |page: &str, status: u16| match status {
            // Ours could not answer, perhaps, or one in between could not reach it.
            500.. => StatusError { url: url.to_owned(), reason: status_words(page, status) },
            _ => not_ours(status_words(page, status)),
        };
        let (ready_status, ready) = fetch_page(&format!("{url}/readyz"))?;
        if ready_status != 200 && ready_status != 503 {
            return Err(other_status("readyz", ready_status));
        }
        let Ready { ready, reasons } =
            serde_json::from_str(&ready).map_err(|error| not_ours(format!("/readyz: {error}")))?;
        if ready != (ready_status == 200) || ready != reasons.is_empty() {
            return Err(not_ours(format!("/readyz contradicts itself, with the status {ready_status}")));
        }
        let (metrics_status, page) = fetch_page(&format!("{url}/metrics"))?;
        if metrics_status != 200 {
            return Err(other_status("metrics", metrics_status));
        }
        let figures: Vec<StatusFigure> = page.lines().filter_map(StatusFigure::parse).collect();
        // Our page has these figures whatever the run does.
        for name in ["unitape_ready", "unitape_uptime_seconds"] {
            if !figures.iter().any(|figure| figure.name == name && figure.label.is_none()) {
                return Err(not_ours(format!("/metrics has no figure {name}")));
            }
        }
        Ok(Self { is_ready: ready, reasons, figures })
    }

    /// Returns the figure of a feed, as a number; 0 if it is not there.
    pub fn of_feed(&self, name: &str, feed: &str) -> u64 {
        let figure = self.figures.iter().find(|f| f.name == name && f.label.as_deref() == Some(feed));
        figure.and_then(|figure| figure.value.parse().ok()).unwrap_or(0)
    }

    /// Returns the labels of a figure, in the order of the page.
    pub fn labels(&self, name: &str) -> impl Iterator<Item = &str> {
        self.figures
            .iter()
            .filter(move |figure| figure.name == name)
            .filter_map(|figure| figure.label.as_deref())
    }
}

impl StatusFigure {
    /// Reads a line of the page; none for a comment.
    fn parse(line: &str) -> Option<Self> {
        if line.starts_with('#') {
            return None;
        }
        let (series, value) = line.rsplit_once(' ')?;
        let (name, label) = match series.split_once('{') {
            None => (series, None),
            Some((name, rest)) => {
                let text = rest.split_once("=\"")?.1.strip_suffix("\"}")?;
                let text = text.replace("\\n", "\n").replace("\\\"", "\"").replace("\\\\", "\\");
                (name, Some(text))
            }
        };
        Some(Self { name: name.to_owned(), label, value: value.to_owned() })
    }
}

/// Returns the words for a status with which a page does not answer.
fn status_words(page: &str, status: u16) -> String {
    let redirect = if (300..400).contains(&status) { ", a redirect, which is not followed" } else { "" };
    format!("/{page} has the status {status}{redirect}")
}

/// Returns the status and the body of an answer. An answer that the run is not ready has one, too. Redirects are not followed:
/// they would show the figures of somebody else.
fn fetch_page(url: &str) -> Result<(u16, String), StatusError> {
    let fail = |error: ureq::Error| StatusError { url: url.to_owned(), reason: error.to_string() };
    let agent: ureq::Agent = ureq::Agent::config_builder()
        .timeout_global(Some(Duration::from_secs(10)))
        .http_status_as_error(false)
        .max_redirects(0)
        .build()
        .into();
    let mut response = agent.get(url).call().map_err(fail)?;
    let status = response.status().as_u16();
    if status != 200 && status != 503 {
        return Ok((status, String::new()));
    }
    let body = response.body_mut().with_config().limit(BODY_MAX).read_to_string().map_err(fail)?;
    Ok((status, body))
}

/// The largest answer that is read.
const BODY_MAX: u64 = 16 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_page_are_read() {
        let parse = |line: &str| StatusFigure::parse(line).map(|f| (f.name, f.label, f.value));
        assert_eq!(parse("# HELP x y"), None);
        assert_eq!(parse("up 1"), Some(("up".to_owned(), None, "1".to_owned())));
        assert_eq!(
            parse("x{feed=\"a b\"} 2"),
            Some(("x".to_owned(), Some("a b".to_owned()), "2".to_owned()))
        );
    }
}
