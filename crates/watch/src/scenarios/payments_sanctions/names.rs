//! The names of parties in the form in which they are compared.

use std::collections::BTreeSet;
use std::ops::Range;
use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

/// Brings names into the form in which they are compared. Its buffers are used again for each name.
pub(super) struct NormalisedNames {
    drop_tokens: BTreeSet<String>,
    letters: String,
    tokens: Vec<Range<usize>>,
    name: String,
}

impl NormalisedNames {
    /// Makes buffers, and takes the legal forms that do not count.
    pub fn new(drop_tokens: &[String]) -> Self {
        let (letters, tokens, name) = (String::new(), Vec::new(), String::new());
        let mut names = Self { drop_tokens: BTreeSet::new(), letters, tokens, name };
        // A legal form of several tokens equals no token, because its name has a space.
        names.drop_tokens = drop_tokens.iter().map(|token| names.normalise(token).to_owned()).collect();
        names
    }

    /// Returns the tokens of a name in order, with a space between two of them.
    pub fn normalise(&mut self, name: &str) -> &str {
        self.letters.clear();
        let letters = name.nfkd().filter(|c| !is_combining_mark(*c)).flat_map(char::to_uppercase);
        self.letters.extend(letters.map(|c| if c.is_alphanumeric() { c } else { ' ' }));
        self.tokens.clear();
        let mut token_start = 0;
        for token in self.letters.split(' ') {
            let token_end = token_start + token.len();
            if !token.is_empty() && !self.drop_tokens.contains(token) {
                self.tokens.push(token_start..token_end);
            }
            token_start = token_end + 1;
        }
        let letters = &self.letters;
        self.tokens.sort_unstable_by_key(|token| &letters[token.clone()]);
        self.name.clear();
        for token in &self.tokens {
            if !self.name.is_empty() {
                self.name.push(' ');
            }
            self.name.push_str(&letters[token.clone()]);
        }
        &self.name
    }
}
