//! Before and after: the ratio, what it means, and how it is shown.

use serde_json::{Value, json};

use super::measure::CaseFigure;

/// One figure of two builds.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FigureComparison {
    pub(crate) name: String,
    pub(crate) before: Option<CaseFigure>,
    pub(crate) after: Option<CaseFigure>,
    /// Why one of them is missing.
    pub(crate) reason: Option<String>,
    /// After over before.
    pub(crate) ratio: Option<f64>,
    pub(crate) verdict: FigureVerdict,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FigureVerdict {
    /// Counted, and nothing to compare it with was asked for.
    Counted,
    /// Within what is permitted.
    Same,
    /// Beyond it.
    More,
    /// As much below it.
    Less,
    /// The other build does not have the case.
    New,
    /// This tree does not have the case any more.
    Gone,
    /// It could not be counted.
    Failed,
}

/// The outcome of a case in a build: figures, or why there are none and whether it is unknown there.
pub(crate) type CaseOutcome = Result<Vec<CaseFigure>, MissingCase>;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MissingCase {
    /// The build does not have the case; else it failed.
    pub(crate) unknown: bool,
    pub(crate) reason: String,
}

/// Holds what a case costs against what it cost before, if that was asked for.
pub(crate) fn compare(
    case: &str,
    after: &CaseOutcome,
    before: Option<&CaseOutcome>,
    most_percent: f64,
) -> Vec<FigureComparison> {
    let mut lines = Vec::new();
    let (figures, missing) = match after {
        Ok(figures) => (figures.as_slice(), None),
        Err(missing) => (&[][..], Some(missing)),
    };
    let (past, past_missing) = match before {
        Some(Ok(past)) => (past.as_slice(), None),
        Some(Err(missing)) => (&[][..], Some(missing)),
        None => (&[][..], None),
    };
    if let Some(missing) = missing {
        let verdict = if missing.unknown { FigureVerdict::Gone } else { FigureVerdict::Failed };
        let line = FigureComparison {
            reason: Some(missing.reason.clone()),
            ..FigureComparison::empty(case, verdict)
        };
        lines.push(FigureComparison { before: past.first().cloned().filter(|_| past.len() == 1), ..line });
        return lines;
    }
    for figure in figures {
        let old = past.iter().find(|old| old.name == figure.name);
        let (verdict, reason) = match (old, before, past_missing) {
            (Some(old), ..) => {
                (FigureVerdict::from_ratio(figure.instructions / old.instructions, most_percent), None)
            }
            (None, None, _) => (FigureVerdict::Counted, None),
            (None, Some(_), Some(missing)) if !missing.unknown => {
                (FigureVerdict::Failed, Some(missing.reason.clone()))
            }
            (None, Some(_), missing) => (FigureVerdict::New, missing.map(|m| m.reason.clone())),
        };
        lines.push(FigureComparison {
            name: figure.name.clone(),
            before: old.cloned(),
            after: Some(figure.clone()),
            reason,
            ratio: old.map(|old| figure.instructions / old.instructions),
            verdict,
        });
    }
    for old in past.iter().filter(|old| !figures.iter().any(|figure| figure.name == old.name)) {
        lines.push(FigureComparison {
            before: Some(old.clone()),
            ..FigureComparison::empty(&old.name, FigureVerdict::Gone)
        });
    }
    lines
}

/// The instructions of all cases that both builds have, after over before.
pub(crate) fn sum_ratio(lines: &[FigureComparison]) -> Option<f64> {
    let (mut before, mut after) = (0.0, 0.0);
    for line in lines {
        if let (Some(old), Some(new)) = (&line.before, &line.after) {
            before += old.instructions;
            after += new.instructions;
        }
    }
    (before > 0.0).then(|| after / before)
}

impl FigureVerdict {
    pub(crate) fn from_ratio(ratio: f64, most_percent: f64) -> Self {
        // Rounding must not decide: what is permitted is permitted to the last digit that is shown.
        let percent = ((ratio - 1.0) * 1e6).round() / 1e4;
        match percent {
            more if more > most_percent => Self::More,
            less if less < -most_percent => Self::Less,
            _ => Self::Same,
        }
    }

    /// Whether the command ends with 1.
    pub(crate) fn is_bad(self) -> bool {
        matches!(self, Self::More | Self::Failed)
    }

    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Counted => "counted",
            Self::Same => "same",
            Self::More => "MORE",
            Self::Less => "less",
            Self::New => "new",
            Self::Gone => "gone",
            Self::Failed => "FAILED",
        }
    }
}

impl FigureComparison {
    fn empty(name: &str, verdict: FigureVerdict) -> Self {
        Self { name: name.to_owned(), before: None, after: None, reason: None, ratio: None, verdict }
    }

    /// One object of `--json`.
    pub(crate) fn to_json(&self, against: Option<&str>, sets: &str) -> Value {
        let mut object = json!({"case": self.name, "verdict": self.verdict.word().to_lowercase()});
        let mut set = |name: &str, value: Value| object[name] = value;
        if let Some(after) = &self.after {
            set("instructions", rounded(after.instructions));
            set("all_threads", rounded(after.all_threads));
            set("operations", after.operations.into());
        }
        if let Some(before) = &self.before {
            set("before", rounded(before.instructions));
            set("before_all_threads", rounded(before.all_threads));
        }
        if let Some(ratio) = self.ratio {
            set("ratio", json!((ratio * 1e5).round() / 1e5));
        }
        if let Some(reason) = &self.reason {
            set("why", reason.as_str().into());
        }
        if let Some(against) = against {
            set("against", against.into());
        }
        set("instruction_sets", sets.into());
        object
    }
}

fn rounded(value: f64) -> Value {
    json!((value * 1e3).round() / 1e3)
}

