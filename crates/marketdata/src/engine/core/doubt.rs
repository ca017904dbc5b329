//! What is believed no longer, though no message is known to be missing: products whose numbers may have begun again unseen, or
//! whose sender is another one now, a book with a level that cannot be, and all books when nothing more will come.

use super::Core;
use crate::engine::around::{Around, Of};
use crate::engine::step::{Role, Step, Steps};
use crate::engine::view::NO_TIME;
use unitape_model::{InstrumentId, ProductId};

impl Core {
    /// The book of an instrument is not the venue's: it needs a snapshot with all that has come until now. False where none
    /// will come.
    pub fn want_snapshot(&mut self, instrument: InstrumentId) -> bool {
        let product = self.products.instruments[instrument.index()].product;
        self.products.has_snapshots(product) && {
            self.products.want_snapshot(instrument);
            true
        }
    }

    /// An instrument has a level that cannot be.
    #[cold]
    #[inline(never)]
    pub fn doubt(&mut self, instrument: InstrumentId, around: &Around<'_>, out: &mut impl Steps) {
        if self.want_snapshot(instrument) {
            out.step(&around.at(&self.tables, NO_TIME), Step::Stale { instrument, mended: true });
        }
    }

    /// A message whose number was there already, in a message or in a snapshot: whether the product's numbers have begun again
    /// with it, see `Products::moved`.
    #[cold]
    #[inline(never)]
    pub fn moves(
        &mut self,
        (product, sequence): (ProductId, u64),
        around: &Around<'_>,
        out: &mut impl Steps,
    ) -> bool {
        if !self.products.moved(product, sequence, around.of) {
            return false;
        }
        out.step(&around.at(&self.tables, NO_TIME), Step::Restart);
        let (tables, mended) = (&self.tables, self.products.has_snapshots(product));
        self.products.restart(product, around.of.ts_recv, |instrument| {
            out.step(&around.at(tables, NO_TIME), Step::Stale { instrument, mended });
        });
        true
    }

    /// Packets of a stream came on no line.
    #[cold]
    pub fn lost(&mut self, of: &Of, (from, to): (u64, u64), out: &mut impl Steps) {
        self.tell(of, 0, Step::Lost { from, to }, out);
        if self.config.channels[of.channel.index()].role != Role::Incremental {
            return;
        }
        for product in self.products.ids() {
            if self.products.list[product.index()].stream != of.stream {
                continue;
            }
            if self.products.loses(product, of.ts_recv) {
                self.restart_unseen(product, of, false, out);
            }
            self.unnumbered_lost(product, &Around::of_packet(of), out);
        }
    }

    /// Something of a product is missing. Where its messages have no numbers no gap will tell.
    #[cold]
    pub fn unnumbered_lost(&mut self, product: ProductId, around: &Around<'_>, out: &mut impl Steps) {
        let of = &self.products.list[product.index()];
        let mended = self.products.has_snapshots(product);
        if of.next.is_some() || mended {
            return;
        }
        let live = |instrument: &&InstrumentId| self.products.instruments[instrument.index()].live;
        for &instrument in of.instruments.iter().filter(live) {
            out.step(&around.at(&self.tables, NO_TIME), Step::Stale { instrument, mended });
        }
    }

    /// The numbers of a pair's snapshots have begun again, and those of products may have in packets that were lost before.
    #[cold]
    pub fn restart_after_losses(&mut self, pair: u16, of: &Of, out: &mut impl Steps) {
        for product in self.products.ids() {
            if self.products.list[product.index()].pair == pair
                && self.products.may_have_restarted(product, of.ts_recv)
            {
                self.restart_unseen(product, of, true, out);
            }
        }
    }

    /// The numbers of a product may have begun again in packets that were lost, now or (`since`) lately.
    #[cold]
    fn restart_unseen(&mut self, product: ProductId, of: &Of, since: bool, out: &mut impl Steps) {
        let (around, mended) = (Around::of_packet(of), self.products.has_snapshots(product));
        let tables = &self.tables;
        self.products.restart_unseen(product, of.ts_recv, since, |instrument| {
            out.step(&around.at(tables, NO_TIME), Step::Stale { instrument, mended });
        });
    }

    /// The first packet that is heard of a stream says that numbers begin with it: a snapshot that came before it and tells of
    /// messages is of the numbers before.
    #[cold]
    #[inline(never)]
    pub fn begins_behind_snapshots(&mut self, of: &Of, out: &mut impl Steps) {
        let channel = &self.config.channels[of.channel.index()];
        let (products, from) = (&self.products, (channel.pair, of.origin));
        let before = |product: ProductId| {
            let told = &products.list[product.index()].instruments;
            products.may_be_of(product, from) && told.iter().any(|i| products.instruments[i.index()].has > 0)
        };
        if channel.role == Role::Incremental && products.ids().any(before) {
            self.restart(of, out);
        }
    }

    /// Nothing more will come: no book is known from here on, but all stay as they are.
    pub fn close(&mut self, of: &Of, out: &mut impl Steps) {
        let around = Around::of_packet(of);
        for instrument in (0..self.products.instruments.len() as u32).map(InstrumentId) {
            if std::mem::take(&mut self.products.instruments[instrument.index()].live) {
                let stale = Step::Stale { instrument, mended: false };
                out.step(&around.at(&self.tables, NO_TIME), stale);
            }
        }
    }
}
