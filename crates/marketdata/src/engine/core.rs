//! Messages of a packet, in order, to steps.

use super::around::{Around, Of};
use super::codes::Type;
use super::config::{Key, Kind};
use super::ids::{Id, Ids};
use super::known::Known;
use super::levels;
use super::plan::{self, Config};
use super::products::{Products, Turn, Waiting};
use super::step::{self, Action, At, Outcome, Refusal, Role, Step, Steps, Tables, Trade};
use super::tags::Tag;
use super::view::{Bad, Batch, Entry, NO_NUMBER, NO_TIME, Told, definition, some};
use std::sync::Arc;
use unitape_model::{InstrumentId, ProductId, Side};

mod define;
mod doubt;
mod states;

/// Products, instruments and their books' state.
#[derive(Clone, Debug)]
pub(super) struct Core {
    pub config: Arc<Config>,
    pub tables: Tables,
    pub products: Products,
    pub ids: Ids,
    by_id: Known,
    instruments: Known,
    behind: Vec<Waiting>,
}

impl Core {
    pub fn new(config: Arc<Config>) -> Self {
        let channels = config.channels.iter().map(|c| step::Channel { name: c.name.clone(), role: c.role });
        Self {
            tables: Tables { channels: channels.collect(), ..Tables::default() },
            products: Products::new(config.recovery, config.window, config.pairs.clone(), config.depth_told),
            ids: Ids::default(),
            by_id: Known::default(),
            instruments: Known::default(),
            behind: Vec::new(),
            config,
        }
    }

    /// A step that is of no message.
    pub fn tell(&self, of: &Of, length: usize, step: Step<'_>, out: &mut impl Steps) {
        let around = Around { length: length as u32, ..Around::of_packet(of) };
        out.step(&around.at(&self.tables, NO_TIME), step);
    }

    /// All messages of a packet; `payload` is for the quarantine.
    #[inline]
    pub fn batch(&mut self, batch: &Batch, of: &Of, payload: &[u8], out: &mut impl Steps) {
        self.products.counters.unknown += batch.unknown;
        let channel = &self.config.channels[of.channel.index()];
        let (pair, incremental) = (channel.pair, channel.role == Role::Incremental);
        let sent = of.sent.unwrap_or(of.ts_recv);
        for told in &batch.told {
            let ts = if told.time == NO_TIME { sent } else { told.time };
            let snapshot = told.kind == Some(Kind::Snapshot);
            let around = Around {
                of,
                pair,
                incremental,
                snapshot,
                sequence: some(if snapshot { told.last } else { told.sequence }),
                ts,
                at: told.at,
                length: told.length,
            };
            let outcome = match self.message(told, batch, &around, out) {
                Ok(outcome) => outcome,
                Err(bad) => {
                    self.refuse(told, bad, &around, payload, out);
                    // What it would have done to the books is missing.
                    if let Some(Kind::Depth | Kind::Reset) = told.kind
                        && let Ok(product) = self.product(told, out, &around)
                    {
                        match around.sequence {
                            Some(sequence) => {
                                self.products.list[product.index()].explained = Some(sequence);
                                self.gap(product, (sequence, sequence), &around, out);
                            }
                            None => self.unnumbered_lost(product, &around, out),
                        }
                    }
                    Outcome::Refused
                }
            };
            out.step(&around.at(&self.tables, NO_TIME), Step::End(outcome));
        }
    }

    #[cold]
    fn refuse(&mut self, told: &Told, bad: Bad, around: &Around<'_>, payload: &[u8], out: &mut impl Steps) {
        let set = &self.config.sets[usize::from(self.config.channels[around.of.channel.index()].set)];
        let template = &set.templates.list()[told.template as usize].name.local;
        let detail = format!("{} of template {template}, message at byte {}", bad.tag, told.at);
        let raw = &payload[told.at as usize..][..told.length as usize];
        let refusal = Refusal { code: bad.code, detail: &detail, raw };
        out.step(&around.at(&self.tables, NO_TIME), Step::Refused(refusal));
    }

