//! Lists of addresses: `Ann <ann@x>, "Cole, Cy" <cy@y> (of the desk), team: bob@z, dee@z;`

use crate::text::path_values::LEAVES_MAX;

/// Somebody's name and address, each empty where it is not said.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct MailAddress {
    pub name: String,
    pub email: String,
}

/// Comments in comments, at most; deeper ones are text.
const COMMENT_DEPTH_MAX: usize = 16;

/// Parses the addresses of a field, including those in groups; stops at one more than a message can hold. Each
/// non-empty text between commas is an address, whatever it holds.
pub(super) fn list(value: &str) -> Vec<MailAddress> {
    let mut addresses = Vec::new();
    // Outside of brackets; in brackets; in parentheses.
    let (mut words, mut email, mut comment) = (String::new(), None::<String>, String::new());
    let mut chars = value.chars().peekable();
    let mut end = |words: &mut String, email: &mut Option<String>, comment: &mut String| {
        let text = words.trim();
        let address = match email.take() {
            Some(email) => {
                let name = if text.is_empty() { comment.trim() } else { text };
                MailAddress { name: name.to_owned(), email: strip_route(&email) }
            }
            None => MailAddress { name: comment.trim().to_owned(), email: without_blanks(text) },
        };
        if !address.email.is_empty() || !address.name.is_empty() {
            addresses.push(address);
        }
        words.clear();
        comment.clear();
        addresses.len() > LEAVES_MAX
    };
    while let Some(c) = chars.next() {
        match c {
            '"' => {
                while let Some(c) = chars.next() {
                    match c {
                        '"' => break,
                        '\\' => words.extend(chars.next()),
                        c => words.push(c),
                    }
                }
            }
            '(' => {
                let mut depth = 1;
                for c in chars.by_ref() {
                    match c {
                        '(' if depth < COMMENT_DEPTH_MAX => depth += 1,
                        ')' => depth -= 1,
                        _ => {}
                    }
                    if depth == 0 {
                        break;
                    }
                    comment.push(c);
                }
            }
            '<' => {
                let mut comment_text = String::new();
                for c in chars.by_ref() {
                    if c == '>' {
                        break;
                    }
                    comment_text.push(c);
                }
                email = Some(comment_text);
            }
            // The name of a group, and its end.
            ':' if email.is_none() && !words.contains('@') => words.clear(),
            ',' | ';' => {
                if end(&mut words, &mut email, &mut comment) {
                    return addresses;
                }
            }
            c => words.push(c),
        }
    }
    end(&mut words, &mut email, &mut comment);
    addresses
}

/// Strips the route that old addresses begin with.
fn strip_route(email: &str) -> String {
    let email = without_blanks(email);
    match email.strip_prefix('@').and_then(|rest| rest.split_once(':')) {
        Some((_, address)) => address.to_owned(),
        None => email,
    }
}

fn without_blanks(text: &str) -> String {
    text.split_whitespace().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    // A comma in a name made two people of one.
    #[test]
    fn names_and_addresses_are_told_apart() {
        let a = |name: &str, email: &str| MailAddress { name: name.to_owned(), email: email.to_owned() };
        for (text, want) in [
            ("ann@x", vec![a("", "ann@x")]),
            ("Ann Ames <ann@x>,bob@y", vec![a("Ann Ames", "ann@x"), a("", "bob@y")]),
            (r#""Cole, Cy \"C\"" <cy@y>"#, vec![a("Cole, Cy \"C\"", "cy@y")]),
            ("ann@x (Ann (of the desk))", vec![a("Ann (of the desk)", "ann@x")]),
            ("<ann@x>", vec![a("", "ann@x")]),
            ("desk: ann@x, Bob <bob@y>;, cy@z", vec![a("", "ann@x"), a("Bob", "bob@y"), a("", "cy@z")]),
            ("undisclosed-recipients:;", vec![]),
            ("<@relay:ann@x>", vec![a("", "ann@x")]),
            ("ann @ x", vec![a("", "ann@x")]),
            ("root", vec![a("", "root")]),
            ("", vec![]),
            (",;,", vec![]),
            ("\"open", vec![a("", "open")]),
            ("Ann <ann@x", vec![a("Ann", "ann@x")]),
        ] {
            assert_eq!(list(text), want, "{text}");
        }
    }
}
