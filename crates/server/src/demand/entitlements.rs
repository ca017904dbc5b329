//! Entitlements: who may read what.
//!
//! ```toml
//! format = 1
//!
//! [[entitlement]]
//! user = "quant"
//! dataset = "ticks"                  # the name under which a store is served
//! schemas = ["trades", "bbo"]        # left out: all
//! symbols = ["VOD*", "BARC"]         # left out: all, and events that have no instrument
//! from = "2024-03-01"                # the first day; left out: from the beginning
//! to = "2024-04-01"                  # the day after the last one; left out: without an end
//! classes = ["market"]               # market, identity, provenance; left out: market
//! until = "2027-01-01"               # when the entitlement ends; left out: never
//! ```
//!
//! What no entitlement covers does not exist for the user.

use serde::Deserialize;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use unitape_model::UnixNanos;
use unitape_store::{Day, FieldClass, LeafAccess, TickSchema};

/// An entitlement file, read.
#[derive(Debug)]
pub(super) struct EntitlementFile {
    entitlements: Vec<Entitlement>,
}

/// What a user may read of a dataset.
#[derive(Debug)]
pub(super) struct Entitlement {
    user: String,
    dataset: String,
    schemas: Option<Vec<TickSchema>>,
    symbols: Option<Vec<String>>,
    first_day: Option<Day>,
    last_day: Option<Day>,
    classes: Vec<FieldClass>,
    /// When it ends.
    pub until: Option<UnixNanos>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Content {
    format: u32,
    #[serde(default, rename = "entitlement")]
    entitlements: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    user: String,
    dataset: String,
    schemas: Option<Vec<String>>,
    symbols: Option<Vec<String>>,
    from: Option<String>,
    to: Option<String>,
    classes: Option<Vec<String>>,
    until: Option<String>,
}

impl EntitlementFile {
    /// Reads an entitlement file. An error names the file, the entry, and what is wrong.
    pub fn load(path: &Path) -> Result<Self, String> {
        let file_error = |reason: String| format!("{}: {reason}", path.display());
        let file = unitape_tape::open_regular(path).map_err(|e| file_error(e.to_string()))?;
        let mode = file.metadata().map_err(|e| file_error(e.to_string()))?.permissions().mode() & 0o7777;
        if mode & 0o022 != 0 {
            let message =
                format!("others may write this file (mode {mode:04o}); run: chmod go-w {}", path.display());
            return Err(file_error(message));
        }
        let mut text = String::new();
        file.take(BYTES_MAX + 1).read_to_string(&mut text).map_err(|e| file_error(e.to_string()))?;
        if text.len() as u64 > BYTES_MAX {
            return Err(file_error(format!("an entitlement file has at most {BYTES_MAX} bytes")));
        }
        Self::parse(&text).map_err(file_error)
    }

    /// Reads the text of an entitlement file.
    pub fn parse(text: &str) -> Result<Self, String> {
        let content: Content = toml::from_str(text).map_err(|e| {
            let line = e.span().map(|span| 1 + text[..span.start.min(text.len())].matches('\n').count());
            format!("{}{}", line.map(|line| format!("line {line}: ")).unwrap_or_default(), e.message())
        })?;
        if content.format != FORMAT {
            return Err(format!("format {}, where this build knows {FORMAT}", content.format));
        }
        let entries = content.entitlements.into_iter().enumerate();
        let entitlements = entries.map(|(n, entry)| {
            let user = entry.user.clone();
            Entitlement::new(entry).map_err(|reason| format!("entitlement {} (of {user}): {reason}", n + 1))
        });
        Ok(Self { entitlements: entitlements.collect::<Result<_, _>>()? })
    }

    /// Returns the entitlements that a user has for a dataset now.
    pub fn valid_for(&self, user: &str, dataset: &str, now: UnixNanos) -> Vec<&Entitlement> {
        let is_valid = |e: &&Entitlement| {
            e.user == user && e.dataset == dataset && e.until.is_none_or(|until| now < until)
        };
        self.entitlements.iter().filter(is_valid).collect()
    }
}

impl Entitlement {
    fn new(entry: Entry) -> Result<Self, String> {
        let schemas = entry.schemas.map(|names| {
            let schema = |name: &String| {
                let list_schemas = || TickSchema::ALL.map(TickSchema::name).join(", ");
                TickSchema::from_name(name)
                    .ok_or_else(|| format!("no schema `{name}`; schemas: {}", list_schemas()))
            };
            names.iter().map(schema).collect::<Result<Vec<_>, _>>()
        });
        let class = |name: &String| {
            let class = FieldClass::ALL.into_iter().find(|class| class.name() == name);
            class.ok_or_else(|| format!("no class `{name}`; classes: market, identity, provenance"))
        };
        let day = |name: &str, text: Option<String>| {
            let parse = |text: String| match text.parse::<Day>() {
                Ok(day) if day != Day::UNDATED => Ok(day),
                _ => Err(format!("{name} = \"{text}\" is no day: write it as 2024-03-11")),
            };
            text.map(parse).transpose()
        };
        let ends_at = entry.until.map(|text| {
            let bad =
                |_| format!("until = \"{text}\" is no time: write 2024-03-11 or 2024-03-11T14:30 (UTC)");
            text.parse::<UnixNanos>().map_err(bad)
        });
        let classes = entry.classes.unwrap_or_else(|| vec![FieldClass::Market.name().to_owned()]);
        let this = Self {
            user: entry.user,
            dataset: entry.dataset,
            schemas: schemas.transpose()?,
            symbols: entry.symbols,
            first_day: day("from", entry.from)?,
            last_day: day("to", entry.to)?,
            classes: classes.iter().map(class).collect::<Result<_, _>>()?,
            until: ends_at.transpose()?,
        };
        if this.first_day.zip(this.last_day).is_some_and(|(from, to)| from >= to) {
            return Err("from is not before to, so it covers no day".to_owned());
        }
        Ok(this)
    }

