//! Messages of a packet, in order, to steps.

use super::config::{Key, Kind};
use super::define::definition;
use super::ids::{Id, Ids};
use super::levels;
use super::plan::{Config, Type};
use super::products::{Products, Turn, Waiting, some};
use super::step::{At, Outcome, Refusal, Role, Side, Step, Steps, Tables, Trade};
use super::tags::Tag;
use super::view::{Bad, Batch, Entry, NO_NUMBER, NO_TIME, Told};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Where a packet comes from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Of {
    pub channel: u16,
    pub line: u8,
    pub stream: u32,
    /// The same for all channels of one sender and partition.
    pub origin: u32,
    pub ts_recv: i64,
    pub place: u64,
    /// The sender's clock.
    pub sent: Option<i64>,
    /// It says that numbers begin again.
    pub reset: bool,
}

/// Products, instruments and their books' state.
#[derive(Clone, Debug)]
pub(super) struct Core {
    pub config: Arc<Config>,
    pub tables: Tables,
    pub products: Products,
    pub ids: Ids,
    by_id: FxHashMap<(u16, Id), u32>,
    /// By pair and id: two pairs may use one id for two instruments.
    instruments: FxHashMap<(u16, Id), u32>,
    /// The one that was looked up last.
    latest: ((u16, Id), u32),
    latest_product: ((u16, Id), u32),
    behind: Vec<Waiting>,
}

/// A step's surroundings, but for the tables.
#[derive(Clone, Copy)]
pub(super) struct Around {
    pub of: Of,
    snapshot: bool,
    sequence: Option<u64>,
    ts: i64,
    at: u32,
    length: u32,
}

impl Around {
    /// Those of a packet, and of no message.
    pub fn of_packet(of: Of) -> Self {
        Self { of, snapshot: false, sequence: None, ts: of.sent.unwrap_or(of.ts_recv), at: 0, length: 0 }
    }

    #[inline]
    pub fn at<'t>(&self, tables: &'t Tables, ts: i64) -> At<'t> {
        At {
            tables,
            channel: self.of.channel,
            line: self.of.line,
            snapshot: self.snapshot,
            sequence: self.sequence,
            ts_event: if ts == NO_TIME { self.ts } else { ts },
            ts_recv: self.of.ts_recv,
            place: self.of.place + u64::from(self.at),
            length: self.length,
        }
    }
}

impl Core {
    pub fn new(config: Arc<Config>) -> Self {
        let channels = config.channels.iter().map(|c| super::Channel { name: c.name.clone(), role: c.role });
        Self {
            tables: Tables { channels: channels.collect(), ..Tables::default() },
            products: Products::new(config.recovery, config.window, config.pairs.clone(), config.depth_told),
            ids: Ids::default(),
            by_id: FxHashMap::default(),
            instruments: FxHashMap::default(),
            // Of no pair that there is.
            latest: ((u16::MAX, Id::NONE), 0),
            latest_product: ((0, Id::NONE), 0),
            behind: Vec::new(),
            config,
        }
    }

    /// A step that is of no message.
    pub fn tell(&self, of: Of, length: usize, step: Step<'_>, out: &mut impl Steps) {
        let around = Around { length: length as u32, ..Around::of_packet(of) };
        out.step(&around.at(&self.tables, NO_TIME), step);
    }

    /// All messages of a packet; `payload` is for the quarantine.
    #[inline]
    pub fn batch(&mut self, batch: &Batch, of: Of, payload: &[u8], out: &mut impl Steps) {
        self.products.counters.unknown += batch.unknown;
        for told in &batch.told {
            let ts = match told.time {
                NO_TIME => of.sent.unwrap_or(of.ts_recv),
                time => time,
            };
            let snapshot = told.kind == Some(Kind::Snapshot);
            let around = Around {
                of,
                snapshot,
                sequence: some(if snapshot { told.last } else { told.sequence }),
                ts,
                at: told.at,
                length: told.length,
            };
            let outcome = match self.message(told, batch, around, out) {
                Ok(outcome) => outcome,
                Err(bad) => {
                    self.refuse(told, bad, around, payload, out);
                    // What it would have done to the books is missing.
                    if let (Some(Kind::Depth | Kind::Reset), Some(sequence)) = (told.kind, around.sequence)
                        && let Ok(product) = self.product(told, of.channel, out, &around)
                    {
                        self.gap(product, (sequence, sequence), &around, out);
                    }
                    Outcome::Refused
                }
            };
            out.step(&around.at(&self.tables, NO_TIME), Step::End(outcome));
        }
    }

