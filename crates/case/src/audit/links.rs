//! A chain that is broken: which rows were changed, removed, inserted or moved.
//!
//! A row whose hash fits its number is where it was written. Of a row whose hash does not, the chain says which number it had: it
//! follows the row whose hash it holds. Where that row is gone, the numbers nearby are tried.

use super::chain::hash_at;
use super::verify::{AuditFinding, AuditProblem, Findings};
use crate::store::StoreHead;
use std::collections::{BTreeMap, HashMap};

/// A row of the chain.
#[derive(Clone, Copy, Debug)]
pub(super) struct ChainRow {
    /// Its number as it is now.
    pub id: i64,
    /// The hash of the row before, as it has it; zero if it is no hash.
    pub prev: [u8; 32],
    /// Its hash, as it has it; zero if it is no hash.
    pub stated_hash: [u8; 32],
    /// The hash of its other fields, as they are now.
    pub content_hash: [u8; 32],
}

impl ChainRow {
    /// Returns whether the row was written with this number.
    pub fn fits_number(&self, number: u64) -> bool {
        hash_at(number, &self.content_hash) == self.stated_hash
    }
}

/// Names what is wrong with a chain.
pub(super) fn explain(rows: &[ChainRow], head: StoreHead, findings: &mut Findings) {
    let numbers = original_numbers(rows);
    let mut claims: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
    for (index, number) in numbers.iter().enumerate() {
        if let Some(number) = number {
            claims.entry(*number).or_default().push(index);
        }
    }
    let mut add = |row: i64, problem, detail: String| {
        findings.add_finding(AuditFinding { table: "action", row, problem, detail });
    };
    let mut genuine: BTreeMap<u64, &ChainRow> = BTreeMap::new();
    for (number, claimants) in &claims {
        let is_followed = |row: &ChainRow| {
            let next_claims = claims.get(&(number + 1)).into_iter().flatten();
            next_claims.into_iter().any(|&next| rows[next].prev == row.stated_hash)
                || (head.actions == *number && head.hash == row.stated_hash)
        };
        let chosen = claimants
            .iter()
            .find(|&&index| is_followed(&rows[index]))
            .or_else(|| claimants.iter().find(|&&index| rows[index].id == *number as i64))
            .or(claimants.first());
        for &index in claimants {
            let row = &rows[index];
            if Some(&index) != chosen || *number > head.actions {
                add(row.id, AuditProblem::Inserted, "no later row and no head knows it".to_owned());
            } else {
                genuine.insert(*number, row);
                if row.id != *number as i64 {
                    add(row.id, AuditProblem::Moved, format!("it was written as row {number}"));
                }
            }
        }
    }
    for (row, _) in rows.iter().zip(&numbers).filter(|(_, number)| number.is_none()) {
        let number = u64::try_from(row.id).unwrap_or(0);
        if (1..=head.actions).contains(&number) && !genuine.contains_key(&number) {
            add(row.id, AuditProblem::Changed, "its fields do not match its hash".to_owned());
        } else {
            add(row.id, AuditProblem::Inserted, "its hash fits no place of the chain".to_owned());
        }
    }
    let is_there =
        |number: &u64| genuine.contains_key(number) || rows.iter().any(|row| row.id == *number as i64);
    // Everything from here on is missing.
    let tail =
        genuine.keys().last().copied().max(rows.iter().map(|row| row.id.max(0) as u64).max()).unwrap_or(0);
    let missing: Vec<u64> =
        (1..=head.actions.min(tail)).filter(|number| !genuine.contains_key(number)).collect();
    for number in missing {
        // A changed row still has its number.
        let is_changed = rows
            .iter()
            .zip(&numbers)
            .any(|(row, original_number)| original_number.is_none() && row.id == number as i64);
        if !is_changed {
            add(number as i64, AuditProblem::Removed, "it is missing".to_owned());
        }
    }
    if tail < head.actions && !is_there(&head.actions) {
        let detail = format!("rows {} to {} are missing: the end was cut", tail + 1, head.actions);
        add(tail as i64 + 1, AuditProblem::Cut, detail);
    }
    for (number, row) in &genuine {
        let previous_action = match number {
            1 => Some([0; 32]),
            number => genuine.get(&(number - 1)).map(|row| row.stated_hash),
        };
        if previous_action.is_some_and(|hash| hash != row.prev) {
            let blamed = if *number == 1 { row.id } else { genuine[&(number - 1)].id };
            let detail = format!("its hash was replaced: row {} holds another one", row.id);
            add(blamed, AuditProblem::Changed, detail);
        }
    }
    if let Some(last_link) = genuine.get(&head.actions).filter(|last| last.stated_hash != head.hash) {
        let detail = "its hash is not that of the recorded end: it or the end was replaced";
        add(last_link.id, AuditProblem::Changed, detail.to_owned());
    }
    if head.actions == 0 && head.hash != [0; 32] {
        add(0, AuditProblem::Changed, "the recorded end of no action has a hash".to_owned());
    }
}

/// Returns the number with which each row was written; none if its fields do not match its hash at any number that was tried.
fn original_numbers(rows: &[ChainRow]) -> Vec<Option<u64>> {
    let own_number = |row: &ChainRow| u64::try_from(row.id).ok().filter(|number| row.fits_number(*number));
    let mut numbers: Vec<Option<u64>> = rows.iter().map(own_number).collect();
    let mut followers: HashMap<[u8; 32], Vec<usize>> = HashMap::new();
    for (index, row) in rows.iter().enumerate().filter(|(index, _)| numbers[*index].is_none()) {
        followers.entry(row.prev).or_default().push(index);
    }
    let mut anchors: Vec<([u8; 32], u64)> = vec![([0; 32], 0)];
    anchors.extend(rows.iter().zip(&numbers).filter_map(|(row, number)| Some((row.stated_hash, (*number)?))));
    follow_chain(rows, &followers, anchors, &mut numbers);
    for index in 0..rows.len() {
        if numbers[index].is_some() {
            continue;
        }
        let id = u64::try_from(rows[index].id).unwrap_or(0);
        let nearby = (1..=NEARBY).flat_map(|distance| [id.checked_sub(distance), id.checked_add(distance)]);
        if let Some(number) = nearby.flatten().find(|number| rows[index].fits_number(*number)) {
            numbers[index] = Some(number);
            follow_chain(rows, &followers, vec![(rows[index].stated_hash, number)], &mut numbers);
        }
    }
    numbers
}

/// Finds the rows that follow known ones in the chain.
fn follow_chain(
    rows: &[ChainRow],
    followers: &HashMap<[u8; 32], Vec<usize>>,
    mut known: Vec<([u8; 32], u64)>,
    numbers: &mut [Option<u64>],
) {
    while let Some((hash, number)) = known.pop() {
        for &index in followers.get(&hash).into_iter().flatten() {
            if numbers[index].is_none() && rows[index].fits_number(number + 1) {
                numbers[index] = Some(number + 1);
                known.push((rows[index].stated_hash, number + 1));
            }
        }
    }
}

/// How far from its number the number of a moved row is looked for if the row before it is gone.
const NEARBY: u64 = 64;
