//! The fields, message bodies and groups of FIX 4.0 to 5.0 SP2 and FIXT 1.1, all versions taken together.
//!
//! `standard.txt` has them, one definition a line. A test makes it of the dictionaries in `vectors/fix/dict`:
//!
//! ```text
//! f 268 NoMDEntries           a field: tag and name
//! h 8-10,34-36                the tags of header and trailer
//! g 268 269-273,278           a group: count tag and members, the counts of groups inside among them
//! g 268 269-273,278-280       the same count with other members, which some messages have
//! m W 8-10,34-36 268:0        a message: the tags outside groups, and which of several groups a count means in it
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::LazyLock;

const TABLE: &str = include_str!("standard.txt");

/// The table by its keys; lists of tags stay text until somebody asks.
struct StandardTable {
    /// Sorted by tag.
    names: Vec<(u32, &'static str)>,
    header_trailer_tags: &'static str,
    /// The variants of a group by its count tag.
    groups: BTreeMap<u32, Vec<&'static str>>,
    /// Body and variants by message type.
    messages: BTreeMap<&'static str, (&'static str, &'static str)>,
}

static STANDARD: LazyLock<StandardTable> = LazyLock::new(|| StandardTable::parse(TABLE));

impl StandardTable {
    fn parse(text: &'static str) -> Self {
        let (mut names, mut common) = (Vec::new(), "");
        let (mut groups, mut messages) = (BTreeMap::<u32, Vec<&str>>::new(), BTreeMap::new());
        for line in text.lines() {
            let mut words = line.split(' ');
            let (kind, key) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
            let rest = words.next().unwrap_or_default();
            match (kind, key.parse()) {
                ("f", Ok(tag)) => names.push((tag, rest)),
                ("g", Ok(count)) => groups.entry(count).or_default().push(rest),
                ("h", _) => common = key,
                ("m", _) => _ = messages.insert(key, (rest, words.next().unwrap_or_default())),
                _ => {}
            }
        }
        StandardTable { names, header_trailer_tags: common, groups, messages }
    }

    fn name(&self, tag: u32) -> Option<&'static str> {
        let i = self.names.binary_search_by_key(&tag, |(tag, _)| *tag).ok()?;
        Some(self.names[i].1)
    }

    /// Returns the member lists of the group that `count` begins in a message type. If the type has no such list,
    /// returns the lists of all types.
    fn variants(&self, msg_type: &str, count: u32) -> &[&'static str] {
        let Some(variants) = self.groups.get(&count) else { return &[] };
        let chosen = self.messages.get(msg_type).and_then(|(_, chosen)| {
            let mut pairs = chosen.split(',').filter_map(|pair| pair.split_once(':'));
            let (_, i) = pairs.find(|(count_text, _)| count_text.parse() == Ok(count))?;
            let i: usize = i.parse().ok()?;
            variants.get(i..=i)
        });
        chosen.unwrap_or(variants)
    }

    /// Adds the members of a group and of its nested groups, except the members inside `closed`.
    fn add_members(&self, msg_type: &str, count: u32, closed: Option<u32>, members: &mut BTreeSet<u32>) {
        for tag in self.variants(msg_type, count).iter().flat_map(|list| parse_tags(list)) {
            if members.insert(tag) && Some(tag) != closed {
                self.add_members(msg_type, tag, closed, members);
            }
        }
    }

    /// Adds the members of the groups of a message in which the group counted by `count` may be.
    fn add_enclosing(&self, msg_type: &str, count: u32, outside: &mut BTreeSet<u32>) {
        let mut of_message = None;
        if let Some((body, _)) = self.messages.get(msg_type) {
            let all = of_message.insert(BTreeSet::new());
            for tag in parse_tags(body) {
                all.insert(tag);
                self.add_members(msg_type, tag, None, all);
            }
        }
        let is_there = |tag: &u32| of_message.as_ref().is_none_or(|all| all.contains(tag));
        let (mut open, mut enclosing) = (vec![count], BTreeSet::new());
        while let Some(inner) = open.pop() {
            for group in self.groups.keys().copied().filter(is_there) {
                let mut members = self.variants(msg_type, group).iter().flat_map(|list| parse_tags(list));
                if group != count && members.any(|tag| tag == inner) && enclosing.insert(group) {
                    open.push(group);
                    self.add_members(msg_type, group, Some(count), outside);
                }
            }
        }
    }
}

