//! The amount of work of a test: cases of properties and rounds, as numbers in the source.
//!
//! ```text
//! #![proptest_config(ProptestConfig::with_cases(20_000))]   ──▶ 20 000 cases
//! hold(DEF.id, PARAMS, 4_000, 60, op)                       ──▶  4 000 cases
//! number("UNITAPE_KILL_ROUNDS", 200)                        ──▶    200 rounds
//! ```
//!
//! The forms that are covered, and nothing else; another form is an error, so that no number is guessed:
//!
//! - a number is a literal, a constant of the same file, or `….cases.max(LITERAL)`;
//! - a config is `with_cases(NUMBER)`, `ProptestConfig { cases: NUMBER, .. }`, a default, or a call without arguments of
//!   a function of the same file whose body is one of these;
//! - a test outside a block has the cases of each call of a helper of its crate, a function that starts a `TestRunner`
//!   by a config of its own or by its parameter `cases`. A call in a loop counts once; a helper that calls helpers adds
//!   nothing. The form `proptest!(|(x in …)| …)` is not read: nothing here has it;
//! - rounds are `f("UNITAPE_…_ROUNDS", NUMBER)`, or a call with that name alone and `map_or(NUMBER, …)` or
//!   `unwrap_or(NUMBER)` behind it. Names end with `ROUNDS`, `SEEDS` or `TRIES`.

use std::ops::Range;

use super::source::{RustFunction, RustSource};
use super::tokens::SourceToken;

/// Cases where a block says nothing.
const CASES_WITHOUT_CONFIG: u64 = 256;

/// A function that runs cases for tests that call it.
pub(crate) struct CaseHelper {
    name: String,
    cases: CaseAmount,
}

/// The source of the number of cases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CaseAmount {
    Number(u64),
    /// The parameter `cases`.
    Parameter,
    /// The argument at this place of a call.
    Argument(usize),
}

/// The default of a variable that says how many rounds a test makes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct RoundAmount {
    pub(crate) variable: String,
    pub(crate) number: u64,
}

/// The helper that a function is, if it is one.
pub(crate) fn helper(
    source: &RustSource<'_>,
    function: &RustFunction<'_>,
) -> Result<Option<CaseHelper>, String> {
    if function.is_test || !starts_runner(source, function) {
        return Ok(None);
    }
    let mut cases = config(source, function.body.clone())?;
    if cases == CaseAmount::Parameter {
        let parameters = parts(source, function.parameters.clone());
        let place = parameters.iter().position(|part| source.begins(part.start, &["cases", ":"]));
        let at = function.body.start;
        cases = CaseAmount::Argument(
            place.ok_or_else(|| source.complaint(at, "`cases` is no parameter of this helper of tests"))?,
        );
    }
    Ok(Some(CaseHelper { name: function.name.to_owned(), cases }))
}

/// Cases of a test; none where it has no properties.
pub(crate) fn cases(
    source: &RustSource<'_>,
    test: &RustFunction<'_>,
    helpers: &[CaseHelper],
) -> Result<Option<u64>, String> {
    if let Some(block) = &test.block {
        let Some(range) = block.config.clone() else { return Ok(Some(CASES_WITHOUT_CONFIG)) };
        let at = range.start;
        return match config(source, range)? {
            CaseAmount::Number(number) => Ok(Some(number)),
            _ => Err(source.complaint(at, "the number of cases is no number")),
        };
    }
    let mut total = None;
    if starts_runner(source, test) {
        match config(source, test.body.clone())? {
            CaseAmount::Number(number) => total = Some(number),
            _ => return Err(source.complaint(test.body.start, "the number of cases is no number")),
        }
    }
    for at in test.body.clone() {
        let called = source.tokens[at].word().filter(|_| source.begins(at + 1, &["("]));
        // A method of the same name is something else.
        let is_free = !source.tokens[at - 1].is_sign('.');
        let helper = helpers.iter().find(|helper| Some(helper.name.as_str()) == called && is_free);
        if let Some(helper) = helper {
            *total.get_or_insert(0) += called_cases(source, at + 1, helper)?;
        }
    }
    Ok(total)
}

fn called_cases(source: &RustSource<'_>, open: usize, helper: &CaseHelper) -> Result<u64, String> {
    match helper.cases {
        CaseAmount::Number(number) => Ok(number),
        CaseAmount::Argument(place) => {
            let argument = parts(source, source.inside(open)).into_iter().nth(place);
            number(source, argument.unwrap_or(open..open))
        }
        CaseAmount::Parameter => Err(source.complaint(open, "the number of cases is no number")),
    }
}

fn starts_runner(source: &RustSource<'_>, function: &RustFunction<'_>) -> bool {
    source.tokens[function.body.clone()].iter().any(|token| token.is_word("TestRunner"))
}

