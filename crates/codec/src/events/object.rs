//! The members of one JSON object, as they are: nothing is copied and no tree is built.

use super::DEPTH_MAX;
use super::parse::LineFault;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::borrow::Cow;

/// The number of members that fit without an allocation; the widest kind has 21 fields.
const FEW: usize = 32;

/// One member of an object.
#[derive(Clone, Copy)]
pub(super) struct ObjectMember<'a> {
    /// Between its quotes, escapes and all.
    key: &'a str,
    /// JSON text of the value.
    pub value: &'a str,
    /// Whether someone has use for it.
    pub is_used: bool,
}

impl<'a> ObjectMember<'a> {
    /// Returns the name with its escapes resolved.
    #[inline]
    pub fn name(&self) -> Cow<'a, str> {
        if self.key.as_bytes().contains(&b'\\') { unescape_key(self.key) } else { Cow::Borrowed(self.key) }
    }

    /// Returns whether the member is called `name`; `name` must need no escapes.
    #[inline]
    pub fn is(&self, name: &str) -> bool {
        self.key == name || (self.key.len() > name.len() && self.name() == name)
    }
}

/// The members of an object in the order of the text.
pub(super) struct ObjectMembers<'a> {
    first_members: [ObjectMember<'a>; FEW],
    n: usize,
    more_members: Vec<ObjectMember<'a>>,
}

impl<'a> ObjectMembers<'a> {
    /// Splits the object that `text` is.
    #[inline]
    pub fn from_text(text: &'a str) -> Result<Self, LineFault> {
        let mut de = serde_json::Deserializer::from_str(text);
        let mut members = ObjectMembers {
            first_members: [ObjectMember { key: "", value: "", is_used: false }; FEW],
            n: 0,
            more_members: Vec::new(),
        };
        de.deserialize_map(MemberCollector(&mut members)).map_err(|e| LineFault::json(&e))?;
        de.end().map_err(|e| LineFault::json(&e))?;
        Ok(members)
    }

    #[inline]
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut ObjectMember<'a>> {
        self.first_members[..self.n].iter_mut().chain(&mut self.more_members)
    }

    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = &ObjectMember<'a>> {
        self.first_members[..self.n].iter().chain(&self.more_members)
    }

    /// Looks up the value of the member `name`.
    pub fn get(&self, name: &str) -> Option<&'a str> {
        self.iter().find(|m| m.is(name)).map(|m| m.value)
    }

    /// Returns a name that appears twice among the members that nobody has read. Reading a member already detects its
    /// duplicates.
    pub fn duplicate_name(&self) -> Option<Cow<'a, str>> {
        let unused_members = || self.iter().filter(|m| !m.is_used);
        // Most lines have none or one: no list is made for them.
        unused_members().nth(1)?;
        let mut names: Vec<_> = unused_members().map(ObjectMember::name).collect();
        names.sort_unstable();
        names.windows(2).find(|w| w[0] == w[1]).map(|w| w[0].clone())
    }
}

/// Fills the members in place: they are over a kilobyte, and a visitor's result is copied on each level that returns it.
struct MemberCollector<'m, 'de>(&'m mut ObjectMembers<'de>);

impl<'de> Visitor<'de> for MemberCollector<'_, 'de> {
    type Value = ();

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a JSON object")
    }

    #[inline]
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let members = self.0;
        while let Some((key, value)) = map.next_entry::<&'de RawValue, &'de RawValue>()? {
            let (key, value) = (key.get(), value.get());
            if key.as_bytes().contains(&b'\\') && serde_json::from_str::<String>(key).is_err() {
                return Err(serde::de::Error::custom("a key is not text"));
            }
            if matches!(value.as_bytes()[0], b'[' | b'{') && nesting_depth(value) > DEPTH_MAX {
                return Err(serde::de::Error::custom("nested too deeply"));
            }
            let member = ObjectMember { key: &key[1..key.len() - 1], value, is_used: false };
            match members.first_members.get_mut(members.n) {
                Some(slot) => {
                    *slot = member;
                    members.n += 1;
                }
                None => members.more_members.push(member),
            }
        }
        Ok(())
    }
}

/// Computes the deepest nesting in `json`, which must be valid.
pub(super) fn nesting_depth(json: &str) -> usize {
    let (mut depth, mut deepest, mut text, mut escaped) = (0usize, 0, false, false);
    for b in json.bytes() {
        match b {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => text = !text,
            b'[' | b'{' if !text => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b']' | b'}' if !text => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

#[cold]
fn unescape_key(key: &str) -> Cow<'_, str> {
    serde_json::from_str::<String>(&format!("\"{key}\"")).map_or(Cow::Borrowed(key), Cow::Owned)
}
