//! `unitape case audit verify`.

use crate::output::{self, CommandFailure, CommandOutcome, grouped, say};
use serde_json::json;
use std::path::Path;
use unitape_case::{CaseStore, audit};

/// Runs the command.
pub fn run(cases: &Path, json: bool) -> output::Result {
    let report = audit::verify(&CaseStore::open(cases)?)?;
    for finding in &report.findings {
        print_finding(finding, json)?;
    }
    let head: String = report.head.iter().map(|byte| format!("{byte:02x}")).collect();
    let wrong = report.findings.len() as u64 + report.left_out;
    if json {
        output::print_json(&json!({ "audit": {
            "actions": report.actions, "alerts": report.alerts, "cases": report.cases, "wrong": wrong, "head": head,
        }}))?;
    } else {
        let (actions, alerts, cases) =
            (grouped(report.actions), grouped(report.alerts), grouped(report.cases));
        let verdict = match wrong {
            0 => "intact".to_owned(),
            wrong => format!("{} problems", grouped(wrong)),
        };
        say!(
            "{verdict}: {actions} actions, {alerts} alerts, {cases} cases; the last action has the hash {head}"
        );
    }
    Ok(if wrong == 0 { CommandOutcome::Clean } else { CommandOutcome::Flawed })
}

fn print_finding(finding: &audit::AuditFinding, json: bool) -> Result<(), CommandFailure> {
    let audit::AuditFinding { table, row, problem, detail } = finding;
    let problem = problem.name();
    if json {
        return output::print_json(
            &json!({ "table": table, "row": row, "problem": problem, "detail": detail }),
        );
    }
    say!("{table} {row}: {problem}: {detail}");
    Ok(())
}