    #[inline(always)]
    fn message(
        &mut self,
        told: &Told,
        batch: &Batch,
        around: &Around<'_>,
        out: &mut impl Steps,
    ) -> Result<Outcome, Bad> {
        let Some(kind) = told.kind.filter(|kind| *kind != Kind::Ignore) else { return Ok(Outcome::Ignored) };
        let product = self.product(told, out, around)?;
        match kind {
            Kind::Snapshot => return self.snapshot(product, told, batch, around, out),
            Kind::Beacon => return self.beacon(product, told, around, out),
            _ => {}
        }
        if let Some(sequence) = around.sequence
            && around.incremental
        {
            let turn = self.products.turn(product, sequence, around.of);
            if turn != Turn::Next && !self.other_turn(product, (sequence, turn), around, out) {
                return Ok(Outcome::Duplicate);
            }
            self.products.comes_from(product, around.of);
        } else if around.incremental && self.products.list[product.index()].next.is_none() {
            self.products.comes_from(product, around.of);
        }
        match (told.bad, kind) {
            (Some(bad), _) => Err(bad),
            (None, Kind::Depth) => {
                let (from, to) = told.entries;
                self.entries(product, &batch.entries[from as usize..to as usize], around, out)
            }
            (None, _) => self.no_depth((kind, product), told, batch, around, out),
        }
    }

    /// A message that is not the next one. Gives whether it is used.
    #[cold]
    #[inline(never)]
    fn other_turn(
        &mut self,
        product: ProductId,
        (sequence, mut turn): (u64, Turn),
        around: &Around<'_>,
        out: &mut impl Steps,
    ) -> bool {
        if let Turn::Old | Turn::InSnapshot = turn {
            if !self.moves((product, sequence), around, out) {
                return false;
            }
            turn = self.products.turn(product, sequence, around.of);
        }
        match turn {
            Turn::Next | Turn::Old | Turn::InSnapshot => {}
            Turn::Missing(from, to) => self.gap(product, (from, to), around, out),
            Turn::Begins => self.begins(product, around, out),
        }
        true
    }

    /// A message of states or of reference data, or by which books are empty.
    #[inline(never)]
    fn no_depth(
        &mut self,
        (kind, product): (Kind, ProductId),
        told: &Told,
        batch: &Batch,
        around: &Around<'_>,
        out: &mut impl Steps,
    ) -> Result<Outcome, Bad> {
        let no_state = match kind {
            Kind::ProductState => told.product_state == Id::NONE,
            Kind::InstrumentState => told.instrument_state == Id::NONE,
            _ => false,
        };
        if no_state {
            // Venues send them for other words than the state, which nobody asked for.
            self.products.counters.unknown += 1;
            return Ok(Outcome::Ignored);
        }
        match kind {
            Kind::ProductState => {
                let at = around.sequence.unwrap_or(0);
                self.products.list[product.index()].state = (told.product_state, at);
                self.state(product, None, told.product_state, around, out);
                Ok(Outcome::Used)
            }
            Kind::InstrumentState => {
                let instrument = self.instrument(told.instrument, product, around, out)?;
                self.state(product, Some(instrument), told.instrument_state, around, out);
                Ok(Outcome::Used)
            }
            Kind::MassState => {
                if told.product_state != Id::NONE {
                    self.mass_state(product, told.product_state, around, out);
                }
                let (from, to) = told.entries;
                for entry in &batch.entries[from as usize..to as usize] {
                    let instrument = self.instrument(entry.instrument, product, around, out)?;
                    self.state(product, Some(instrument), entry.instrument_state, around, out);
                }
                Ok(Outcome::Used)
            }
            Kind::Reset => {
                let waits = self.empty(product, around, out);
                Ok(if waits { Outcome::Waits } else { Outcome::Used })
            }
            Kind::Product => {
                let told = definition(told, batch);
                Ok(self.define_product(product, &told, batch, around, out))
            }
            Kind::Instrument => {
                let instrument = self.instrument(told.instrument, product, around, out)?;
                let told = definition(told, batch);
                Ok(self.define_instrument((instrument, product), &told, batch, around, out))
            }
            Kind::Depth | Kind::Sequenced | Kind::Ignore | Kind::Snapshot | Kind::Beacon => {
                Ok(Outcome::Ignored)
            }
        }
    }

