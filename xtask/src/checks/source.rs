//! The functions of a Rust source: which are tests, and in which block of properties they are.
//!
//! ```text
//! #[test] fn a() {…}                           ──▶ a  a test
//! proptest! { #![…(config)] #[test] fn b(…) }  ──▶ b  a test with its config
//! #[test] #[ignore] fn c() {…}                 ──▶ c  a test that does not run
//! ```
//!
//! It does not see whether a file belongs to any module, or what a `cfg` leaves out.

use std::ops::Range;

use super::tokens::{SourceToken, tokens};

/// A source by its tokens and functions.
pub(crate) struct RustSource<'s> {
    pub(crate) path: &'s str,
    pub(crate) tokens: Vec<SourceToken<'s>>,
    /// Where the bracket at a place has its other half; elsewhere the place itself.
    pub(crate) partners: Vec<usize>,
    pub(crate) functions: Vec<RustFunction<'s>>,
}

/// A function. Ranges are places of tokens.
pub(crate) struct RustFunction<'s> {
    pub(crate) name: &'s str,
    pub(crate) is_test: bool,
    pub(crate) is_ignored: bool,
    /// Between the parentheses.
    pub(crate) parameters: Range<usize>,
    /// Between the braces; empty where there is none.
    pub(crate) body: Range<usize>,
    /// The block of properties that holds it.
    pub(crate) block: Option<PropertyBlock>,
}

/// A `proptest!` block.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct PropertyBlock {
    end: usize,
    /// The expression in `#![proptest_config(…)]`.
    pub(crate) config: Option<Range<usize>>,
}

/// The attributes before an item.
#[derive(Default)]
struct ItemAttributes {
    is_test: bool,
    is_ignored: bool,
}

impl<'s> RustSource<'s> {
    pub(crate) fn read(path: &'s str, text: &'s str) -> Result<Self, String> {
        let tokens = tokens(text).map_err(|why| format!("{path}: {why}"))?;
        let partners = partners(&tokens).map_err(|why| format!("{path}: {why}"))?;
        let mut source = Self { path, tokens, partners, functions: Vec::new() };
        source.find_functions()?;
        Ok(source)
    }

    /// Whether the tokens from a place on begin with these words or signs.
    pub(crate) fn begins(&self, at: usize, wanted: &[&str]) -> bool {
        wanted.iter().enumerate().all(|(index, wanted)| {
            self.tokens.get(at + index).is_some_and(|token| {
                token.is_word(wanted) || (wanted.len() == 1 && wanted.starts_with(|c| token.is_sign(c)))
            })
        })
    }

    /// The places between the bracket at a place and its other half.
    pub(crate) fn inside(&self, open: usize) -> Range<usize> {
        open + 1..self.partners[open].max(open + 1)
    }

    /// A message about a place of the source.
    pub(crate) fn complaint(&self, at: usize, message: &str) -> String {
        let line = self.tokens.get(at).or(self.tokens.last()).map_or(1, |token| token.line);
        format!("{}:{line}: {message}", self.path)
    }

    fn find_functions(&mut self) -> Result<(), String> {
        let mut blocks: Vec<PropertyBlock> = Vec::new();
        let mut before = ItemAttributes::default();
        let mut at = 0;
        while at < self.tokens.len() {
            while blocks.last().is_some_and(|block| at >= block.end) {
                blocks.pop();
            }
            if self.begins(at, &["#", "["]) {
                before.read(self, self.inside(at + 1));
                at = self.partners[at + 1] + 1;
                continue;
            }
            if self.begins(at, &["proptest", "!"]) && self.is_open(at + 2) {
                blocks.push(self.block(at + 2));
                at += 2;
            } else if self.tokens[at].is_word("fn")
                && let Some(name) = self.tokens.get(at + 1).and_then(SourceToken::word)
            {
                let block = blocks.last().cloned();
                let function = self.function(at + 1, block, std::mem::take(&mut before))?;
                self.functions.push(RustFunction { name, ..function });
                at += 1;
            } else if !self.is_between_attribute_and_function(at) {
                before = ItemAttributes::default();
            }
            at += 1;
        }
        Ok(())
    }

    fn is_open(&self, at: usize) -> bool {
        ["{", "(", "["].iter().any(|open| self.begins(at, &[open]))
    }

    /// `pub(in some::place) unsafe extern "C" fn`: the words that may come between.
    fn is_between_attribute_and_function(&self, at: usize) -> bool {
        let between =
            ["pub", "crate", "super", "self", "in", "async", "const", "unsafe", "extern", "(", ")", ":"];
        self.tokens[at].text().is_some() || between.iter().any(|word| self.begins(at, &[word]))
    }

    fn block(&self, open: usize) -> PropertyBlock {
        let end = self.partners[open];
        let is_config = self.begins(open + 1, &["#", "!", "[", "proptest_config", "("]);
        PropertyBlock { end, config: is_config.then(|| self.inside(open + 5)) }
    }

