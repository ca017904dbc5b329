//! Where and when the planted scenes go: laid out before the flow starts, acted out while it runs.
//!
//! Scenes of one owner in one instrument keep more than a window apart, and the cast does nothing else, so two scenes
//! cannot meet and a scene is exactly what it is labelled.

use crate::error::Error;
use crate::oracle::{Arm, Params};
use crate::rng::Rng;
use crate::truth::Miss;
use crate::world::{CAST, VENUES, World};
use unitape_model::Side;

/// A scene before it is acted out.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plan {
    pub arm: Arm,
    pub miss: Option<Miss>,
    /// Owners of the first and second leg, by their place in the cast.
    pub owners: [usize; 2],
    pub instrument: usize,
    pub venues: [usize; 2],
    pub sides: [Side; 2],
    /// When the first exec is due, and how long after it the second.
    pub at_ns: u64,
    pub gap_ns: u64,
    pub qty: i64,
    /// For each leg: whether the owner rests and is hit, rather than hits.
    pub passive: [bool; 2],
}

/// A leg that is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Cue {
    pub at_ns: u64,
    pub scene: usize,
    pub leg: usize,
}

/// A scene is prepared this long before its exec is due, so that the exec can be on time to the nanosecond.
pub(crate) const PREPARE_NS: u64 = 2_000_000;
/// No scene is placed this close to the start: the books open first.
const LEAD_NS: u64 = 5_000_000_000;
/// Nor this close to the end, which must hold its second leg.
const TAIL_NS: u64 = 75_000_000_000;
/// Length of the shortest flow.
pub(crate) const LEAST_SPAN_NS: u64 = LEAD_NS + TAIL_NS + 40_000_000_000;

/// All scenes in order of time, and the cues for their legs.
pub(crate) fn lay_out(
    washes: usize,
    near_misses: usize,
    start_ns: u64,
    span_ns: u64,
    world: &World,
    rng: &mut Rng,
) -> Result<(Vec<Plan>, Vec<Cue>), Error> {
    const MISSES: [Miss; 5] = [Miss::Window, Miss::Price, Miss::Quantity, Miss::Side, Miss::Owner];
    let scenes = washes + near_misses;
    let room = span_ns - LEAD_NS - TAIL_NS;
    let mut kinds: Vec<(Arm, Option<Miss>)> = Vec::with_capacity(scenes);
    kinds.extend((0..washes).map(|n| (if n % 2 == 0 { Arm::SelfMatch } else { Arm::RoundTrip }, None)));
    kinds.extend((0..near_misses).map(|n| (Arm::RoundTrip, Some(MISSES[n % MISSES.len()]))));
    rng.shuffle(&mut kinds);
    let mut times: Vec<u64> = (0..scenes).map(|_| start_ns + LEAD_NS + rng.below(room)).collect();
    times.sort_unstable();

    let window = Params::default().window_ns;
    let mut busy_until = vec![[0u64; CAST]; world.instruments.len()];
    let mut plans = Vec::with_capacity(scenes);
    for (n, ((arm, miss), at_ns)) in kinds.into_iter().zip(times).enumerate() {
        let side = rng.pick(&[Side::Buy, Side::Sell]);
        let venue = rng.below(VENUES.len() as u64) as usize;
        let other_venue = rng.below(VENUES.len() as u64) as usize;
        let gap_ns = match miss {
            Some(Miss::Window) => window + if rng.one_in(2) { 0 } else { rng.below(5_000_000_000) },
            _ => 500_000_000 + rng.below(window - 1_500_000_000),
        };
        let free_at = at_ns + gap_ns + window + 1_000_000_000;
        let needed = if miss == Some(Miss::Owner) { 2 } else { 1 };
        let (instrument, owners) = take_free(&mut busy_until, needed, at_ns, free_at, rng)
            .ok_or(Error::TooManyScenes { scene: n, scenes })?;
        plans.push(Plan {
            arm,
            miss,
            owners,
            instrument,
            venues: [venue, other_venue],
            sides: [side, if miss == Some(Miss::Side) { side } else { side.opposite() }],
            at_ns,
            gap_ns,
            qty: rng.between(4, 40) * 50,
            passive: [rng.one_in(3), rng.one_in(3)],
        });
    }
    let mut cues: Vec<Cue> = Vec::with_capacity(scenes * 2);
    for (scene, plan) in plans.iter().enumerate() {
        cues.push(Cue { at_ns: plan.at_ns, scene, leg: 0 });
        if plan.arm == Arm::RoundTrip {
            cues.push(Cue { at_ns: plan.at_ns + plan.gap_ns, scene, leg: 1 });
        }
    }
    cues.sort_unstable();
    Ok((plans, cues))
}

/// Price in ticks and quantity of the second leg, given those of the first: as far off as the plan allows, or just
/// beyond.
pub(crate) fn second_terms(plan: &Plan, px: i64, qty: i64, rng: &mut Rng) -> (i64, i64) {
    let params = Params::default();
    // In whole ticks |Δpx| · 10⁴ ≤ tol · px has the largest solution tol · px / 10⁴, rounded down; the tick cancels.
    let px_most = (params.px_tol_bps * i128::from(px) / 10_000) as i64;
    let qty_most = (params.qty_tol_pct * i128::from(qty) / 100) as i64;
    let sign = if rng.one_in(2) { 1 } else { -1 };
    match plan.miss {
        Some(Miss::Price) => (px + sign * (px_most + 1), qty),
        Some(Miss::Quantity) => (px, qty + sign * (qty_most + 1)),
        Some(_) => (px, qty),
        None => (px + rng.between(-px_most, px_most), qty + rng.between(-qty_most, qty_most)),
    }
}

/// Takes the first instrument, from a random one on, in which as many owners as are needed (one or two) are at rest at
/// `at_ns`, and those owners; one owner is given twice.
fn take_free(
    busy_until: &mut [[u64; CAST]],
    needed: usize,
    at_ns: u64,
    free_at: u64,
    rng: &mut Rng,
) -> Option<(usize, [usize; 2])> {
    let instruments = busy_until.len();
    let (first_instrument, first_owner) =
        (rng.below(instruments as u64) as usize, rng.below(CAST as u64) as usize);
    (0..instruments).map(|n| (first_instrument + n) % instruments).find_map(|instrument| {
        let busy = &mut busy_until[instrument];
        let owners = (0..CAST).map(|n| (first_owner + n) % CAST);
        let free: Vec<usize> = owners.filter(|&owner| busy[owner] <= at_ns).take(needed).collect();
        (free.len() == needed).then(|| {
            free.iter().for_each(|&owner| busy[owner] = free_at);
            (instrument, [free[0], free[needed - 1]])
        })
    })
}
