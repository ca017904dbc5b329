//! The hash of an action and the digest of an alert.
//!
//! ```text
//!   field    type (0 none, 1 integer, 2 real, 3 text, 4 bytes), length u64, bytes
//!   content  BLAKE3("unitape case action 1", each field but the number)
//!   hash     BLAKE3(number u64, content)
//! ```
//!
//! Numbers are little-endian. The types and lengths make two different rows two different inputs.

use rusqlite::types::Value;

/// Returns the hash of an action: of its columns in the order of [`crate::store::ACTION_COLUMNS`], of which the first is its number.
pub(crate) fn hash_of_action(columns: &[Value]) -> [u8; 32] {
    let number = match columns[0] {
        Value::Integer(number) => number as u64,
        _ => 0,
    };
    hash_at(number, &action_content(columns))
}

/// Returns the hash of the content of an action at a number.
pub(crate) fn hash_at(number: u64, content: &[u8; 32]) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&number.to_le_bytes());
    hasher.update(content);
    *hasher.finalize().as_bytes()
}

/// Returns the hash of all columns of an action but its number.
pub(crate) fn action_content(columns: &[Value]) -> [u8; 32] {
    hash_columns(b"unitape case action 1", &columns[1..])
}

/// Returns the digest of an alert: of its columns in the order of [`crate::store::ALERT_COLUMNS`].
pub(crate) fn alert_digest(columns: &[Value]) -> [u8; 32] {
    hash_columns(b"unitape case alert 1", columns)
}

fn hash_columns(domain: &[u8], columns: &[Value]) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(domain);
    let mut field = |kind: u8, bytes: &[u8]| {
        hasher.update(&[kind]);
        hasher.update(&(bytes.len() as u64).to_le_bytes());
        hasher.update(bytes);
    };
    for column in columns {
        match column {
            Value::Null => field(0, &[]),
            Value::Integer(number) => field(1, &number.to_le_bytes()),
            Value::Real(number) => field(2, &number.to_bits().to_le_bytes()),
            Value::Text(text) => field(3, text.as_bytes()),
            Value::Blob(bytes) => field(4, bytes),
        }
    }
    *hasher.finalize().as_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The layout is what a reader in another language would follow.
    #[test]
    fn the_hash_is_that_of_the_drawn_layout() {
        let columns: [Value; 4] =
            [7i64.into(), Value::Null, "ab".to_owned().into(), Value::Blob(vec![1, 2, 3])];
        let mut bytes = b"unitape case action 1".to_vec();
        bytes.extend([0, 0, 0, 0, 0, 0, 0, 0, 0]);
        bytes.extend([3, 2, 0, 0, 0, 0, 0, 0, 0, b'a', b'b']);
        bytes.extend([4, 3, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3]);
        let content = *blake3::hash(&bytes).as_bytes();
        assert_eq!(action_content(&columns), content);
        let hash = *blake3::hash(&[&7u64.to_le_bytes()[..], &content].concat()).as_bytes();
        assert_eq!(hash_of_action(&columns), hash);
    }

    #[test]
    fn a_field_that_is_cut_elsewhere_is_another_input() {
        let hash = |texts: [&str; 2]| alert_digest(&texts.map(|text| text.to_owned().into()));
        assert_ne!(hash(["ab", "c"]), hash(["a", "bc"]));
        assert_ne!(alert_digest(&[Value::Null]), alert_digest(&[String::new().into()]));
        assert_ne!(alert_digest(&[97i64.into()]), alert_digest(&["a".to_owned().into()]));
    }
}
