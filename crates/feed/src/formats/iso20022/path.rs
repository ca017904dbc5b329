//! The paths by which mappings name the elements of an ISO 20022 message.
//!
//! | path | is |
//! |---|---|
//! | `@message`, `@type`, `@variant` | `pacs.008`, `pacs.008.001.07`, what a community put behind it (`ch.02`) |
//! | `AppHdr/CreDt` | an element of the header, by local names |
//! | `FIToFICstmrCdtTrf/GrpHdr/MsgId` | an element of the document; `Document/` before it may be left out |
//! | `*/GrpHdr/MsgId` | the same, whatever the message is called; only first |
//! | `…/IntrBkSttlmAmt@Ccy` | an attribute |
//! | `…/FinInstnId/BICFI\|BIC` | the first there of several names |
//! | `…/Bal[Tp/CdOrPrtry/Cd=OPBD]/Amt` | of the first `Bal` in which that holds |
//! | `…/RtrChain@present` | something where the element is there, for conditions (`{ present = true }`) |
//! | `…/Amt@signed` | the amount, less than zero where `CdtDbtInd` beside it is `DBIT` |
//! | `./PmtId/EndToEndId`, `../Dbtr/Nm` | in an entry of a group: inside it, and inside its parent |
//! | `.` | in `members` of a group: all of the entry |
//! | `@entry` | the line of a statement (`Ntry`) that the entry is, for fields that are lists |
//! | `@booking` | of a line and of its transactions (`TxDtls`): the number of the line in its statement, from 1 |
//! | `@amount`, `@currency` | of `TxDtls`: its own amount (`Amt`, `AmtDtls/TxAmt`, `AmtDtls/InstdAmt`), or that of a booking which it is all of |
//! | `@sum_differs` | what the sum or the number of the transactions differs from, in words, see `totals.rs`; else absent |
//! | `@sum_unchecked` | why a sum was not compared, in words |
//!
//! A group's delimiter is the path of its element, from the document on. Where an element that is no group's is there
//! several times, the first one counts.

use crate::mapping::Dialect;

/// ISO 20022 names its fields by paths of elements.
#[derive(Clone, Copy, Debug)]
pub struct IsoPathSyntax;

/// A place in a message.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum IsoPath {
    /// `@message`.
    Message,
    /// `@type`.
    Type,
    /// `@variant`.
    Variant,
    /// `.`.
    Entry,
    /// `@entry`.
    Line,
    /// `@booking`.
    Booking,
    /// `@amount`.
    Amount,
    /// `@currency`.
    Currency,
    /// `@sum_differs`.
    SumDiffers,
    /// `@sum_unchecked`.
    SumUnchecked,
    /// An element or attribute.
    Element(IsoElementPath),
}

/// The place of an element or attribute.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct IsoElementPath {
    /// From where.
    pub from: IsoPathRoot,
    /// The way down.
    pub steps: Vec<IsoPathStep>,
    /// The part of the element.
    pub selector: IsoElementSelector,
}

/// The start of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum IsoPathRoot {
    /// `AppHdr`.
    Header,
    /// `Document`.
    Document,
    /// The current entry, this many levels up.
    Entry(usize),
}

/// The part of an element that a path selects.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum IsoElementSelector {
    /// Its text.
    Text,
    /// An attribute.
    Attribute(String),
    /// The text, with the sign of the element beside it.
    Signed,
}

/// One level of a path.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct IsoPathStep {
    /// Any of these; `*` is all.
    pub names: Vec<String>,
    /// Only where an element in it says this.
    pub only: Option<(Vec<String>, String)>,
}

impl Dialect for IsoPathSyntax {
    type Path = IsoPath;
    const TYPE_PATH: &'static str = "@message";
    const COUNTED_GROUPS: bool = false;