    /// Returns whether it covers a leaf. Events without an instrument, and events without a day, are covered where neither is
    /// limited.
    pub fn covers_leaf(&self, access: &LeafAccess<'_>) -> bool {
        let is_symbol = match (&self.symbols, access.symbol) {
            (None, _) => true,
            (Some(patterns), Some(symbol)) => patterns.iter().any(|pattern| matches_pattern(pattern, symbol)),
            (Some(_), None) => false,
        };
        let is_day = if access.day == Day::UNDATED {
            self.first_day.is_none() && self.last_day.is_none()
        } else {
            self.first_day.is_none_or(|from| from <= access.day)
                && self.last_day.is_none_or(|to| access.day < to)
        };
        is_symbol
            && is_day
            && self.classes.contains(&access.class)
            && self.schemas.as_ref().is_none_or(|schemas| schemas.contains(&access.schema))
    }
}

/// Returns whether a name matches a pattern, in which `*` matches any characters, or none.
fn matches_pattern(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let first_part = parts.next().unwrap_or_default();
    let Some(mut name_left) = name.strip_prefix(first_part) else { return false };
    let Some(mut last_part) = parts.next() else { return name_left.is_empty() };
    for next in parts {
        let Some(match_index) = name_left.find(last_part) else { return false };
        name_left = &name_left[match_index + last_part.len()..];
        last_part = next;
    }
    name_left.ends_with(last_part)
}

const FORMAT: u32 = 1;
const BYTES_MAX: u64 = 16 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = r#"
        format = 1
        [[entitlement]]
        user = "quant"
        dataset = "ticks"
        schemas = ["trades", "bbo"]
        symbols = ["VOD*", "BARC"]
        from = "2024-03-01"
        to = "2024-03-12"
        until = "2027-01-01"
        [[entitlement]]
        user = "surveillance"
        dataset = "ticks"
        classes = ["market", "identity", "provenance"]
    "#;

    fn access(
        day: &str,
        schema: TickSchema,
        symbol: Option<&'static str>,
        class: FieldClass,
    ) -> LeafAccess<'static> {
        LeafAccess { day: day.parse().unwrap(), schema, symbol, class }
    }

    /// What is not granted in each way must not be readable in any.
    #[test]
    fn each_limit_holds() {
        use FieldClass::{Identity, Market, Provenance};
        let file = EntitlementFile::parse(FILE).unwrap();
        let now = "2026-11-28".parse().unwrap();
        let covers = |user, access: LeafAccess<'_>| {
            file.valid_for(user, "ticks", now).iter().any(|e| e.covers_leaf(&access))
        };
        let trades = TickSchema::Trades;
        assert!(covers("quant", access("2024-03-11", trades, Some("VOD"), Market)));
        assert!(covers("quant", access("2024-03-01", TickSchema::Bbo, Some("VODX"), Market)));
        assert!(covers("quant", access("2024-03-11", trades, Some("BARC"), Market)));
        for refused in [
            access("2024-02-29", trades, Some("VOD"), Market),
            access("2024-03-12", trades, Some("VOD"), Market),
            access("undated", trades, Some("VOD"), Market),
            access("2024-03-11", TickSchema::Mbo, Some("VOD"), Market),
            access("2024-03-11", trades, Some("BARCX"), Market),
            access("2024-03-11", trades, Some("LLOY"), Market),
            access("2024-03-11", trades, None, Market),
            access("2024-03-11", trades, Some("VOD"), Identity),
            access("2024-03-11", trades, Some("VOD"), Provenance),
        ] {
            assert!(!covers("quant", refused), "{refused:?}");
            assert!(!covers("nobody", refused) && covers("surveillance", refused), "{refused:?}");
        }
        assert!(file.valid_for("quant", "other", now).is_empty());
        assert!(file.valid_for("quant", "ticks", "2027-01-01".parse().unwrap()).is_empty(), "it has ended");
    }

    #[test]
    fn patterns_match_whole_names() {
        for (pattern, name, is_match) in [
            ("VOD", "VOD", true),
            ("VOD", "VODX", false),
            ("*", "", true),
            ("V*D", "VOD", true),
            ("V*D", "VD", true),
            ("V*D", "V", false),
            ("a*a", "a", false),
            ("*.L", "VOD.L", true),
            ("*O*D*", "VOxDy", true),
            ("*O*D*", "VDO", false),
            ("", "", true),
            ("", "x", false),
            ("a*b*b", "ab", false),
        ] {
            assert_eq!(matches_pattern(pattern, name), is_match, "{pattern} {name}");
        }
    }

    #[test]
    fn a_mistake_is_named_with_its_entry() {
        for (find, replacement, message) in [
            ("\"bbo\"", "\"quotes\", \"bob\"", "entitlement 1 (of quant): no schema `bob`"),
            ("2024-03-01", "2024-02-30", "from = \"2024-02-30\" is no day"),
            ("2024-03-12", "2024-03-01", "from is not before to"),
            ("2027-01-01", "soon", "until = \"soon\" is no time"),
            ("identity", "secret", "entitlement 2 (of surveillance): no class `secret`"),
            ("dataset", "datset", "unknown field `datset`"),
            ("format = 1", "format = 2", "format 2"),
        ] {
            let error = EntitlementFile::parse(&FILE.replace(find, replacement)).unwrap_err();
            assert!(error.contains(message), "{error}");
        }
    }
}