    /// The entries of an incremental message. Those of one instrument are beside each other mostly: it is looked up once for
    /// all of these.
    #[inline(never)]
    fn entries(
        &mut self,
        product: ProductId,
        mut left: &[Entry],
        around: &Around<'_>,
        out: &mut impl Steps,
    ) -> Result<Outcome, Bad> {
        let mut waits = false;
        while let [first, behind @ ..] = left {
            // Only one for an empty book has no instrument: all are.
            if first.instrument == Id::NONE {
                waits |= self.empty(product, around, out);
                left = behind;
                continue;
            }
            let id = self.instrument(first.instrument, product, around, out)?;
            let (tables, counters) = (&self.tables, &mut self.products.counters);
            let instrument = &mut self.products.instruments[id.index()];
            if !instrument.live || around.sequence.is_some_and(|sequence| sequence <= instrument.has) {
                match first.sort {
                    Type::Trade => trade(id, first, &around.at(tables, first.time), out),
                    _ => waits |= self.level(id, first, around, out),
                }
                left = behind;
                continue;
            }
            let fits = loop {
                let [entry, behind @ ..] = left else { break true };
                if entry.instrument != first.instrument {
                    break true;
                }
                left = behind;
                let at = around.at(tables, entry.time);
                let told = |side, action| levels::told(id, (side, action), entry);
                if let Some((side, action)) = levels::plain(instrument, entry) {
                    // Each by itself, so that who takes it need not ask which it is.
                    match action {
                        Action::Add => out.level(&at, &told(side, Action::Add)),
                        Action::Change => out.level(&at, &told(side, Action::Change)),
                        Action::Delete => out.level(&at, &told(side, Action::Delete)),
                    }
                } else if entry.sort == Type::Trade {
                    trade(id, entry, &around.at(tables, entry.time), out);
                } else {
                    let fits = levels::apply_any(id, instrument, entry, counters, &mut |step| match step {
                        Step::Level(level) => out.level(&around.at(tables, entry.time), &level),
                        step => out.step(&around.at(tables, entry.time), step),
                    });
                    if !fits {
                        break false;
                    }
                }
            };
            if !fits {
                self.doubt(id, around, out);
            }
        }
        Ok(if waits { Outcome::Waits } else { Outcome::Used })
    }

    /// An entry of a level, or of an empty book: it is applied, or waits for a snapshot. Gives whether it waits.
    fn level(&mut self, id: InstrumentId, entry: &Entry, around: &Around<'_>, out: &mut impl Steps) -> bool {
        let instrument = &mut self.products.instruments[id.index()];
        if instrument.live {
            if around.sequence.is_none_or(|sequence| sequence > instrument.has) {
                let (tables, counters) = (&self.tables, &mut self.products.counters);
                let fits = levels::apply(id, instrument, entry, counters, |step| {
                    out.step(&around.at(tables, entry.time), step);
                });
                if !fits {
                    self.doubt(id, around, out);
                }
            }
            return false;
        }
        let (sequence, product) = (around.sequence.unwrap_or(0), instrument.product);
        let time = if entry.time == NO_TIME { around.ts } else { entry.time };
        if self.products.wait(id, *entry, sequence, time) {
            out.step(&around.at(&self.tables, entry.time), Step::NoRoom { product });
        }
        true
    }

    #[cold]
    #[inline(never)]
    fn snapshot(
        &mut self,
        product: ProductId,
        told: &Told,
        batch: &Batch,
        around: &Around<'_>,
        out: &mut impl Steps,
    ) -> Result<Outcome, Bad> {
        if let Some(bad) = told.bad {
            return Err(bad);
        }
        self.products.list[product.index()].snapshots_from(around.of.origin);
        let id = self.instrument(told.instrument, product, around, out)?;
        // One without a number is from before the first message.
        let last = some(told.last).unwrap_or(0);
        if !self.products.takes(id, last, around.of) {
            self.whole(product, around, out);
            return Ok(Outcome::Ignored);
        }
        self.snapshot_state(product, told.product_state, last, around, out);
        let (from, to) = told.entries;
        let entries = &batch.entries[from as usize..to as usize];
        self.take((product, id), last, (entries, told.instrument_state), *around, out);
        Ok(Outcome::Used)
    }

