//! The slow twin of [`parts::split`](crate::swift_mt::parts::split): the notation of the standard, read as it is, with
//! all ways tried. It shares the types with the fast path and none of its code.
//!
//! | | |
//! |---|---|
//! | `name=4!c` | exactly four of a class: `n` digits, `a` letters, `c` both, `s` a sign, `m` D or C |
//! | `name=8c` | one to eight |
//! | `name=x` | the rest of the line; `name=r` up to `//` in it, or sixteen of it |
//! | `name=z` | the rest of the value |
//! | `name=d` | an amount; `D L V E T6 B` days, a time, a BIC |
//! | `{amount}` | only if the amount before it may end here |
//! | `'text'` | that text; `$` a line end; `w` a line end or a blank, or neither |
//! | `[…]` | maybe; `{1/}` only if that is here, `{!/}` only if not |

use crate::swift_mt::parts::SubfieldFormat;

/// Name, kind, start and end of each part.
pub type Found = Vec<(String, SubfieldFormat, usize, usize)>;

/// Splits a value into its parts: `None` if the tag has no known form, `Err` if the value has another form.
#[allow(clippy::missing_errors_doc, reason = "said in the line above")]
pub fn split(tag: &str, value: &[u8]) -> Option<Result<Found, ()>> {
    let forms = forms(tag, value)?;
    let found = forms.iter().find_map(|form| {
        let form: Vec<String> = tokens(form);
        let form: Vec<&str> = form.iter().map(String::as_str).collect();
        try_all(&form, value, 0)
    });
    Some(found.ok_or(()))
}