/// Parses a list of tags such as `8-10,34`.
fn parse_tags(list: &str) -> impl Iterator<Item = u32> {
    let ranges = list.split(',').filter_map(|range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        Some(first.parse().ok()?..=last.parse().ok()?)
    });
    ranges.flatten()
}

/// Looks up the standard's name for a tag.
#[must_use]
pub fn field_name(tag: u32) -> Option<&'static str> {
    STANDARD.name(tag)
}

/// A tag with its name, as errors show it: `77 (PositionEffect)`; a tag without a name alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TagLabel(pub u32);

impl fmt::Display for TagLabel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match field_name(self.0) {
            Some(name) => write!(f, "{} ({name})", self.0),
            None => write!(f, "{}", self.0),
        }
    }
}

/// The tags of a message type by their relation to one of its groups.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupMembership {
    /// Whether the standard has the message type.
    pub is_standard: bool,
    /// The tags of the group's entries, and of the entries of the groups inside; empty for a group that the standard does not have.
    pub members: BTreeSet<u32>,
    /// The other tags of the message: those outside groups, and those of the groups that may contain this group. For
    /// a type outside the standard, the tags of header and trailer and of such groups.
    pub outer_tags: BTreeSet<u32>,
}

impl GroupMembership {
    /// Collects the tags inside and outside the group that `count` counts in messages of `msg_type`.
    ///
    /// ```
    /// use unitape_codec::fix::GroupMembership;
    ///
    /// let entries = GroupMembership::new(b"W", 268);
    /// assert!(entries.members.contains(&290) && entries.outer_tags.contains(&55));
    /// assert!(!entries.members.contains(&55) && !entries.outer_tags.contains(&290));
    /// ```
    #[must_use]
    pub fn new(msg_type: &[u8], count: u32) -> Self {
        let standard = &*STANDARD;
        let msg_type = std::str::from_utf8(msg_type).unwrap_or_default();
        let body = standard.messages.get(msg_type);
        let mut members = BTreeSet::new();
        standard.add_members(msg_type, count, None, &mut members);
        let mut outside: BTreeSet<u32> =
            parse_tags(body.map_or(standard.header_trailer_tags, |(body, _)| body)).collect();
        standard.add_enclosing(msg_type, count, &mut outside);
        GroupMembership { is_standard: body.is_some(), members, outer_tags: outside }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fix::{FixDictionary, GroupSpec, GroupTable};
    use std::fmt::Write;

    const DICTIONARIES: &[&[&str]] = &[
        &["quickfix_FIX40.xml"],
        &["quickfix_FIX42.xml"],
        &["quickfix_FIX44.xml"],
        &["quickfix_FIXT11.xml", "quickfix_FIX50SP2.xml"],
    ];

    fn folder() -> std::path::PathBuf {
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors/fix/dict")
    }

    /// Writes a list that [`tags`] reads.
    fn list(tags: &BTreeSet<u32>) -> String {
        let mut out = String::new();
        let tags: Vec<u32> = tags.iter().copied().collect();
        for run in tags.chunk_by(|a, b| a + 1 == *b) {
            out += if out.is_empty() { "" } else { "," };
            _ = match run {
                [one] => write!(out, "{one}"),
                _ => write!(out, "{}-{}", run[0], run[run.len() - 1]),
            };
        }
        out
    }

    fn add_groups(groups: &GroupTable, members_by_count: &mut BTreeMap<u32, BTreeSet<u32>>) {
        for group in groups.iter().map(std::convert::AsRef::<GroupSpec>::as_ref) {
            members_by_count.entry(group.count_tag()).or_default().extend(group.members());
            add_groups(group.nested(), members_by_count);
        }
    }

    fn table_of_dictionaries() -> String {
        let mut names = BTreeMap::new();
        let mut common = BTreeSet::new();
        let mut bodies = BTreeMap::<String, BTreeSet<u32>>::new();
        let mut groups = BTreeMap::<String, BTreeMap<u32, BTreeSet<u32>>>::new();
        for files in DICTIONARIES {
            let texts: Vec<_> =
                files.iter().map(|file| std::fs::read(folder().join(file)).unwrap()).collect();
            let named: Vec<_> = files.iter().copied().zip(texts.iter().map(|text| &text[..])).collect();
            let dictionary = FixDictionary::parse(&named).unwrap();
            names.extend(dictionary.fields().map(|field| (field.tag, field.name.clone())));
            common.extend(dictionary.body(b"").as_slice());
            for (msg_type, message) in &dictionary.messages {
                let msg_type = String::from_utf8(msg_type.clone()).unwrap();
                bodies.entry(msg_type.clone()).or_default().extend(message.body.as_slice());
                add_groups(&message.groups, groups.entry(msg_type).or_default());
            }
        }
        let mut variants = BTreeMap::<u32, Vec<String>>::new();
        let mut messages = String::new();
        for (count, members) in groups.values().flatten() {
            let (of_count, members) = (variants.entry(*count).or_default(), list(members));
            if !of_count.contains(&members) {
                of_count.push(members);
            }
        }
        for (msg_type, body) in &bodies {
            let chosen = groups[msg_type].iter().filter(|(count, _)| variants[count].len() > 1);
            let chosen = chosen.map(|(count, members)| {
                let members = list(members);
                format!("{count}:{}", variants[count].iter().position(|variant| *variant == members).unwrap())
            });
            let chosen = chosen.collect::<Vec<_>>().join(",");
            let line = format!("m {msg_type} {} {chosen}", list(body));
            messages += &format!("{}\n", line.trim_end());
        }
        let mut out = String::from(
            "# Fields, messages and groups of FIX 4.0 to 5.0 SP2 and FIXT 1.1, made of the dictionaries of\n\
             # QuickFIX (http://www.quickfixengine.org/), whose licence is vectors/fix/dict/LICENSE. standard.rs\n\
             # explains the lines; UPDATE_TABLES=1 writes them again when its tests run.\n",
        );
        names.iter().for_each(|(tag, name)| _ = writeln!(out, "f {tag} {name}"));
        _ = writeln!(out, "h {}", list(&common));
        for (count, lists) in &variants {
            lists.iter().for_each(|members| _ = writeln!(out, "g {count} {members}"));
        }
        out + &messages
    }

    /// Guards against a table that was edited by hand or left behind by a new dictionary: no file explains its
    /// groups.
    #[test]
    fn the_standard_table_is_that_of_the_dictionaries() {
        let made = table_of_dictionaries();
        if made != TABLE && std::env::var_os("UPDATE_TABLES").is_some() {
            let table_path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/fix/standard.txt");
            std::fs::write(table_path, &made).unwrap();
            return;
        }
        assert!(
            made == TABLE,
            "standard.txt differs from the dictionaries; run this test with UPDATE_TABLES=1"
        );
    }

    /// Guards against a missing member, which ends the entries of that group in every mapping.
    #[test]
    fn groups_of_several_versions_have_the_members_of_all() {
        let members = |msg_type: &str, count| GroupMembership::new(msg_type.as_bytes(), count).members;
        let snapshot = members("W", 268);
        for tag in [269, 270, 271, 272, 273, 290, 346, 276, 277, 282, 58, 278, 64, 1023] {
            assert!(snapshot.contains(&tag), "{tag}");
        }
        assert!(members("X", 268).contains(&55) && !snapshot.contains(&55));
        // Parties inside sides, and the parties' own groups inside those.
        let sides = members("AE", 552);
        assert!([54, 453, 448, 447, 452, 802, 523, 803].iter().all(|tag| sides.contains(tag)));
        let legs = members("8", 555);
        assert!([600, 539, 524, 525, 538, 804, 545, 805].iter().all(|tag| legs.contains(tag)));
        // What follows the parties of a side is no part of them.
        let parties = GroupMembership::new(b"AE", 453);
        assert!([54, 37, 1, 453, 552, 55].iter().all(|tag| parties.outer_tags.contains(tag)));
        assert!([448, 447, 452, 523, 803].iter().all(|tag| !parties.outer_tags.contains(tag)));
        assert!(members("UX", 453).contains(&523), "a type of a venue's own");
        assert!(members("8", 5000).is_empty());
    }

    #[test]
    fn tags_have_the_names_of_the_standard() {
        let label = |tag| TagLabel(tag).to_string();
        assert_eq!(
            [label(77), label(268), label(5001)],
            ["77 (PositionEffect)", "268 (NoMDEntries)", "5001"]
        );
    }
}