    /// The book of an instrument is this one, with all messages up to `last` in it; those behind it have waited.
    pub(super) fn take(
        &mut self,
        (product, id): (ProductId, InstrumentId),
        last: u64,
        (entries, state): (&[Entry], Id),
        mut around: Around<'_>,
        out: &mut impl Steps,
    ) {
        around.snapshot = true;
        let mut behind = std::mem::take(&mut self.behind);
        self.products.taken(id, last, &mut behind);
        let (tables, counters) = (&self.tables, &mut self.products.counters);
        let instrument = &mut self.products.instruments[id.index()];
        instrument.levels = [0; 2];
        let mut fits = true;
        out.step(&around.at(tables, NO_TIME), Step::Clear { instrument: id });
        for entry in entries {
            let entry = Entry { action: None, ..*entry };
            if entry.sort != Type::Empty {
                fits &= levels::apply(id, instrument, &entry, counters, |step| {
                    out.step(&around.at(tables, NO_TIME), step);
                });
            }
        }
        for waiting in &behind {
            let around = Around { sequence: Some(waiting.sequence), ..around };
            fits &= levels::apply(id, instrument, &waiting.entry, counters, |step| {
                out.step(&around.at(tables, waiting.time), step);
            });
        }
        self.behind = behind;
        self.state(product, Some(id), state, &around, out);
        match fits {
            true => out.step(&around.at(&self.tables, NO_TIME), Step::Recovered { instrument: id }),
            false => self.doubt(id, &around, out),
        }
        self.whole(product, &around, out);
    }

    #[cold]
    fn beacon(
        &mut self,
        product: ProductId,
        told: &Told,
        around: &Around<'_>,
        out: &mut impl Steps,
    ) -> Result<Outcome, Bad> {
        let lacks = (told.last == NO_NUMBER).then_some(Bad { code: "missing", tag: Tag::Last });
        if let Some(bad) = told.bad.or(lacks) {
            return Err(bad);
        }
        let mut turn = self.products.beacon(product, told.last, around.of);
        if let Turn::Old | Turn::InSnapshot = turn {
            if self.moves((product, told.last.saturating_add(1)), around, out) {
                turn = self.products.beacon(product, told.last, around.of);
            } else if self.products.is_elsewhere(product, around.of.stream) {
                return Ok(Outcome::Used);
            }
        }
        if let Turn::Missing(from, to) = turn {
            self.gap(product, (from, to), around, out);
        }
        self.products.comes_from(product, around.of);
        Ok(Outcome::Used)
    }

    pub(super) fn whole(&mut self, product: ProductId, around: &Around<'_>, out: &mut impl Steps) {
        if self.products.becomes_whole(product) {
            out.step(&around.at(&self.tables, NO_TIME), Step::Whole { product });
        }
    }

    #[cold]
    #[inline(never)]
    fn gap(&mut self, product: ProductId, (from, to): (u64, u64), around: &Around<'_>, out: &mut impl Steps) {
        let (tables, mended) = (&self.tables, self.products.has_snapshots(product));
        let alone = self.products.list[product.index()].explained != Some(from);
        out.step(&around.at(tables, NO_TIME), Step::Missing { product, from, to, alone });
        self.products.gap(product, from, to, |instrument| {
            out.step(&around.at(tables, NO_TIME), Step::Stale { instrument, mended });
        });
    }