/// Returns the forms of a tag, as alternatives.
fn forms(tag: &str, value: &[u8]) -> Option<Vec<String>> {
    let (number, letter) = tag.split_at_checked(2)?;
    let number: u8 = number.parse().ok()?;
    if letter.len() > 1 || !letter.bytes().all(|l| l.is_ascii_uppercase()) {
        return None;
    }
    let one = |form: &str| Some(vec![form.to_owned()]);
    let balance = "mark=m date=D currency=3!a amount=d";
    let account = if matches!(number, 50 | 59) { "'/' account=x" } else { "'/' mark=1!a '/' account=x" };
    let accounts: Vec<&str> = match number {
        50 | 59 => vec![account],
        _ => vec![account, "'/' mark=1!a {$}", "'/' account=x"],
    };
    let with_account = |rest: &str, bare: bool| {
        let mut all: Vec<String> = accounts.iter().map(|account| format!("{account} $ {rest}")).collect();
        if bare {
            all.push(format!("{{!/}} {rest}"));
        }
        Some(all)
    };
    let numbered = ["'1/' name=x $ address=z", "'1/' name=x", "{!1/} {#/} address=z"];
    match (number, letter) {
        (50..=59, "A" | "G") | (82..=87, "A") => with_account("bic=B", true),
        (50..=59 | 82..=87, "B") => {
            let mut all = with_account("location=x", true)?;
            all.extend(accounts.iter().map(|a| (*a).to_owned()));
            Some(all)
        }
        (50, "C") => one("bic=B"),
        (51..=59 | 82..=87, "C") => one("'/' account=x"),
        (50..=59, "L") => one("name=x"),
        (50..=59, "F") => {
            let head = ["'/' account=x $", "{!/} id_code=4!a '/' id_country=2!a '/' id=x $", "{!/}"];
            let heads = if number == 50 { &head[..2] } else { &[head[0], head[2]][..] };
            Some(heads.iter().flat_map(|h| numbered.iter().map(move |n| format!("{h} {n}"))).collect())
        }
        (50..=59, "" | "D" | "H" | "K") | (82..=87, "D") => {
            let mut all = with_account("name=x $ address=z", true)?;
            all.extend(with_account("name=x", true)?);
            Some(all)
        }
        (60 | 62, "F" | "M") | (64 | 65, "") => one(balance),
        (61, "") => {
            // Blanks are in place of an entry date, not after one.
            let heads = ["entry_date=E", "[4_]"]
                .map(|entry| format!("date=V {entry} mark=M [funds=1!a] w amount=d {{amount}} [type=4!t]"));
            let tails =
                ["[reference=r] ['//' [bank_reference=x]] [$ details=z]", "reference=r {over} details=z"];
            Some(
                tails
                    .iter()
                    .flat_map(|tail| heads.iter().map(move |head| format!("{head} {tail}")))
                    .collect(),
            )
        }
        (86, "") | (70 | 72 | 75 | 76 | 79, "") | (71, "B") | (72, "Z") => one("lines=z"),
        (77, l) if !l.is_empty() => one("lines=z"),
        (25, "P") => one("account=x $ bic=B"),
        (25, "") => one("account=x"),
        (28, "" | "C" | "D") => one("number=16n ['/' sequence=16n]"),
        (28, "E") => one("number=5n '/' code=4!c"),
        (34, "F") => one("currency=3!a [mark=m] amount=d"),
        (90, "C" | "D") => one("count=16n currency=3!a amount=d"),
        (13, "") => one("date=D time=T4"),
        (13, "D") => one("date=D time=T4 sign=s offset=T4"),
        (13, "C") => one("'/' code=8c '/' time=T4 sign=s offset=T4"),
        (20, "C") => generic(value, "'//' reference=x"),
        (20 | 21, _) => one("reference=x"),
        (12, "") => one("type=3!n"),
        (22, "A") | (23, "B") => one("code=4!c"),
        (23, "E") => one("code=4!c ['/' information=x]"),
        (23, "G") => one("code=4!c ['/' subfunction=4!c]"),
        (26, "T") => one("code=3!c"),
        (27, "") => one("number=1!n '/' total=1!n"),
        (30, "") | (31, "C" | "E") => one("date=D"),
        (30, _) => one("date=L"),
        (31, "D") => one("date=D place=x"),
        (32, "A" | "C" | "D") => one("date=D currency=3!a amount=d"),
        (32..=34, "B") | (71, "F" | "G") => one("currency=3!a amount=d"),
        (32, "H") | (34, "E") => one("[sign=1!N] currency=3!a amount=d"),
        (36, "") => one("rate=d"),
        (71, "A") => one("code=3!a"),
        (16, "R" | "S") => one("code=16c"),
        (35, "B") => Some(
            ["'ISIN ' isin=12!c $ description=z", "'ISIN ' isin=12!c", "{!ISIN } description=z"]
                .map(str::to_owned)
                .to_vec(),
        ),
        (11, "A") => generic(value, "'//' currency=3!a"),
        (13, "A") => generic(value, "'//' number=3!c"),
        (13, "B") => generic(value, "'/' [issuer=8c] '/' number=x"),
        (17, "B") => generic(value, "'//' flag=1!a"),
        (19, "A") => generic(value, "'//' [sign=1!N] currency=3!a amount=d"),
        (19, "B") | (92, "F") => generic(value, "'//' currency=3!a amount=d"),
        (22, "F") | (24, "B") | (25, "D") | (98, "B") => generic(value, "'/' [issuer=8c] '/' code=4!c"),
        (22, "H") | (97, "C") => generic(value, "'//' code=4!c"),
        (36, "B") => generic(value, "'//' type=4!c '/' quantity=d"),
        (70, "C" | "D" | "E" | "F" | "G") => generic(value, "'//' lines=z"),
        (90, "A") => generic(value, "'//' type=4!c '/' price=d"),
        (90, "B") => generic(value, "'//' type=4!c '/' currency=3!a price=d"),
        (92, "A") => generic(value, "'//' [sign=1!N] rate=d"),
        (92, "B") => generic(value, "'//' currency=3!a '/' currency2=3!a '/' rate=d"),
        (93, "B") => generic(value, "'/' [issuer=8c] '/' type=4!c '/' [sign=1!N] balance=d"),
        (94, "B") => generic(value, "'/' [issuer=8c] '/' code=4!c ['/' narrative=x]"),
        (94, "C") => generic(value, "'//' country=2!a"),
        (94, "F") => generic(value, "'//' type=4!c '/' bic=B"),
        (95, "P") => generic(value, "'//' bic=B"),
        (95, "Q") => generic(value, "'//' name=x [$ address=z]"),
        (95, "R") => generic(value, "'/' issuer=8c '/' id=x"),
        (97, "A") => generic(value, "'//' account=x"),
        (97, "B") => generic(value, "'/' [issuer=8c] '/' type=4!c '/' account=x"),
        (98, "A") => generic(value, "'//' date=L"),
        (98, "C") => generic(value, "'//' date=L time=T6"),
        (98, "E") => generic(
            value,
            "'//' date=L time=T6 [',' fraction=3n] ['/' [sign=1!N] [offset=4!n] [offset=2!n] {offset}]",
        ),
        (99, "A") => generic(value, "'//' [sign=1!N] number=3!n"),
        _ => None,
    }
}

/// Returns the form of a generic field, which starts with a qualifier. A tag of the same name in another category has
/// no qualifier.
fn generic(value: &[u8], rest: &str) -> Option<Vec<String>> {
    value.starts_with(b":").then(|| vec![format!("':' qualifier=4!c {rest}")])
}

/// Words of a form; text in quotes may hold blanks.
fn tokens(form: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), String::new(), false);
    for c in form.chars() {
        let alone = !quote && "[]".contains(c);
        if (c == ' ' && !quote && !word.starts_with('{')) || alone {
            if !word.is_empty() {
                words.push(std::mem::take(&mut word));
            }
            if alone {
                words.push(c.to_string());
            }
            continue;
        }
        quote ^= c == '\'';
        word.push(c);
        if c == '}' {
            words.push(std::mem::take(&mut word));
        }
    }
    if !word.is_empty() {
        words.push(word);
    }
    words
}