/// The lines as a table for people; without a second build it has one figure a case.
pub(crate) fn table(lines: &[FigureComparison], compared: bool) -> String {
    let header = if compared {
        ["case", "before", "after", "ratio", ""]
    } else {
        ["case", "", "instructions/op", "", ""]
    };
    let figure = |figure: &Option<CaseFigure>| {
        figure.as_ref().map_or(String::new(), |f| format!("{:.1}", f.instructions))
    };
    let mut rows = vec![header.map(str::to_owned)];
    for line in lines {
        let ratio = line.ratio.map_or(String::new(), |ratio| format!("{ratio:.4}"));
        let mut word =
            if line.verdict == FigureVerdict::Counted { "" } else { line.verdict.word() }.to_owned();
        if let Some(reason) = &line.reason {
            word = format!("{word}: {reason}");
        }
        rows.push([line.name.clone(), figure(&line.before), figure(&line.after), ratio, word]);
    }
    let width = |n: usize| rows.iter().map(|row| row[n].chars().count()).max().unwrap_or(0);
    let widths = [0, 1, 2, 3].map(width);
    let mut text = String::new();
    for [name, before, after, ratio, word] in &rows {
        let [n, b, a, r] = widths;
        let line = format!("{name:n$}  {before:>b$}  {after:>a$}  {ratio:>r$}  {word}");
        text += line.trim_end();
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(name: &str, instructions: f64) -> CaseFigure {
        CaseFigure { name: name.to_owned(), instructions, all_threads: instructions, operations: 10 }
    }

    fn verdicts(
        after: &CaseOutcome,
        before: Option<&CaseOutcome>,
        most: f64,
    ) -> Vec<(String, FigureVerdict)> {
        compare("c", after, before, most).into_iter().map(|line| (line.name, line.verdict)).collect()
    }

    /// Two per cent more is permitted, and no more than that.
    #[test]
    fn the_bound_itself_is_permitted_and_nothing_beyond_it() {
        let before = Ok(vec![figure("c", 1_000.0)]);
        for (after, verdict) in [
            (1_020.0, FigureVerdict::Same),
            (1_020.1, FigureVerdict::More),
            (980.0, FigureVerdict::Same),
            (979.0, FigureVerdict::Less),
            (1_000.0, FigureVerdict::Same),
        ] {
            let after = Ok(vec![figure("c", after)]);
            assert_eq!(verdicts(&after, Some(&before), 2.0), [("c".to_owned(), verdict)], "{after:?}");
        }
        let half = Ok(vec![figure("c", 1_006.0)]);
        assert_eq!(verdicts(&half, Some(&before), 0.5)[0].1, FigureVerdict::More);
        assert!(FigureVerdict::More.is_bad() && FigureVerdict::Failed.is_bad());
        assert!(
            ![FigureVerdict::Same, FigureVerdict::Less, FigureVerdict::New, FigureVerdict::Gone]
                .iter()
                .any(|v| v.is_bad())
        );
    }

    /// Forty cases of 0.9 % each would pass one by one. A new case has nothing to be compared with.
    #[test]
    fn the_sum_counts_the_cases_that_both_builds_have() {
        let two = Ok(vec![figure("a", 1_009.0), figure("b", 2_018.0), figure("new", 9_999.0)]);
        let one = Ok(vec![figure("a", 1_000.0), figure("b", 2_000.0), figure("gone", 5_000.0)]);
        assert_eq!(sum_ratio(&compare("c", &two, Some(&one), 2.0)), Some(1.009));
        assert_eq!(sum_ratio(&compare("c", &two, None, 2.0)), None);
    }

    /// A case that the old binary does not know is new; one that fails there says nothing, and must not pass for new.
    #[test]
    fn what_one_side_does_not_have_is_new_or_gone_and_what_fails_is_bad() {
        let missing = |unknown| Err(MissingCase { unknown, reason: "w".to_owned() });
        let two = Ok(vec![figure("a", 1.0), figure("b", 1.0)]);
        let one = Ok(vec![figure("a", 1.0), figure("z", 1.0)]);
        let named = |name: &str, verdict| (name.to_owned(), verdict);
        assert_eq!(
            verdicts(&two, Some(&one), 2.0),
            [
                named("a", FigureVerdict::Same),
                named("b", FigureVerdict::New),
                named("z", FigureVerdict::Gone)
            ]
        );
        assert_eq!(verdicts(&two, Some(&missing(true)), 2.0)[1], named("b", FigureVerdict::New));
        assert_eq!(verdicts(&two, Some(&missing(false)), 2.0)[1], named("b", FigureVerdict::Failed));
        assert_eq!(verdicts(&missing(false), Some(&one), 2.0), [named("c", FigureVerdict::Failed)]);
        assert_eq!(verdicts(&missing(true), None, 2.0), [named("c", FigureVerdict::Gone)]);
        assert_eq!(verdicts(&two, None, 2.0)[0], named("a", FigureVerdict::Counted));
    }

    #[test]
    fn a_line_says_both_figures_and_their_ratio() {
        let (before, after) = (Ok(vec![figure("c", 200.0)]), Ok(vec![figure("c", 210.0)]));
        let lines = compare("c", &after, Some(&before), 2.0);
        assert_eq!(
            lines[0].to_json(Some("f0"), "avx2").to_string(),
            r#"{"case":"c","verdict":"more","instructions":210.0,"all_threads":210.0,"operations":10,"before":200.0,"before_all_threads":200.0,"ratio":1.05,"against":"f0","instruction_sets":"avx2"}"#
        );
        assert_eq!(table(&lines, true), "case  before  after   ratio\nc      200.0  210.0  1.0500  MORE\n");
    }
}
