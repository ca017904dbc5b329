use super::manifest::CheckEntry;
use super::*;

fn scan_of(numbers: &[(CheckKind, &str, u64)]) -> SourceScan {
    let numbers = numbers.iter().map(|&(kind, name, number)| (CheckName::new(kind, name), number));
    SourceScan { numbers: numbers.collect() }
}

fn messages(manifest: &str, scan: &SourceScan, deep: &[DeepNumber]) -> Vec<String> {
    let manifest = CheckManifest::read(manifest).unwrap();
    compare(&manifest, scan, deep).into_iter().map(|problem| problem.message).collect()
}

/// The manifest and the scan of this very tree.
fn real() -> (CheckManifest, SourceScan) {
    (read(&root()).unwrap(), scan::scan(&root()).unwrap())
}

/// The checks that the comparison misses, by the lines that it complains of.
fn missed(manifest: &CheckManifest, scan: &SourceScan, deep: &[DeepNumber]) -> Vec<CheckName> {
    let place = |line: usize| format!("{MANIFEST}:{line}");
    let problems = compare(manifest, scan, deep);
    let entry = |problem: &TidyProblem| {
        let entry = manifest.entries.iter().find(|entry| place(entry.line) == problem.place);
        entry.unwrap_or_else(|| panic!("{problem:?} is about no entry")).check.clone()
    };
    problems.iter().map(entry).collect()
}

/// Whether a name replaces others, or others replace it: then more than one line names it.
fn is_replaced(manifest: &CheckManifest, name: &str) -> bool {
    manifest.renamed.iter().any(|renamed| renamed.old == name || renamed.new == name)
        || manifest.gone.iter().any(|gone| gone.name == name)
}

#[test]
fn a_tree_that_has_all_and_more_is_without_problems() {
    let scan = scan_of(&[(CheckKind::Test, "a", 2), (CheckKind::Test, "b", 1), (CheckKind::Cases, "a", 300)]);
    assert!(messages("cases\ta\t256\ntest\ta\t1\n", &scan, &[]).is_empty());
}

/// A message says what is lost and what to do about it.
#[test]
fn a_check_that_is_lost_is_told_in_words() {
    let scan = scan_of(&[(CheckKind::Test, "b", 1), (CheckKind::Test, "c", 1), (CheckKind::Ignored, "d", 1)]);
    let [a, b, d] = &messages("test\ta\t1\ntest\tb\t2\ntest\tc\t1\ntest\td\t1\n", &scan, &[])[..] else {
        panic!("three problems")
    };
    assert_eq!(
        a,
        "the test `a` is in no tier: the manifest names it, the tree runs it 0 times instead of 1; put it back, or \
         name what replaced it with a line `renamed`"
    );
    assert!(b.starts_with(
        "the test `b` is lost in part: the manifest names it, the tree runs it 1 time instead of 2;"
    ));
    assert!(d.contains("runs it 0 times instead of 1 and ignores it 1 time;"), "{d}");
}

/// A test that is missing is one loss, not one for each of its numbers.
#[test]
fn each_kind_of_loss_is_told_once() {
    let manifest = "cases\ta\t256\ncases\tb\t500\nfuzz\tx\t1\nfuzz-inputs\teach\t20000\nloom\tpreemptions\t3\n\
                    rounds\tUNITAPE_X_ROUNDS/kill\t200\ntest\ta\t1\ntest\tb\t1\n";
    let scan = scan_of(&[
        (CheckKind::Test, "b", 1),
        (CheckKind::Cases, "b", 499),
        (CheckKind::FuzzInputs, "each", 19_999),
        (CheckKind::Loom, "preemptions", 2),
        (CheckKind::Rounds, "UNITAPE_X_ROUNDS/kill", 199),
    ]);
    let said = messages(manifest, &scan, &[]);
    let begins = [
        "the test `b` has too few cases: the manifest names 500, no tier runs more than 499;",
        "the fuzz target `x` is in no tier:",
        "the fuzz targets have too few inputs:",
        "loom explores too few preemptions:",
        "the rounds `UNITAPE_X_ROUNDS/kill` are too few:",
        "the test `a` is in no tier:",
    ];
    assert_eq!(said.len(), begins.len(), "{said:?}");
    assert!(said.iter().zip(begins).all(|(said, begin)| said.starts_with(begin)), "{said:?}");
}