/// Tries all ways to read the rest of `text` by the rest of `form`, longest first.
fn try_all(form: &[&str], text: &[u8], at: usize) -> Option<Found> {
    let Some((word, after)) = form.split_first() else {
        return (at == text.len()).then(Vec::new);
    };
    let rest = &text[at..];
    let line_end = |rest: &[u8]| {
        if rest.starts_with(b"\n") {
            1
        } else if rest.starts_with(b"\r\n") {
            2
        } else {
            0
        }
    };
    match *word {
        "[" => {
            let mut depth = 1;
            let close = after.iter().position(|w| {
                depth += i32::from(*w == "[") - i32::from(*w == "]");
                depth == 0
            })?;
            let with: Vec<&str> = after[..close].iter().chain(&after[close + 1..]).copied().collect();
            return try_all(&with, text, at).or_else(|| try_all(&after[close + 1..], text, at));
        }
        "$" => {
            return match line_end(rest) {
                0 => None,
                n => try_all(after, text, at + n),
            };
        }
        "w" => {
            let n = if rest.starts_with(b" ") { 1 } else { line_end(rest) };
            return try_all(after, text, at + n);
        }
        "4_" => {
            let blanks = rest.iter().take(4).take_while(|b| **b == b' ').count();
            return try_all(after, text, at + blanks);
        }
        _ => {}
    }
    if let Some(guard) = word.strip_prefix('{').and_then(|w| w.strip_suffix('}')) {
        let holds = match guard {
            "$" => rest.is_empty() || line_end(rest) > 0,
            "over" => !rest.is_empty() && line_end(rest) == 0 && !rest.starts_with(b"//"),
            "amount" => amount_ends(text, at),
            "#/" => rest.len() > 1 && rest[0].is_ascii_digit() && rest[1] == b'/',
            "offset" => text[..at].iter().rev().take_while(|b| b.is_ascii_digit()).count() > 0,
            _ => match guard.strip_prefix('!') {
                Some(not) => !rest.starts_with(not.as_bytes()),
                None => rest.starts_with(guard.as_bytes()),
            },
        };
        return if holds { try_all(after, text, at) } else { None };
    }
    if let Some(text_here) = word.strip_prefix('\'').and_then(|w| w.strip_suffix('\'')) {
        return rest.starts_with(text_here.as_bytes()).then(|| try_all(after, text, at + text_here.len()))?;
    }
    let (name, what) = word.split_once('=').expect("a word of a form");
    let (kind, lengths) = lengths(what, rest);
    lengths.into_iter().find_map(|len| {
        let mut found = try_all(after, text, at + len)?;
        found.insert(0, (name.to_owned(), kind, at, at + len));
        Some(found)
    })
}

/// Returns whether the amount of a statement line may end at `at`.
fn amount_ends(text: &[u8], at: usize) -> bool {
    let digits = text[..at].iter().rev().take_while(|b| b.is_ascii_digit()).count();
    let comma = text[..at - digits].ends_with(b",");
    let rest: String = text[at..].iter().take(5).map(|b| char::from(*b)).collect();
    let number = |c: char| c.is_ascii_digit() || c == ',' || c == '.';
    let (first, second) = (rest.chars().next(), rest.chars().nth(1));
    let Some(first) = first else { return true };
    if first == '\n' || rest.starts_with("\r\n") || rest.starts_with("//") {
        return true;
    }
    let code = |c: &char| c.is_ascii_uppercase() || c.is_ascii_digit() || *c == ' ';
    if "SNF".contains(first) {
        return comma || rest.chars().skip(1).take(3).filter(code).count() == 3;
    }
    (first == ' ' || comma && first.is_ascii_alphabetic()) && !second.is_some_and(number)
}