/// The cases that a config has: an expression, or the body of a function.
fn config(source: &RustSource<'_>, range: Range<usize>) -> Result<CaseAmount, String> {
    for at in range.clone() {
        if source.begins(at, &["with_cases", "("]) {
            return amount(source, source.inside(at + 1));
        }
        if source.tokens[at].is_word("cases")
            && (source.begins(at - 1, &["{"]) || source.begins(at - 1, &[","]))
        {
            if source.begins(at + 1, &[":"]) {
                let all = parts(source, at + 2..range.end);
                return amount(source, all.into_iter().next().unwrap_or(at..at));
            }
            return Ok(CaseAmount::Parameter);
        }
    }
    if range.len() == 3 && source.begins(range.start + 1, &["(", ")"]) {
        let name = source.tokens[range.start].word();
        if let Some(function) = source.functions.iter().find(|function| Some(function.name) == name) {
            return config(source, function.body.clone());
        }
    }
    let is_default = |at: usize| {
        ["ProptestConfig", "TestRunner"].iter().any(|kind| source.begins(at, &[kind, ":", ":", "default"]))
    };
    if range.clone().any(is_default) {
        return Ok(CaseAmount::Number(CASES_WITHOUT_CONFIG));
    }
    Err(source.complaint(range.start, "the scan of checks does not see how many cases this config has"))
}

fn amount(source: &RustSource<'_>, range: Range<usize>) -> Result<CaseAmount, String> {
    if range.len() == 1 && source.tokens[range.start].is_word("cases") {
        return Ok(CaseAmount::Parameter);
    }
    number(source, range).map(CaseAmount::Number)
}

/// All rounds of a source.
pub(crate) fn rounds(source: &RustSource<'_>) -> Result<Vec<RoundAmount>, String> {
    let mut found = Vec::new();
    for at in 2..source.tokens.len() {
        let Some(variable) = source.tokens[at].text().filter(|text| is_variable(text)) else { continue };
        // Code that sets a variable for another process has no default for it.
        let asks = |word: &str| !matches!(word, "env" | "env_remove");
        if !source.begins(at - 1, &["("]) || !source.tokens[at - 2].word().is_some_and(asks) {
            continue;
        }
        let range = otherwise(source, at).ok_or_else(|| {
            source.complaint(at, &format!("the scan of checks does not see a default of {variable}"))
        })?;
        found.push(RoundAmount { variable: variable.to_owned(), number: number(source, range)? });
    }
    Ok(found)
}

fn is_variable(text: &str) -> bool {
    let is_name = |text: &str| text.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_');
    text.starts_with("UNITAPE_")
        && is_name(text)
        && ["ROUNDS", "SEEDS", "TRIES"].iter().any(|end| text.ends_with(end))
}

/// The place of a variable's default; its name is at this place.
fn otherwise(source: &RustSource<'_>, at: usize) -> Option<Range<usize>> {
    if source.begins(at + 1, &[","]) {
        return parts(source, at + 2..source.partners[at - 1]).into_iter().next();
    }
    let mut behind = at + 2;
    // One method after the other, up to the one that has a default.
    while source.begins(at + 1, &[")"]) && source.begins(behind, &["."]) {
        let method = source.tokens.get(behind + 1)?;
        let open = behind + 2;
        if !source.begins(open, &["("]) {
            return None;
        }
        if method.is_word("map_or") || method.is_word("unwrap_or") {
            return parts(source, source.inside(open)).into_iter().next();
        }
        behind = source.partners[open] + 1;
    }
    None
}

/// The parts between commas, those in brackets and generics left out; the list ends with the bracket that holds it.
fn parts(source: &RustSource<'_>, range: Range<usize>) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let (mut begin, mut at, mut depth) = (range.start, range.start, 0usize);
    while at < range.end {
        let token = &source.tokens[at];
        if token.is_sign('<') {
            depth += 1;
        } else if token.is_sign('>') && !source.tokens[at - 1].is_sign('-') {
            depth = depth.saturating_sub(1);
        } else if token.is_sign(',') && depth == 0 {
            found.push(begin..at);
            begin = at + 1;
        } else if source.partners[at] < at {
            break;
        }
        at = source.partners[at] + 1;
    }
    if begin < at {
        found.push(begin..at);
    }
    found
}

fn number(source: &RustSource<'_>, range: Range<usize>) -> Result<u64, String> {
    let tokens = &source.tokens[range.clone()];
    let found = match tokens {
        [one] => one.word().and_then(|word| literal(word).or_else(|| constant(source, word))),
        [.., max, open, most, close]
            if max.is_word("max")
                && open.is_sign('(')
                && close.is_sign(')')
                && tokens.iter().any(|token| token.is_word("cases")) =>
        {
            most.word().and_then(literal).map(|least| least.max(CASES_WITHOUT_CONFIG))
        }
        _ => None,
    };
    found.ok_or_else(|| {
        source
            .complaint(range.start, "the scan of checks reads a literal or a constant of the same file here")
    })
}

fn literal(word: &str) -> Option<u64> {
    let digits = word.replace('_', "");
    let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
    let kind = &digits[end..];
    (kind.is_empty() || kind.starts_with(['u', 'i'])).then(|| digits[..end].parse().ok())?
}