    #[cold]
    fn refuse(&mut self, told: &Told, bad: Bad, around: Around, payload: &[u8], out: &mut impl Steps) {
        let set = &self.config.sets[usize::from(self.config.channels[usize::from(around.of.channel)].set)];
        let template = &set.templates.list()[told.template as usize].name.local;
        let detail = format!("{:?} of template {template}, message at byte {}", bad.tag, told.at);
        let raw = &payload[told.at as usize..][..told.length as usize];
        let refusal = Refusal { code: bad.code, detail: &detail, raw };
        out.step(&around.at(&self.tables, NO_TIME), Step::Refused(refusal));
    }

    #[inline]
    fn message(
        &mut self,
        told: &Told,
        batch: &Batch,
        around: Around,
        out: &mut impl Steps,
    ) -> Result<Outcome, Bad> {
        let Some(kind) = told.kind.filter(|kind| *kind != Kind::Ignore) else { return Ok(Outcome::Ignored) };
        let product = self.product(told, around.of.channel, out, &around)?;
        match kind {
            Kind::Snapshot => return self.snapshot(product, told, batch, around, out),
            Kind::Beacon => return self.beacon(product, told, &around, out),
            _ => {}
        }
        let channel = &self.config.channels[usize::from(around.of.channel)];
        if let Some(sequence) = around.sequence
            && channel.role == Role::Incremental
        {
            let mut turn = self.products.turn(product, sequence);
            if turn == Turn::Old {
                if !self.moves(product, &around, out) {
                    return Ok(Outcome::Duplicate);
                }
                turn = self.products.turn(product, sequence);
            }
            match turn {
                Turn::Next | Turn::Old => {}
                Turn::Missing(from, to) => self.gap(product, (from, to), &around, out),
                Turn::Begins => self.begins(product, &around, out),
            }
            self.products.comes_from(product, &around.of);
        }
        if let Some(bad) = told.bad {
            return Err(bad);
        }
        let lacks = match kind {
            Kind::ProductState if told.product_state == Id::NONE => Some(Tag::ProductState),
            Kind::InstrumentState if told.instrument_state == Id::NONE => Some(Tag::InstrumentState),
            _ => None,
        };
        if let Some(tag) = lacks {
            return Err(Bad { code: "missing", tag });
        }
        match kind {
            Kind::Depth => self.entries(product, told, batch, &around, out),
            Kind::ProductState => {
                let at = around.sequence.unwrap_or(0);
                self.products.list[product as usize].state = (told.product_state, at);
                self.state(product, None, told.product_state, &around, out);
                Ok(Outcome::Used)
            }
            Kind::InstrumentState => {
                let instrument = self.instrument(told.instrument, product, &around, out)?;
                self.state(product, Some(instrument), told.instrument_state, &around, out);
                Ok(Outcome::Used)
            }
            Kind::MassState => {
                if told.product_state != Id::NONE {
                    self.mass_state(product, told.product_state, &around, out);
                }
                let (from, to) = told.entries;
                for entry in &batch.entries[from as usize..to as usize] {
                    let instrument = self.instrument(entry.instrument, product, &around, out)?;
                    self.state(product, Some(instrument), entry.instrument_state, &around, out);
                }
                Ok(Outcome::Used)
            }
            Kind::Reset => {
                let waits = self.empty(product, &around, out);
                Ok(if waits { Outcome::Waits } else { Outcome::Used })
            }
            Kind::Product => {
                let told = definition(told, batch);
                Ok(self.define_product(product, &told, batch, &around, out))
            }
            Kind::Instrument => {
                let instrument = self.instrument(told.instrument, product, &around, out)?;
                let told = definition(told, batch);
                Ok(self.define_instrument((instrument, product), &told, batch, &around, out))
            }
            Kind::Sequenced | Kind::Ignore | Kind::Snapshot | Kind::Beacon => Ok(Outcome::Ignored),
        }
    }