    fn path(&self, text: &str) -> Result<IsoPath, String> {
        match text {
            "@message" => return Ok(IsoPath::Message),
            "@type" => return Ok(IsoPath::Type),
            "@variant" => return Ok(IsoPath::Variant),
            "@entry" => return Ok(IsoPath::Line),
            "@booking" => return Ok(IsoPath::Booking),
            "@amount" => return Ok(IsoPath::Amount),
            "@currency" => return Ok(IsoPath::Currency),
            "@sum_differs" => return Ok(IsoPath::SumDiffers),
            "@sum_unchecked" => return Ok(IsoPath::SumUnchecked),
            "." => return Ok(IsoPath::Entry),
            _ => {}
        }
        let (mut from, mut rest) = (IsoPathRoot::Document, text);
        if let Some(inside) = text.strip_prefix("AppHdr/") {
            (from, rest) = (IsoPathRoot::Header, inside);
        } else if let Some(inside) = text.strip_prefix("Document/") {
            rest = inside;
        } else if text.starts_with("./") || text.starts_with("../") || text.starts_with("@") {
            let mut up = 0;
            rest = text.strip_prefix("./").unwrap_or(text);
            while let Some(inside) = rest.strip_prefix("../") {
                (up, rest) = (up + 1, inside);
            }
            from = IsoPathRoot::Entry(up);
        } else if let Some(of_entry) = text.strip_prefix(".@") {
            return Err(format!("`{text}`: an attribute of the entry itself is `@{of_entry}`"));
        }
        let (element_path, selector) = match rest.rsplit_once('@') {
            Some((path_part, "signed")) => (path_part, IsoElementSelector::Signed),
            Some((path_part, name)) if is_name(name) => {
                (path_part, IsoElementSelector::Attribute(name.to_owned()))
            }
            Some((_, name)) => return Err(format!("`{name}` is no attribute")),
            None => (rest, IsoElementSelector::Text),
        };
        let mut steps = Vec::new();
        for step in split_steps(element_path) {
            steps.push(self::parse_step(step).ok_or_else(|| format!("`{step}` of `{text}` is no element"))?);
        }
        let has_stars = steps.iter().skip(1).any(|s| s.names.iter().any(|n| n == "*"));
        if has_stars || steps.first().is_some_and(|s| s.names[0] == "*") && from != IsoPathRoot::Document {
            return Err(format!("`{text}`: * may only replace the message's own element"));
        }
        if steps.iter().filter(|s| s.only.is_some()).count() > 1 {
            return Err(format!("`{text}`: only one condition in a path"));
        }
        let whole_entry =
            matches!(from, IsoPathRoot::Entry(_)) && matches!(selector, IsoElementSelector::Attribute(_));
        if steps.is_empty() && !whole_entry {
            return Err(format!("`{text}` names no element"));
        }
        Ok(IsoPath::Element(IsoElementPath { from, steps, selector }))
    }

    fn container(&self, path: &IsoPath) -> Option<IsoPath> {
        match path {
            IsoPath::Line
            | IsoPath::Booking
            | IsoPath::Amount
            | IsoPath::Currency
            | IsoPath::SumDiffers
            | IsoPath::SumUnchecked
            | IsoPath::Element(IsoElementPath { from: IsoPathRoot::Entry(_), .. }) => Some(IsoPath::Entry),
            _ => None,
        }
    }
}

/// Splits a path into its steps, but not at `/` inside a condition.
fn split_steps(path: &str) -> impl Iterator<Item = &str> {
    let mut in_condition = false;
    path.split(move |c| {
        in_condition = match c {
            '[' => true,
            ']' => false,
            _ => in_condition,
        };
        c == '/' && !in_condition
    })
    .filter(move |_| !path.is_empty())
}

fn parse_step(text: &str) -> Option<IsoPathStep> {
    let (names, only) = match text.strip_suffix(']') {
        None => (text, None),
        Some(text) => {
            let (names, condition) = text.split_once('[')?;
            let (condition_path, value) = condition.split_once('=')?;
            let condition_steps: Vec<String> = condition_path.split('/').map(str::to_owned).collect();
            if !condition_steps.iter().all(|n| is_name(n)) {
                return None;
            }
            (names, Some((condition_steps, value.to_owned())))
        }
    };
    let names: Vec<String> = names.split('|').map(str::to_owned).collect();
    let is_valid = names.iter().all(|n| is_name(n)) || names == ["*"] && only.is_none();
    is_valid.then_some(IsoPathStep { names, only })
}

fn is_name(text: &str) -> bool {
    let rest = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.') || b >= 0x80;
    text.bytes().all(rest)
        && text.bytes().next().is_some_and(|b| b.is_ascii_alphabetic() || b == b'_' || b >= 0x80)
}

#[cfg(test)]
mod tests {
    use super::*;

    // A misspelled path that is accepted is a field that never has a value.
    #[test]
    fn paths_are_read_or_refused() {
        for good in [
            "@message",
            "@entry",
            "@booking",
            "@amount",
            "@sum_differs",
            ".",
            "AppHdr/CreDt",
            "FIToFICstmrCdtTrf/GrpHdr/MsgId",
            "*/GrpHdr/MsgId",
            "./IntrBkSttlmAmt@Ccy",
            "../../Id",
            "./DbtrAgt/FinInstnId/BICFI|BIC",
            "./Bal[Tp/CdOrPrtry/Cd=OPBD]/Amt@signed",
            "@Ccy",
        ] {
            assert!(IsoPathSyntax.path(good).is_ok(), "{good}: {:?}", IsoPathSyntax.path(good));
        }
        let document = IsoPathSyntax.path("Document/A/B");
        assert_eq!(document, IsoPathSyntax.path("A/B"));
        for (bad, says) in [
            ("", "names no element"),
            ("A//B", "no element"),
            ("A/*/B", "may only replace"),
            ("./*/B", "may only replace"),
            ("A/1B", "no element"),
            ("A/B[C]", "no element"),
            ("A[B=1]/C[D=2]", "only one condition"),
            ("A/B@", "no attribute"),
            (".@Ccy", "attribute of the entry"),
            ("../", "no element"),
            ("a b", "no element"),
        ] {
            let error = IsoPathSyntax.path(bad).map(|p| format!("{p:?}")).expect_err(bad);
            assert!(error.contains(says), "{bad}: {error}");
        }
    }
}