/// Lists the lengths that a component may have here, longest first.
fn lengths(what: &str, rest: &[u8]) -> (SubfieldFormat, Vec<usize>) {
    let line: Vec<u8> = {
        let line = rest.split(|b| *b == b'\n').next().unwrap_or_default();
        let ends = line.len() < rest.len();
        if ends { line.strip_suffix(b"\r").unwrap_or(line).to_vec() } else { line.to_vec() }
    };
    let if_some = |len: usize| if len > 0 { vec![len] } else { Vec::new() };
    let digits = |n: usize| rest.len() >= n && rest[..n].iter().all(u8::is_ascii_digit);
    let number = |from: usize, to: usize| -> u32 {
        std::str::from_utf8(&rest[from..to]).ok().and_then(|t| t.parse().ok()).unwrap_or(9999)
    };
    let day = |year: u32, month: u32, day: u32| {
        let leap = year.is_multiple_of(4) && !year.is_multiple_of(100) || year.is_multiple_of(400);
        let months = [31, if leap { 29 } else { 28 }, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
        (1900..=2261).contains(&year)
            && (1..=12).contains(&month)
            && day >= 1
            && day <= months[month as usize - 1]
    };
    let century = |two: u32| if two >= 80 { 1900 + two } else { 2000 + two };
    match what {
        "x" => (SubfieldFormat::Text, if_some(line.len())),
        "r" => {
            let to = (0..line.len()).find(|&n| line[n..].starts_with(b"//"));
            let all = if line.len() > 16 && line[..17].is_ascii() { 16 } else { line.len() };
            (SubfieldFormat::Text, if_some(to.unwrap_or(all)))
        }
        "z" => (SubfieldFormat::Lines, if_some(rest.len())),
        "B" => {
            let plain = |b: &u8| b.is_ascii_digit() || b.is_ascii_uppercase();
            let good = (line.len() == 8 || line.len() == 11)
                && line.iter().all(plain)
                && line[4..6].iter().all(u8::is_ascii_uppercase);
            (SubfieldFormat::Text, if good { vec![line.len()] } else { Vec::new() })
        }
        "d" => {
            let len = rest.iter().take_while(|b| b.is_ascii_digit() || **b == b',').count();
            let text = std::str::from_utf8(&rest[..len]).unwrap_or_default();
            let all: String = text.chars().filter(char::is_ascii_digit).collect();
            let good = len <= 24
                && text.matches(',').count() <= 1
                && !all.is_empty()
                && all.trim_start_matches('0').len() <= 18;
            (SubfieldFormat::Amount, if good { vec![len] } else { Vec::new() })
        }
        "D" => {
            let good = digits(6) && day(century(number(0, 2)), number(2, 4), number(4, 6));
            (SubfieldFormat::Date, if good { vec![6] } else { Vec::new() })
        }
        "V" => {
            let good = digits(6)
                && (day(century(number(0, 2)), number(2, 4), number(4, 6))
                    || number(2, 4) == 2 && matches!(number(4, 6), 29 | 30));
            (SubfieldFormat::ValueDate, if good { vec![6] } else { Vec::new() })
        }
        "L" => {
            let good = digits(8) && day(number(0, 4), number(4, 6), number(6, 8));
            (SubfieldFormat::DateLong, if good { vec![8] } else { Vec::new() })
        }
        "E" => (SubfieldFormat::EntryDate, if digits(4) { vec![4] } else { Vec::new() }),
        "T4" | "T6" => {
            let len = if what == "T4" { 4 } else { 6 };
            let good =
                digits(len) && number(0, 2) < 24 && number(2, 4) < 60 && (len == 4 || number(4, 6) <= 60);
            (SubfieldFormat::Time, if good { vec![len] } else { Vec::new() })
        }
        "M" => {
            let two = rest.len() > 1 && b"RE".contains(&rest[0]) && b"DC".contains(&rest[1]);
            let one = !two && rest.first().is_some_and(|b| b"DC".contains(b));
            (
                SubfieldFormat::Text,
                if two {
                    vec![2]
                } else if one {
                    vec![1]
                } else {
                    Vec::new()
                },
            )
        }
        "m" => (
            SubfieldFormat::Text,
            if rest.first().is_some_and(|b| b"DC".contains(b)) { vec![1] } else { vec![] },
        ),
        "s" => (
            SubfieldFormat::Text,
            if rest.first().is_some_and(|b| b"+-".contains(b)) { vec![1] } else { vec![] },
        ),
        "1!N" => (SubfieldFormat::Text, if rest.starts_with(b"N") { vec![1] } else { Vec::new() }),
        "4!t" => {
            let good = rest.len() >= 4
                && rest[0].is_ascii_uppercase()
                && rest[1..4].iter().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || *b == b' ');
            (SubfieldFormat::Text, if good { vec![4] } else { Vec::new() })
        }
        _ => {
            let (most, class) = what.split_at(what.len() - 1);
            let exact = most.strip_suffix('!');
            let most: usize = exact.unwrap_or(most).parse().expect("a number");
            let of_class = |b: &u8| match class {
                "n" => b.is_ascii_digit(),
                "a" => b.is_ascii_uppercase(),
                "c" => b.is_ascii_digit() || b.is_ascii_uppercase(),
                other => panic!("no class {other}"),
            };
            let run = rest.iter().take(most).take_while(|b| of_class(b)).count();
            let lengths = if exact.is_some() {
                if run == most { vec![most] } else { vec![] }
            } else {
                (1..=run).rev().collect()
            };
            (SubfieldFormat::Text, lengths)
        }
    }
}