/// The constant of this name in a source.
pub(crate) fn constant(source: &RustSource<'_>, name: &str) -> Option<u64> {
    let at = (0..source.tokens.len()).find(|&at| source.begins(at, &["const", name, ":"]))?;
    let equals = (at..source.tokens.len()).find(|&at| source.tokens[at].is_sign('='))?;
    source.tokens.get(equals + 1).and_then(SourceToken::word).and_then(literal)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> RustSource<'_> {
        RustSource::read("a.rs", text).unwrap()
    }

    fn cases_by_test(text: &str) -> Result<Vec<(String, Option<u64>)>, String> {
        let source = read(text);
        let mut helpers = Vec::new();
        for function in &source.functions {
            helpers.extend(helper(&source, function)?);
        }
        let tests = source.functions.iter().filter(|function| function.is_test);
        tests.map(|test| Ok((test.name.to_owned(), cases(&source, test, &helpers)?))).collect()
    }

    fn property(config: &str) -> String {
        format!("proptest! {{ #![proptest_config({config})] #[test] fn a(x in 0..9) {{}} }}")
    }

    #[test]
    fn blocks_have_the_cases_of_their_config_or_256() {
        let both =
            format!("{} proptest! {{ #[test] fn b(x in 0..9) {{}} }}", property("P::with_cases(20_000)"));
        assert_eq!(
            cases_by_test(&both).unwrap(),
            [("a".to_owned(), Some(20_000)), ("b".to_owned(), Some(256))]
        );
        for (config, behind, number) in [
            ("ProptestConfig { cases: 1_500u32, ..ProptestConfig::default() }", "", 1_500),
            ("ProptestConfig { failure_persistence: None, cases: 60, ..d() }", "", 60),
            ("ProptestConfig::with_cases(MANY)", "const MANY: u32 = 77;", 77),
            ("ProptestConfig::default()", "", 256),
            (
                "config()",
                "fn config() -> P { let d = P::default(); P { cases: d.cases.max(300), ..d } }",
                300,
            ),
            ("config()", "fn config() -> P { let d = P::default(); P { cases: d.cases.max(30), ..d } }", 256),
        ] {
            let text = format!("{}{behind}", property(config));
            assert_eq!(cases_by_test(&text).unwrap(), [("a".to_owned(), Some(number))], "{text}");
        }
    }

    /// A form that nobody reads would be a guess, and a guess holds nobody to it.
    #[test]
    fn configs_that_cannot_be_read_are_told() {
        for config in ["ProptestConfig::with_cases(most() / 2)", "elsewhere()", "P { cases, ..p() }"] {
            let said = cases_by_test(&property(config)).unwrap_err();
            assert!(said.starts_with("a.rs:1: "), "{said}");
        }
    }

    #[test]
    fn tests_have_the_cases_of_the_helpers_they_call() {
        let text = "fn hold<S: Of<A, B>>(id: Id<A, B>, cases: u32, len: usize) { TestRunner::new(P { cases, ..p() }); }
            fn reset() { TestRunner::new(P { cases: 500, ..p() }); }
            #[test] fn a() { hold::of(); hold(x(1, 2), 4_000, 60); self.hold(3, 3); for x in y { hold(x, 500, 1) } }
            #[test] fn b() { reset(); }
            #[test] fn c() { TestRunner::default().run(); }
            #[test] fn d() { other(500); }";
        let found = cases_by_test(text).unwrap();
        let numbers: Vec<_> = found.iter().map(|(_, number)| *number).collect();
        assert_eq!(numbers, [Some(4_500), Some(500), Some(256), None]);
    }

    #[test]
    fn rounds_are_the_defaults_of_their_variables() {
        let text = r#"const SEEDS: u64 = 60;
            fn f() { let (a, b) = (number("UNITAPE_KILL_ROUNDS", 200) / part, number("UNITAPE_SEED", 1)); }
            fn g() { env::var("UNITAPE_AGAIN_ROUNDS").map_or(1_000, |n| n.parse().unwrap()); }
            fn h() { number("UNITAPE_SEEDS").unwrap_or(SEEDS); env::var("UNITAPE_TRIES").ok().and_then(f(1)).unwrap_or(7); }
            fn i() { command.env("UNITAPE_KILL_ROUNDS", "5"); [("UNITAPE_ROUNDS", "no"), ("UNITAPE_SEEDS_FROM", 1)]; }"#;
        let found = rounds(&read(text)).unwrap();
        let named: Vec<_> = found.iter().map(|round| (round.variable.as_str(), round.number)).collect();
        assert_eq!(
            named,
            [
                ("UNITAPE_KILL_ROUNDS", 200),
                ("UNITAPE_AGAIN_ROUNDS", 1_000),
                ("UNITAPE_SEEDS", 60),
                ("UNITAPE_TRIES", 7)
            ]
        );
        for unseen in ["var(\"UNITAPE_X_ROUNDS\").unwrap()", "number(\"UNITAPE_X_ROUNDS\", most())"] {
            assert!(rounds(&read(&format!("fn f() {{ {unseen}; }}"))).unwrap_err().starts_with("a.rs:1: "));
        }
    }
}