/// A number that the deep run raises may be smaller in the ordinary run, but the deep run does nothing without a test
/// in the tree.
#[test]
fn the_deep_run_meets_what_the_tree_holds() {
    let manifest =
        "cases\tb\t500\nrounds\tUNITAPE_X_ROUNDS/kill\t200\nrounds\tUNITAPE_Y_ROUNDS/kill\t9\ntest\tb\t1\n";
    let held = scan_of(&[
        (CheckKind::Ignored, "b", 1),
        (CheckKind::Cases, "b", 10),
        (CheckKind::Rounds, "UNITAPE_X_ROUNDS/kill", 4),
        (CheckKind::Rounds, "UNITAPE_Y_ROUNDS/kill", 4),
    ]);
    let number = |kind, name, number| DeepNumber { kind, name, number };
    let deep = [
        number(CheckKind::Test, "b", 5),
        number(CheckKind::Cases, "b", 500),
        number(CheckKind::Rounds, "UNITAPE_X_ROUNDS", 200),
        number(CheckKind::Rounds, "UNITAPE_Y_ROUNDS/kill", 9),
    ];
    assert!(messages(manifest, &held, &deep).is_empty());
    assert_eq!(messages(manifest, &held, &deep[1..]).len(), 1, "no cases without a test that runs them");
    assert_eq!(messages(manifest, &SourceScan::default(), &deep).len(), 3, "nothing is there to run");
}

#[test]
fn what_replaced_a_check_stands_for_it() {
    let manifest = "cases\told\t300\nrenamed\tnew\tnewer\nrenamed\told\tnew\ntest\tnew\t1\ntest\told\t1\n";
    let scan = scan_of(&[(CheckKind::Test, "newer", 1), (CheckKind::Cases, "newer", 300)]);
    assert!(messages(manifest, &scan, &[]).is_empty());
    let fewer = scan_of(&[(CheckKind::Test, "newer", 1), (CheckKind::Cases, "newer", 299)]);
    assert_eq!(messages(manifest, &fewer, &[]).len(), 1);
    assert_eq!(messages(manifest, &SourceScan::default(), &[]).len(), 2);
}

/// A line that is no longer true would excuse the next loss.
#[test]
fn lines_about_checks_that_are_there_or_were_never_named_are_told() {
    let scan = scan_of(&[(CheckKind::Test, "a", 1)]);
    assert!(messages("gone\tb\tits command was removed\ntest\tb\t1\n", &scan, &[]).is_empty());
    let said = messages("gone\ta\tno more\ngone\tc\tno more\nrenamed\td\ta\ntest\ta\t1\n", &scan, &[]);
    assert_eq!(said.len(), 3, "{said:?}");
    assert!(said[0].contains("but the tree has it"), "{said:?}");
}

/// The check finds any one test that is lost among all, and that test alone.
#[test]
fn each_test_of_this_tree_that_is_taken_away_is_missed() {
    let (manifest, scan) = real();
    assert_eq!(missed(&manifest, &scan, &deep::numbers()), []);
    let checks = manifest.entries.iter().map(|entry| &entry.check);
    let tests = checks.filter(|check| check.kind == CheckKind::Test && !is_replaced(&manifest, &check.name));
    // Every one would take time with the square of their number.
    let some: Vec<_> = tests.step_by(10).collect();
    assert!(some.len() > 100);
    for check in some {
        let mut less = scan.clone();
        less.numbers.remove(check).unwrap();
        less.numbers.remove(&CheckName::new(CheckKind::Cases, &check.name));
        assert_eq!(missed(&manifest, &less, &deep::numbers()), std::slice::from_ref(check));
    }
}

/// A test that stays but does half of what it did is a loss that no count of tests shows.
#[test]
fn halved_cases_and_rounds_of_this_tree_are_missed() {
    let (manifest, scan) = real();
    let mut kinds = Vec::new();
    for CheckEntry { check, number, .. } in &manifest.entries {
        let is_amount = !matches!(check.kind, CheckKind::Test | CheckKind::Ignored | CheckKind::Fuzz);
        if !is_amount || is_replaced(&manifest, &check.name) || !scan.numbers.contains_key(check) {
            continue;
        }
        kinds.push(check.kind);
        let mut less = scan.clone();
        less.numbers.insert(check.clone(), number / 2);
        // No run does more than half of it, the deep one neither.
        let covers = |deep: &DeepNumber, check: &CheckName| deep.covers(check.kind, &check.name);
        let halved = |deep: &DeepNumber| {
            let least = if covers(deep, check) { number / 2 } else { u64::MAX };
            DeepNumber { number: deep.number.min(least), ..*deep }
        };
        let deep: Vec<_> = deep::numbers().iter().map(halved).collect();
        let mut found = missed(&manifest, &less, &deep);
        // One number of the deep run may be for several files.
        found.retain(|other| {
            other == check || !deep::numbers().iter().any(|deep| covers(deep, check) && covers(deep, other))
        });
        assert_eq!(found, std::slice::from_ref(check));
    }
    for kind in [CheckKind::Cases, CheckKind::Rounds, CheckKind::Loom] {
        assert!(kinds.contains(&kind), "{kind:?}");
    }
}