    /// A product's first message: its books are empty and whole.
    #[cold]
    fn begins(&mut self, product: ProductId, around: &Around<'_>, out: &mut impl Steps) {
        let of = &self.products.list[product.index()];
        let live = |instrument: &&InstrumentId| self.products.instruments[instrument.index()].live;
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
    fn empty(&mut self, product: ProductId, around: &Around<'_>, out: &mut impl Steps) -> bool {
        let entry = Entry { sort: Type::Empty, ..Entry::nothing(Id::NONE) };
        let mut waits = false;
        for n in 0..self.products.list[product.index()].instruments.len() {
            let id = self.products.list[product.index()].instruments[n];
            waits |= self.level(id, &entry, around, out);
        }
        // Those that are not known yet need a snapshot that has it.
        let need = &mut self.products.list[product.index()].need;
        *need = around.sequence.map_or(*need, |sequence| sequence.max(*need));
        waits
    }

    /// The numbers of a stream begin again.
    #[cold]
    pub fn restart(&mut self, of: &Of, out: &mut impl Steps) {
        let around = Around::of_packet(of);
        out.step(&around.at(&self.tables, NO_TIME), Step::Restart);
        let channel = &self.config.channels[of.channel.index()];
        let (role, pair) = (channel.role, channel.pair);
        for product in self.products.ids() {
            let at = &self.products.list[product.index()];
            let begins = match role {
                Role::Incremental => {
                    at.stream == of.stream || self.products.may_be_of(product, (pair, of.origin))
                }
                // One that is known by snapshots alone is of their numbers.
                Role::Snapshot => at.stream.is_none() && at.pair == pair && at.is_from(of.origin),
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
            self.restart_after_losses(pair, of, out);
        }
    }

    /// The product of a message.
    #[inline(always)]
    fn product(&mut self, told: &Told, out: &mut impl Steps, around: &Around<'_>) -> Result<ProductId, Bad> {
        let pair = around.pair;
        let id = match self.config.key {
            Key::Channel => Id::number(0),
            Key::Product => told.product,
        };
        match self.by_id.get(pair, id) {
            Some(number) => Ok(ProductId(number)),
            None => self.other_product(pair, (id, told), out, around),
        }
    }

    /// One that is not known by its id.
    #[cold]
    #[inline(never)]
    fn other_product(
        &mut self,
        pair: u16,
        (id, told): (Id, &Told),
        out: &mut impl Steps,
        around: &Around<'_>,
    ) -> Result<ProductId, Bad> {
        if id == Id::NONE {
            // What names an instrument that is known names its product by that.
            let known = self.instruments.get(pair, told.instrument);
            let product = known.map(|number| self.products.instruments[number as usize].product);
            return product.ok_or(Bad { code: "missing", tag: Tag::Product });
        }
        let product = self.products.open(pair).ok_or_else(|| {
            self.products.counters.refused += 1;
            Bad { code: "no_room", tag: Tag::Product }
        })?;
        self.by_id.insert(pair, id, product.0);
        let id = match self.config.key {
            Key::Product => self.ids.shown(id),
            Key::Channel => {
                let of_pair = |c: &&plan::Channel| c.pair == pair;
                self.config.channels.iter().find(of_pair).map_or_else(String::new, |c| c.name.clone())
            }
        };
        self.tables.products.push(step::Product { id, ..step::Product::default() });
        out.step(&around.at(&self.tables, NO_TIME), Step::Product(product));
        Ok(product)
    }

    /// An instrument, which belongs to this product if it is new.
    #[inline(always)]
    fn instrument(
        &mut self,
        id: Id,
        product: ProductId,
        around: &Around<'_>,
        out: &mut impl Steps,
    ) -> Result<InstrumentId, Bad> {
        match self.instruments.get(around.pair, id) {
            Some(number) => Ok(InstrumentId(number)),
            None => self.other_instrument((around.pair, id), product, around, out),
        }
    }

    /// One that is not known.
    #[cold]
    #[inline(never)]
    fn other_instrument(
        &mut self,
        (pair, id): (u16, Id),
        product: ProductId,
        around: &Around<'_>,
        out: &mut impl Steps,
    ) -> Result<InstrumentId, Bad> {
        if id == Id::NONE {
            return Err(Bad { code: "missing", tag: Tag::Instrument });
        }
        let depth = self.tables.products[product.index()].depth.or(self.config.market_depth);
        let opened = self.products.open_instrument(product, depth.unwrap_or(0));
        let instrument = opened.ok_or_else(|| {
            self.products.counters.refused += 1;
            Bad { code: "no_room", tag: Tag::Instrument }
        })?;
        self.instruments.insert(pair, id, instrument.0);
        let id = self.ids.shown(id);
        self.tables.instruments.push(step::Instrument { id, product, ..step::Instrument::default() });
        out.step(&around.at(&self.tables, NO_TIME), Step::Instrument(instrument));
        if self.products.instruments[instrument.index()].live {
            out.step(&around.at(&self.tables, NO_TIME), Step::Recovered { instrument });
        }
        Ok(instrument)
    }
}

#[inline(always)]
fn trade(instrument: InstrumentId, entry: &Entry, at: &At<'_>, out: &mut impl Steps) {
    let trade = Trade {
        instrument,
        px: entry.px,
        qty: entry.qty.unwrap_or_default(),
        id: some(entry.trade_id),
        aggressor: side(entry.aggressor),
    };
    out.step(at, Step::Trade(trade));
}

fn side(code: u8) -> Option<Side> {
    match code {
        0 => Some(Side::Buy),
        1 => Some(Side::Sell),
        _ => None,
    }
}