    /// The entries of an incremental message.
    #[inline]
    fn entries(
        &mut self,
        product: u32,
        told: &Told,
        batch: &Batch,
        around: &Around,
        out: &mut impl Steps,
    ) -> Result<Outcome, Bad> {
        let (from, to) = told.entries;
        let mut waits = false;
        let pair = self.products.list[product as usize].pair;
        for entry in &batch.entries[from as usize..to as usize] {
            let index = match self.latest.0 == (pair, entry.instrument) {
                true => self.latest.1,
                // Only one for an empty book has no instrument: all are.
                false if entry.instrument == Id::NONE => {
                    waits |= self.empty(product, around, out);
                    continue;
                }
                false => self.instrument(entry.instrument, product, around, out)?,
            };
            if entry.sort == Type::Trade {
                let trade = Trade {
                    instrument: index,
                    px: entry.px,
                    qty: entry.qty.unwrap_or_default(),
                    id: some(entry.trade_id),
                    aggressor: side(entry.aggressor),
                };
                out.step(&around.at(&self.tables, entry.time), Step::Trade(trade));
                continue;
            }
            waits |= self.level(index, entry, around, out);
        }
        Ok(if waits { Outcome::Waits } else { Outcome::Used })
    }

    /// An entry of a level, or of an empty book: it is applied, or waits for a snapshot. Gives whether it waits.
    #[inline]
    fn level(&mut self, index: u32, entry: &Entry, around: &Around, out: &mut impl Steps) -> bool {
        let instrument = &mut self.products.instruments[index as usize];
        if instrument.live {
            if around.sequence.is_none_or(|sequence| sequence > instrument.has) {
                let (tables, counters) = (&self.tables, &mut self.products.counters);
                let fits = levels::apply(index, instrument, entry, counters, |step| {
                    out.step(&around.at(tables, entry.time), step);
                });
                if !fits {
                    self.doubt(index, around, out);
                }
            }
            return false;
        }
        let (sequence, product) = (around.sequence.unwrap_or(0), instrument.product);
        let time = if entry.time == NO_TIME { around.ts } else { entry.time };
        if self.products.wait(index, *entry, sequence, time) {
            out.step(&around.at(&self.tables, entry.time), Step::NoRoom { product });
        }
        true
    }

    #[cold]
    #[inline(never)]
    fn snapshot(
        &mut self,
        product: u32,
        told: &Told,
        batch: &Batch,
        around: Around,
        out: &mut impl Steps,
    ) -> Result<Outcome, Bad> {
        if let Some(bad) = told.bad {
            return Err(bad);
        }
        self.products.list[product as usize].snapshots_from(around.of.origin);
        let index = self.instrument(told.instrument, product, &around, out)?;
        // One without a number is from before the first message.
        let last = some(told.last).unwrap_or(0);
        if !self.products.takes(index, last, around.of.ts_recv) {
            self.whole(product, &around, out);
            return Ok(Outcome::Ignored);
        }
        self.snapshot_state(product, told.product_state, last, &around, out);
        let (from, to) = told.entries;
        let entries = &batch.entries[from as usize..to as usize];
        self.take((product, index), last, (entries, told.instrument_state), around, out);
        Ok(Outcome::Used)
    }

    /// The book of an instrument is this one, with all messages up to `last` in it; those behind it have waited.
    pub(super) fn take(
        &mut self,
        (product, index): (u32, u32),
        last: u64,
        (entries, state): (&[Entry], Id),
        mut around: Around,
        out: &mut impl Steps,
    ) {
        around.snapshot = true;
        let mut behind = std::mem::take(&mut self.behind);
        self.products.taken(index, last, &mut behind);
        let (tables, counters) = (&self.tables, &mut self.products.counters);
        let instrument = &mut self.products.instruments[index as usize];
        instrument.levels = [0; 2];
        let mut fits = true;
        out.step(&around.at(tables, NO_TIME), Step::Clear { instrument: index });
        for entry in entries {
            let entry = Entry { action: None, ..*entry };
            if entry.sort != Type::Empty {
                fits &= levels::apply(index, instrument, &entry, counters, |step| {
                    out.step(&around.at(tables, NO_TIME), step);
                });
            }
        }
        for waiting in &behind {
            let around = Around { sequence: Some(waiting.sequence), ..around };
            fits &= levels::apply(index, instrument, &waiting.entry, counters, |step| {
                out.step(&around.at(tables, waiting.time), step);
            });
        }
        self.behind = behind;
        self.state(product, Some(index), state, &around, out);
        match fits {
            true => out.step(&around.at(&self.tables, NO_TIME), Step::Recovered { instrument: index }),
            false => self.doubt(index, &around, out),
        }
        self.whole(product, &around, out);
    }

