//! The tokens of a Rust source: words, strings and signs, without comments, characters and lifetimes.
//!
//! ```text
//! fn a() { say("}"); } // }   ──▶   fn  a  (  )  {  say  (  "}"  )  ;  }
//! ```
//!
//! A brace in a string or a comment closes nothing. It knows just as much of the language as that takes.

/// One token and the line it begins on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SourceToken<'s> {
    pub(crate) line: usize,
    pub(crate) kind: TokenKind<'s>,
}

/// The kind of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TokenKind<'s> {
    /// A name, a keyword or a number.
    Word(&'s str),
    /// A string between its quotes, as it is written.
    Text(&'s str),
    /// Any other sign, one at a time: `->` is two of them.
    Sign(char),
}

impl<'s> SourceToken<'s> {
    pub(crate) fn is_word(&self, word: &str) -> bool {
        self.kind == TokenKind::Word(word)
    }

    pub(crate) fn is_sign(&self, sign: char) -> bool {
        self.kind == TokenKind::Sign(sign)
    }

    pub(crate) fn word(&self) -> Option<&'s str> {
        if let TokenKind::Word(word) = self.kind { Some(word) } else { None }
    }

    pub(crate) fn text(&self) -> Option<&'s str> {
        if let TokenKind::Text(text) = self.kind { Some(text) } else { None }
    }
}

/// All tokens of a source.
pub(crate) fn tokens(source: &str) -> Result<Vec<SourceToken<'_>>, String> {
    let mut reader = TokenReader { source, at: 0, line: 1, found: Vec::new() };
    while reader.at < source.len() {
        reader.step()?;
    }
    Ok(reader.found)
}

struct TokenReader<'s> {
    source: &'s str,
    at: usize,
    line: usize,
    found: Vec<SourceToken<'s>>,
}

impl<'s> TokenReader<'s> {
    fn left(&self) -> &'s str {
        &self.source[self.at..]
    }

    /// Advances by `bytes` bytes; all ways forward come through here, so that no line is left uncounted.
    fn advance(&mut self, bytes: usize) {
        let passed = &self.source.as_bytes()[self.at..self.at + bytes];
        self.line += passed.iter().filter(|&&byte| byte == b'\n').count();
        self.at += bytes;
    }

    fn step(&mut self) -> Result<(), String> {
        let left = self.left();
        let Some(first) = left.chars().next() else { return Ok(()) };
        if left.starts_with("//") {
            self.advance(left.find('\n').unwrap_or(left.len()));
        } else if left.starts_with("/*") {
            let end = comment_end(left).ok_or_else(|| self.unended("comment"))?;
            self.advance(end);
        } else if first == '"' {
            self.string(1, quote_end(left).map(|end| end - 1), 1)?;
        } else if first == '\'' {
            let bytes = character_end(left).ok_or_else(|| self.unended("character"))?;
            self.advance(bytes);
        } else if is_part_of_word(first) {
            self.word()?;
        } else {
            if !first.is_whitespace() {
                self.found.push(SourceToken { line: self.line, kind: TokenKind::Sign(first) });
            }
            self.advance(first.len_utf8());
        }
        Ok(())
    }

    /// A word, or a string that begins with letters: `r#"…"#`, `b"…"` and their like.
    fn word(&mut self) -> Result<(), String> {
        let left = self.left();
        let word = &left[..left.find(|c| !is_part_of_word(c)).unwrap_or(left.len())];
        let behind = &left[word.len()..];
        let crosses = behind.len() - behind.trim_start_matches('#').len();
        let is_quote = behind[crosses..].starts_with('"');
        if matches!(word, "r" | "br" | "cr") && is_quote {
            let open = word.len() + crosses + 1;
            let close = format!("\"{}", "#".repeat(crosses));
            let end = left[open..].find(&close).map(|length| open + length);
            return self.string(open, end, close.len());
        }
        if matches!(word, "b" | "c") && is_quote && crosses == 0 {
            self.advance(word.len());
            return Ok(());
        }
        if word == "r" && crosses == 1 && behind[1..].starts_with(is_part_of_word) {
            // A keyword that is a name, `r#type`: the name follows.
            self.advance(2);
            return Ok(());
        }
        self.found.push(SourceToken { line: self.line, kind: TokenKind::Word(word) });
        self.advance(word.len());
        Ok(())
    }

    /// A string whose text begins `open` bytes on and ends `end` bytes on, before `close` bytes of signs.
    fn string(&mut self, open: usize, end: Option<usize>, close: usize) -> Result<(), String> {
        let end = end.ok_or_else(|| self.unended("string"))?;
        let text = &self.left()[open..end];
        self.found.push(SourceToken { line: self.line, kind: TokenKind::Text(text) });
        self.advance(end + close);
        Ok(())
    }

    fn unended(&self, what: &str) -> String {
        format!("the {what} that begins on line {} has no end", self.line)
    }
}