    fn function(
        &self,
        at: usize,
        block: Option<PropertyBlock>,
        before: ItemAttributes,
    ) -> Result<RustFunction<'s>, String> {
        let open = self
            .behind_generics(at + 1)
            .filter(|&open| self.begins(open, &["("]))
            .ok_or_else(|| self.complaint(at, "the function has no parentheses"))?;
        let mut end = self.partners[open] + 1;
        // The result type may hold a `;` in brackets.
        while end < self.tokens.len() && !self.tokens[end].is_sign(';') && !self.tokens[end].is_sign('{') {
            end = self.partners[end].max(end) + 1;
        }
        let body = if self.begins(end, &["{"]) { self.inside(end) } else { end..end };
        let ItemAttributes { is_test, is_ignored } = before;
        Ok(RustFunction { name: "", is_test, is_ignored, parameters: self.inside(open), body, block })
    }

    /// The place after `<…>`, if there is one. The arrow of a function type closes nothing.
    fn behind_generics(&self, mut at: usize) -> Option<usize> {
        let mut depth = 0;
        loop {
            let token = self.tokens.get(at)?;
            if token.is_sign('<') {
                depth += 1;
            } else if token.is_sign('>') && !self.tokens[at - 1].is_sign('-') {
                depth -= 1;
            }
            if depth == 0 {
                return Some(if token.is_sign('>') { at + 1 } else { at });
            }
            at += 1;
        }
    }
}

impl ItemAttributes {
    fn read(&mut self, source: &RustSource<'_>, inside: Range<usize>) {
        let first = &source.tokens[inside.start..inside.end];
        self.is_test |= first.len() == 1 && first[0].is_word("test");
        self.is_ignored |= first.first().is_some_and(|token| token.is_word("ignore"));
    }
}

fn partners(tokens: &[SourceToken<'_>]) -> Result<Vec<usize>, String> {
    let mut partners: Vec<usize> = (0..tokens.len()).collect();
    let mut open: Vec<(usize, char)> = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        for (opening, closing) in [('(', ')'), ('[', ']'), ('{', '}')] {
            if token.is_sign(opening) {
                open.push((at, closing));
            } else if token.is_sign(closing) {
                let (other, wanted) = open
                    .pop()
                    .ok_or_else(|| format!("the `{closing}` on line {} opens nowhere", token.line))?;
                if wanted != closing {
                    return Err(format!("line {} closes with `{closing}` instead of `{wanted}`", token.line));
                }
                partners[at] = other;
                partners[other] = at;
            }
        }
    }
    match open.last() {
        Some(&(at, _)) => Err(format!("a bracket on line {} is never closed", tokens[at].line)),
        None => Ok(partners),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn describe_functions(text: &str) -> Vec<String> {
        let source = RustSource::read("a.rs", text).unwrap();
        let functions = source.functions.iter();
        functions
            .map(|function| {
                let test = if function.is_test { " test" } else { "" };
                let ignored = if function.is_ignored { " ignored" } else { "" };
                let property = if function.block.is_some() { " property" } else { "" };
                format!("{}{test}{ignored}{property}", function.name)
            })
            .collect()
    }

    /// Lines between the attribute and the function must not hide the test, and an attribute must not reach beyond
    /// its own item.
    #[test]
    fn attributes_belong_to_the_function_behind_them() {
        assert_eq!(
            describe_functions("#[test]\n#[should_panic(expected = \"}\")]\npub(crate) fn a() {} fn b() {}"),
            ["a test", "b"]
        );
        assert_eq!(
            describe_functions("#[test] unsafe extern \"C\" fn a() {} #[cfg(test)] mod x { fn b() {} }"),
            ["a test", "b"]
        );
        assert_eq!(
            describe_functions("#[cfg(test)] fn a() {} #[testing] fn b() {} #[test] struct X; fn c() {}"),
            ["a", "b", "c"]
        );
        assert_eq!(
            describe_functions("#[ignore = \"slow\"] #[test] fn a() {} #[test] #[ignore] fn b() {}"),
            ["a test ignored", "b test ignored"]
        );
    }

    #[test]
    fn a_block_of_properties_ends_with_its_brace() {
        let text = "proptest! { #![proptest_config(C::with_cases(9))] #[test] fn a(x in \"}\") { if x {} } } \
                    #[test] fn b() { proptest! { #[test] fn c(y in 0..2) {} } } #[test] fn d() {}";
        assert_eq!(describe_functions(text), ["a test property", "b test", "c test property", "d test"]);
    }

    #[test]
    fn parameters_and_bodies_are_found_behind_generics_and_results() {
        let text =
            "fn a<F: Fn(u8) -> u8>(cases: u32) -> [u8; 4] where F: Copy { body } trait T { fn b(&self); }";
        let source = RustSource::read("a.rs", text).unwrap();
        let [a, b] = &source.functions[..] else { panic!("two functions") };
        assert!(source.tokens[a.parameters.start].is_word("cases"));
        assert_eq!((a.body.len(), source.tokens[a.body.start].word()), (1, Some("body")));
        assert!(b.body.is_empty());
    }

    /// A source that is misread would lose tests without a word.
    #[test]
    fn brackets_that_do_not_match_are_told() {
        for (text, said) in [
            ("fn a() {", "a.rs: a bracket on line 1 is never closed"),
            ("\n}", "a.rs: the `}` on line 2 opens nowhere"),
            ("(]", "a.rs: line 1 closes with `]` instead of `)`"),
        ] {
            assert_eq!(RustSource::read("a.rs", text).err().as_deref(), Some(said));
        }
    }
}