    #[cold]
    fn beacon(
        &mut self,
        product: u32,
        told: &Told,
        around: &Around,
        out: &mut impl Steps,
    ) -> Result<Outcome, Bad> {
        let lacks = (told.last == NO_NUMBER).then_some(Bad { code: "missing", tag: Tag::Last });
        if let Some(bad) = told.bad.or(lacks) {
            return Err(bad);
        }
        let mut turn = self.products.beacon(product, told.last);
        if turn == Turn::Old {
            if self.moves(product, around, out) {
                turn = self.products.beacon(product, told.last);
            } else if self.products.is_elsewhere(product, around.of.stream) {
                return Ok(Outcome::Used);
            }
        }
        if let Turn::Missing(from, to) = turn {
            self.gap(product, (from, to), around, out);
        }
        self.products.comes_from(product, &around.of);
        Ok(Outcome::Used)
    }

    pub(super) fn whole(&mut self, product: u32, around: &Around, out: &mut impl Steps) {
        if self.products.becomes_whole(product) {
            out.step(&around.at(&self.tables, NO_TIME), Step::Whole { product });
        }
    }

    #[cold]
    #[inline(never)]
    fn gap(&mut self, product: u32, (from, to): (u64, u64), around: &Around, out: &mut impl Steps) {
        let (tables, mended) = (&self.tables, self.products.has_snapshots(product));
        out.step(&around.at(tables, NO_TIME), Step::Missing { product, from, to });
        self.products.gap(product, from, to, |instrument| {
            out.step(&around.at(tables, NO_TIME), Step::Stale { instrument, mended });
        });
    }

    /// A product's first message: its books are empty and whole.
    #[cold]
    fn begins(&mut self, product: u32, around: &Around, out: &mut impl Steps) {
        let of = &self.products.list[product as usize];
        let live = |instrument: &&u32| self.products.instruments[**instrument as usize].live;
        for instrument in of.instruments.iter().filter(live).copied() {
            out.step(&around.at(&self.tables, NO_TIME), Step::Clear { instrument });
            out.step(&around.at(&self.tables, NO_TIME), Step::Recovered { instrument });
        }
        if of.whole {
            out.step(&around.at(&self.tables, NO_TIME), Step::Whole { product });
        }
    }

    /// All books of a product are empty, as by an entry for each. Gives whether some of these wait.
    #[cold]
    fn empty(&mut self, product: u32, around: &Around, out: &mut impl Steps) -> bool {
        let entry = Entry { sort: Type::Empty, ..Entry::nothing(Id::NONE) };
        let mut waits = false;
        for n in 0..self.products.list[product as usize].instruments.len() {
            let index = self.products.list[product as usize].instruments[n];
            waits |= self.level(index, &entry, around, out);
        }
        // Those that are not known yet need a snapshot that has it.
        let need = &mut self.products.list[product as usize].need;
        *need = around.sequence.map_or(*need, |sequence| sequence.max(*need));
        waits
    }

