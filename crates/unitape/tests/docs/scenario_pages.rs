//! The generated part of each scenario's page is what the program would write now.
//!
//! A page with the defaults of an earlier version misleads whoever explains an alert by it.
#![cfg(unix)]

use crate::common::{finish, root, run, unitape};

#[test]
fn the_pages_of_the_scenarios_are_as_generated() {
    let mut stale = Vec::new();
    let mut pages = 0;
    for definition in run(["watch", "scenarios", "--json"]).code(0).lines() {
        let id = definition["id"].as_str().unwrap();
        let cases =
            [format!("vectors/watch/{id}.jsonl"), format!("crates/watch/src/scenarios/{id}/cases.jsonl")];
        let cases = cases.into_iter().filter(|file| root().join(file).is_file());
        let ran = finish(unitape().args(["watch", "page", id]).args(cases).current_dir(root())).code(0);
        let page = std::fs::read_to_string(root().join(format!("docs/scenarios/{id}.md"))).unwrap();
        let marked = page.split_once("<!-- generated -->\n");
        let marked = marked.and_then(|(_, rest)| rest.split_once("<!-- /generated -->\n"));
        if marked.map(|(generated, _)| generated.as_bytes()) != Some(&ran.stdout) {
            stale.push(id.to_owned());
        }
        pages += 1;
    }
    assert!(pages >= 39, "{pages} scenarios");
    assert!(stale.is_empty(), "the pages of {} are stale: run `cargo xtask pages`", stale.join(", "));
}
