//! A slow, obvious reader of FIX: it trusts nothing that the writer does.

/// A message: its tags and values in order.
#[derive(Debug, Clone)]
pub struct Message(pub Vec<(u32, String)>);

impl Message {
    pub fn find(&self, tag: u32) -> Option<&str> {
        self.0.iter().find(|(t, _)| *t == tag).map(|(_, value)| value.as_str())
    }

    pub fn get(&self, tag: u32) -> &str {
        self.find(tag).unwrap_or_else(|| panic!("no tag {tag} in {self:?}"))
    }

    pub fn int(&self, tag: u32) -> i64 {
        self.get(tag).parse().expect("an integer")
    }

    /// A decimal in units of 10^-9; none if it does not fit.
    pub fn nano(&self, tag: u32) -> Option<i64> {
        let text = self.get(tag);
        let (whole, places) = text.split_once('.').unwrap_or((text, ""));
        let places = places.trim_end_matches('0');
        (places.len() <= 9).then(|| format!("{whole}{places:0<9}").parse().expect("a decimal"))
    }

    /// The id of the party with this role.
    pub fn party(&self, role: &str) -> &str {
        let at = self.0.iter().position(|(tag, value)| *tag == 452 && value == role).expect("the party");
        let (tag, id) = &self.0[at - 2];
        assert_eq!(*tag, 448);
        id
    }

    /// `52`, checked to be a date, as nanoseconds of some epoch; only differences and order are used.
    pub fn sent_ns(&self) -> u64 {
        clock_ns(self.get(52))
    }
}

pub fn clock_ns(text: &str) -> u64 {
    let part = |from: usize, to: usize| text[from..to].parse::<u64>().expect("digits");
    assert_eq!((text.len(), &text[8..9], &text[17..18]), (27, "-", "."), "{text}");
    assert_eq!(&text[..6], "202603", "a flow of these tests stays in one month");
    let days = part(6, 8) - 2; // they start on the second
    let seconds = days * 86_400 + part(9, 11) * 3600 + part(12, 14) * 60 + part(15, 17);
    seconds * 1_000_000_000 + part(18, 27)
}

/// Splits a file. Bytes that are no well framed message with a right length and sum are an `Err`, up to the next
/// `8=FIX.4.4`.
pub fn split(file: &[u8]) -> Vec<Result<Message, Vec<u8>>> {
    const HEAD: &[u8] = b"8=FIX.4.4\x01";
    let mut found = Vec::new();
    let mut at = 0;
    while at < file.len() {
        if let Some((message, length)) = message(&file[at..]) {
            found.push(Ok(message));
            at += length;
        } else {
            let next = (at + 1..file.len()).find(|&n| file[n..].starts_with(HEAD)).unwrap_or(file.len());
            found.push(Err(file[at..next].to_vec()));
            at = next;
        }
    }
    found
}

/// All messages of a file that must not have a bad one.
pub fn all_good(file: &[u8]) -> Vec<Message> {
    split(file).into_iter().map(|m| m.unwrap_or_else(|bad| panic!("bad: {}", bad.escape_ascii()))).collect()
}

fn message(bytes: &[u8]) -> Option<(Message, usize)> {
    let rest = bytes.strip_prefix(b"8=FIX.4.4\x019=")?;
    let digits = rest.iter().position(|&b| b == 1)?;
    let length: usize = std::str::from_utf8(&rest[..digits]).ok()?.parse().ok()?;
    let body_at = 10 + 2 + digits + 1;
    let trailer = bytes.get(body_at + length..body_at + length + 7)?;
    let sum = bytes[..body_at + length].iter().map(|&b| u32::from(b)).sum::<u32>() % 256;
    if bytes[body_at + length - 1] != 1 || trailer != format!("10={sum:03}\x01").as_bytes() {
        return None;
    }
    let fields = bytes[body_at..body_at + length - 1].split(|&b| b == 1).map(|field| {
        let (tag, value) = std::str::from_utf8(field).ok()?.split_once('=')?;
        (!value.is_empty()).then_some((tag.parse().ok()?, value.to_owned()))
    });
    Some((Message(fields.collect::<Option<_>>()?), body_at + length + 7))
}