    /// The numbers of a stream begin again.
    #[cold]
    pub fn restart(&mut self, of: Of, out: &mut impl Steps) {
        let around = Around {
            of,
            snapshot: false,
            sequence: None,
            ts: of.sent.unwrap_or(of.ts_recv),
            at: 0,
            length: 0,
        };
        out.step(&around.at(&self.tables, NO_TIME), Step::Restart);
        let channel = &self.config.channels[usize::from(of.channel)];
        let (role, pair) = (channel.role, channel.pair);
        for product in 0..self.products.list.len() as u32 {
            let at = &self.products.list[product as usize];
            let begins = match role {
                Role::Incremental => {
                    at.stream == of.stream || self.products.may_be_of(product, (pair, of.origin))
                }
                // One that is known by snapshots alone is of their numbers.
                Role::Snapshot => at.stream == u32::MAX && at.pair == pair && at.is_from(of.origin),
                Role::Reference => false,
            };
            if begins {
                let (tables, mended) = (&self.tables, self.products.has_snapshots(product));
                self.products.restart(product, of.ts_recv, |instrument| {
                    out.step(&around.at(tables, NO_TIME), Step::Stale { instrument, mended });
                });
            }
        }
        if role == Role::Snapshot {
            self.products.snapshots_restart((pair, of.origin), of.ts_recv);
        }
    }

    /// The product of a message.
    #[inline]
    fn product(
        &mut self,
        told: &Told,
        channel: u16,
        out: &mut impl Steps,
        around: &Around,
    ) -> Result<u32, Bad> {
        let pair = self.config.channels[usize::from(channel)].pair;
        let id = match self.config.key {
            Key::Channel => Id::number(0),
            Key::Product => told.product,
        };
        if self.latest_product.0 == (pair, id) && id != Id::NONE {
            return Ok(self.latest_product.1);
        }
        self.other_product(pair, (id, told), out, around)
    }

    #[cold]
    fn other_product(
        &mut self,
        pair: u16,
        (id, told): (Id, &Told),
        out: &mut impl Steps,
        around: &Around,
    ) -> Result<u32, Bad> {
        if id == Id::NONE {
            // What names an instrument that is known names its product by that.
            let known = self.instruments.get(&(pair, told.instrument));
            let product = known.map(|i| self.products.instruments[*i as usize].product);
            return product.ok_or(Bad { code: "missing", tag: Tag::Product });
        }
        let index = match self.by_id.get(&(pair, id)) {
            Some(index) => *index,
            None => {
                let index = self.products.open(pair).ok_or_else(|| {
                    self.products.counters.refused += 1;
                    Bad { code: "no_room", tag: Tag::Product }
                })?;
                self.by_id.insert((pair, id), index);
                let id = match self.config.key {
                    Key::Product => self.ids.shown(id),
                    Key::Channel => {
                        let of_pair = |c: &&super::plan::Channel| c.pair == pair;
                        self.config.channels.iter().find(of_pair).map_or_else(String::new, |c| c.name.clone())
                    }
                };
                self.tables.products.push(super::Product { id, ..super::Product::default() });
                out.step(&around.at(&self.tables, NO_TIME), Step::Product(index));
                index
            }
        };
        self.latest_product = ((pair, id), index);
        Ok(index)
    }

    /// An instrument, which belongs to this product if it is new.
    fn instrument(
        &mut self,
        id: Id,
        product: u32,
        around: &Around,
        out: &mut impl Steps,
    ) -> Result<u32, Bad> {
        if id == Id::NONE {
            return Err(Bad { code: "missing", tag: Tag::Instrument });
        }
        let pair = self.products.list[product as usize].pair;
        let index = match self.instruments.get(&(pair, id)) {
            Some(index) => *index,
            None => {
                let depth = self.tables.products[product as usize].depth.or(self.config.market_depth);
                let opened = self.products.open_instrument(product, depth.unwrap_or(0));
                let index = opened.ok_or_else(|| {
                    self.products.counters.refused += 1;
                    Bad { code: "no_room", tag: Tag::Instrument }
                })?;
                self.instruments.insert((pair, id), index);
                let id = self.ids.shown(id);
                self.tables.instruments.push(super::Instrument {
                    id,
                    product,
                    ..super::Instrument::default()
                });
                out.step(&around.at(&self.tables, NO_TIME), Step::Instrument(index));
                if self.products.instruments[index as usize].live {
                    out.step(&around.at(&self.tables, NO_TIME), Step::Recovered { instrument: index });
                }
                index
            }
        };
        self.latest = ((pair, id), index);
        Ok(index)
    }
}

fn side(code: u8) -> Option<Side> {
    match code {
        0 => Some(Side::Buy),
        1 => Some(Side::Sell),
        _ => None,
    }
}