fn is_part_of_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Bytes of a block comment; comments nest.
fn comment_end(left: &str) -> Option<usize> {
    let bytes = left.as_bytes();
    let (mut depth, mut at) = (0, 0);
    while at + 1 < bytes.len() {
        match &bytes[at..at + 2] {
            b"/*" => (depth, at) = (depth + 1, at + 2),
            b"*/" => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            return Some(at);
        }
    }
    None
}

/// Bytes of a string from its first quote to after its last.
fn quote_end(left: &str) -> Option<usize> {
    let bytes = left.as_bytes();
    let mut at = 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            b'"' => return Some(at + 1),
            _ => at += 1,
        }
    }
    None
}

/// Bytes of a character between quotes, or of a lifetime, which has one quote alone.
fn character_end(left: &str) -> Option<usize> {
    let mut chars = left.char_indices().skip(1);
    let (_, first) = chars.next()?;
    if first == '\\' {
        // The sign after the backslash may itself be a quote.
        let (at, escaped) = chars.next()?;
        let behind = at + escaped.len_utf8();
        return left[behind..].find('\'').map(|length| behind + length + 1);
    }
    match chars.next() {
        Some((at, '\'')) => Some(at + 1),
        _ => Some(1 + left[1..].find(|c| !is_part_of_word(c)).unwrap_or(left.len() - 1)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens_text(source: &str) -> String {
        let words = tokens(source).unwrap().into_iter().map(|token| match token.kind {
            TokenKind::Word(word) => word.to_owned(),
            TokenKind::Text(text) => format!("<{text}>"),
            TokenKind::Sign(sign) => sign.to_string(),
        });
        words.collect::<Vec<_>>().join(" ")
    }

    /// A brace that is only text would end a block too early, and the tests after it would belong elsewhere.
    #[test]
    fn what_stands_in_strings_and_comments_is_not_code() {
        assert_eq!(tokens_text(r#"a("}\"{", b"{", c"}") // } b"#), r#"a ( <}\"{> , <{> , <}> )"#);
        assert_eq!(tokens_text("a /* { /* } */ fn */ b"), "a b");
        assert_eq!(
            tokens_text(r###"a(r"\", r#"}"}"#, br##""#}"##) b"###),
            r##"a ( <\> , <}"}> , <"#}> ) b"##
        );
        assert_eq!(tokens_text("r#type r#\"x\"# x"), "type <x> x");
    }

    /// A lifetime taken for an open quote would swallow the code up to the next one.
    #[test]
    fn characters_and_lifetimes_are_told_apart() {
        assert_eq!(tokens_text(r#"f('{', '\'', '\\', '\u{7d}', b'}', '"', 'é')"#), "f ( , , , , b , , )");
        assert_eq!(
            tokens_text("fn f<'a>(x: &'a str, y: &'static u8) { 'outer: loop {} }").matches('\'').count(),
            0
        );
        assert_eq!(tokens_text("impl<'a, 'b> X<'a> {}"), "impl < , > X < > { }");
    }

    #[test]
    fn lines_are_counted_through_strings_and_comments() {
        let source = "/* a\nb */ \"c\n\" d\n// e\nf";
        let lines: Vec<_> = tokens(source).unwrap().iter().map(|token| token.line).collect();
        assert_eq!(lines, [2, 3, 5]);
    }

    #[test]
    fn what_has_no_end_is_told_with_its_line() {
        for (source, what) in [("\n\"a", "string"), ("\n/* a /* */", "comment"), ("\nr#\"a\"", "string")] {
            let said = tokens(source).unwrap_err();
            assert_eq!(said, format!("the {what} that begins on line 2 has no end"), "{source}");
        }
    }
}
