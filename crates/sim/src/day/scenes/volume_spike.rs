//! Volume spike: within a minute far more is traded than in the minutes before.
//!
//! The scenario judges a book by its prints of half an hour, of which most are of the background. So this scene is no
//! script: it measures the volume first. A small print just after the open makes sure that the book has ten minutes to
//! compare with. Much later the scene waits a whole minute, so that all earlier prints are known, and trades in the next.

use unitape_model::Side;

use super::super::exchange::OrderRef;
use super::super::minute_volumes::MINUTE_NS;
use super::super::truth::{AlertLabel, AlertLabelKey};
use super::super::world::SimulatedMarket;
use super::stage::{SceneContext, SceneParticipants};
use super::{S, Scenario, Scene, ScenePlacement};
use crate::rng::Rng;

const SIZE: &str = "one share less than mult times the mean, or than min_qty";
const EARLY: &str = "one share is printed a nanosecond before the bucket begins";
const LATE: &str = "one share is printed as the bucket ends";
const MISSES: [&str; 3] = [SIZE, EARLY, LATE];

#[derive(Debug)]
pub(crate) struct VolumeSpikeScene {
    miss: Option<&'static str>,
    edge: bool,
    cast: SceneParticipants,
    book: u32,
    start_ts: u64,
    px: i64,
    /// The last offer, if part of it rests.
    offer: Option<OrderRef>,
    /// The minute of the spike.
    minute: u64,
    first_seq: u64,
    stage: SpikeStage,
}

#[derive(Debug, Clone, Copy)]
enum SpikeStage {
    FirstPrint,
    /// Counts the tries to clear the book around the price.
    Clears(u8),
    EarlyPrint,
    Spike,
    /// The rest of the volume.
    LastPrint(i64),
    LatePrint,
    Ends,
}

impl VolumeSpikeScene {
    pub fn new(
        miss: bool,
        n: usize,
        placement: &ScenePlacement,
        world: &mut SimulatedMarket,
        rng: &mut Rng,
    ) -> VolumeSpikeScene {
        let cast = SceneParticipants::new(world, false);
        VolumeSpikeScene {
            miss: miss.then(|| MISSES[n % MISSES.len()]),
            edge: rng.one_in(3) && !miss,
            cast,
            book: placement.book,
            start_ts: placement.start_ts,
            px: 0,
            offer: None,
            minute: 0,
            first_seq: 0,
            stage: SpikeStage::FirstPrint,
        }
    }

    /// Prints a quantity at the scene's price. The offer is larger, or the two orders would seem prearranged.
    fn print(&mut self, stage: &mut SceneContext<'_>, qty: i64) {
        self.withdraw(stage);
        self.offer = Some(stage.rest(self.cast.seller, self.book, Side::Sell, self.px, qty + 100));
        stage.take_liquidity(self.cast.lead, self.book, Side::Buy, self.px, qty);
    }

    /// Cancels the rest of the last offer.
    fn withdraw(&mut self, stage: &mut SceneContext<'_>) {
        self.offer.take().into_iter().for_each(|offer| stage.x.cancel(offer));
    }

    /// Returns the least volume of the minute that fires.
    fn least_volume(&self, stage: &SceneContext<'_>) -> Option<i64> {
        let volumes = stage.x.desk(self.book).volumes.as_deref().expect("the book of the scene is measured");
        let (minutes, total) = volumes.baseline(self.minute);
        (minutes >= 10).then(|| ((8 * total + minutes - 1) / minutes).max(1_000))
    }

    fn key(&self, stage: &SceneContext<'_>) -> AlertLabelKey {
        let world = &stage.x.world;
        let (venue, instr) = (world.venue_name(self.book), world.isin(self.book));
        AlertLabelKey(vec![("venue", venue.to_owned()), ("instr", instr.to_owned())])
    }

    /// Leaves the label to the market: the first event after the minute completes it.
    fn label(&self, stage: &mut SceneContext<'_>) {
        let label = AlertLabel {
            scene: stage.scene,
            scenario: Scenario::VolumeSpike.id(),
            key: self.key(stage),
            reason: None,
            ts: (self.minute + 1) * MINUTE_NS,
            first_seq: self.first_seq,
            trigger_seq: 0,
        };
        stage.labels.timed.push(label);
    }
}

impl Scene for VolumeSpikeScene {
    fn play(&mut self, stage: &mut SceneContext<'_>) -> Option<u64> {
        let end_ts = (self.minute + 1) * MINUTE_NS;
        let (next_stage, next_ts) = match self.stage {
            SpikeStage::FirstPrint => {
                self.px = stage.middle(self.book, &self.cast);
                self.print(stage, 100);
                self.withdraw(stage);
                (SpikeStage::Clears(0), self.start_ts)
            }
            SpikeStage::Clears(tries) => {
                stage.quiet(self.book, true);
                self.px = stage.fair_of(self.book);
                let sides = [Side::Buy, Side::Sell];
                let is_clear = sides.map(|side| stage.pull(self.book, side, self.px)) == [true; 2];
                if !is_clear && tries < 5 {
                    (SpikeStage::Clears(tries + 1), stage.now() + S)
                } else {
                    self.minute = stage.now() / MINUTE_NS + 2;
                    let spike_ts = self.minute * MINUTE_NS + stage.rng.between(1, 50) as u64 * S;
                    match self.miss {
                        Some(EARLY) => (SpikeStage::EarlyPrint, self.minute * MINUTE_NS - 1),
                        _ => (SpikeStage::Spike, spike_ts),
                    }
                }
            }
            SpikeStage::EarlyPrint => {
                self.first_seq = stage.next_seq();
                self.print(stage, 1);
                (SpikeStage::Spike, stage.now() + stage.rng.between(1, 50) as u64 * S)
            }
            SpikeStage::Spike => {
                let Some(least) = self.least_volume(stage) else {
                    self.withdraw(stage);
                    stage.quiet(self.book, false);
                    return None;
                };
                if self.miss != Some(EARLY) {
                    self.first_seq = stage.next_seq();
                }
                let volume = match self.miss {
                    Some(_) => least - 1,
                    None if self.edge => least,
                    None => least + stage.rng.between(1, least),
                };
                self.print(stage, volume / 2);
                (SpikeStage::LastPrint(volume - volume / 2), stage.now() + stage.rng.between(1, 5) as u64 * S)
            }
            SpikeStage::LastPrint(qty) => {
                self.print(stage, qty);
                match self.miss {
                    None => self.label(stage),
                    Some(LATE) => {
                        self.stage = SpikeStage::LatePrint;
                        return Some(end_ts);
                    }
                    Some(_) => {}
                }
                (SpikeStage::Ends, end_ts + S)
            }
            SpikeStage::LatePrint => {
                self.print(stage, 1);
                (SpikeStage::Ends, end_ts + S)
            }
            SpikeStage::Ends => {
                // An event at the latest now, so that the minute is judged within the scene.
                self.withdraw(stage);
                if let Some(reason) = self.miss {
                    stage.near_miss(Scenario::VolumeSpike, self.key(stage), reason, self.first_seq);
                }
                stage.quiet(self.book, false);
                return None;
            }
        };
        self.stage = next_stage;
        Some(next_ts)
    }

    fn measured_book(&self) -> Option<u32> {
        Some(self.book)
    }
}
