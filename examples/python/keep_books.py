#!/usr/bin/env python3
"""Keeps order books from the lines of a tape, by the rules of docs/books.md alone.

    unitape tape cat TAPE --json --full | python3 keep_books.py [--depth N] [--orders]

prints what `unitape book show TAPE --json` prints with these options, at the end of the lines. With `--all` in the first command it
knows the sources as well, and so of which of them no books can be made. It needs Python 3.8 and its standard library.
"""

import json
import sys
from decimal import Decimal, getcontext

getcontext().prec = 200

ORDERS, LEVELS, BBO = "orders", "levels", "bbo"
BASES = [ORDERS, LEVELS, BBO]
PREFER = [BBO, LEVELS, ORDERS]
PHASES = {"pre", "open", "auction", "fixing", "halt", "close"}
PHASE_MARKS = {"pre": "auction", "auction": "auction", "fixing": "auction", "halt": "halted", "close": "closed"}
MARKS = ["locked", "crossed", "stale", "auction", "halted", "closed"]
HALTS = {"halted": True, "paused": True, "opening_delay": True, "no_open": True, "closed": True}
HALTS.update({"trading": False, "resumed": False})
FAULTS = [
    "unknown_order", "duplicate_order", "negative_left", "wrong_side", "bad_quantity", "bad_level", "unknown_level",
    "duplicate_level", "unsorted_level", "late", "orders_full", "levels_full", "refused",
]
ORDER_KINDS = {"order_new", "order_amend", "order_cancel", "exec"}
ELSEWHERE = ("elsewhere",)


def number(value):
    return None if value is None else Decimal(value)


def text(value):
    """A decimal as unitape prints it: no exponent, no zeros at the end."""
    if value == 0:
        return "0"
    shown = format(value, "f")
    return shown.rstrip("0").rstrip(".") if "." in shown else shown


def better(side, a, b):
    """Whether price a is better than b for this side."""
    return a > b if side == "B" else a < b


class Fault(Exception):
    pass


class Order:
    def __init__(self, oid, side):
        self.oid, self.side = oid, side
        self.px = self.display = None
        self.left = self.done = Decimal(0)
        self.hidden = self.queued = False

    def shown(self):
        return self.left if self.display is None else min(self.left, self.display)

    def json(self):
        out = {"oid": self.oid, "left": text(self.left), "done": text(self.done)}
        if self.shown() != self.left:
            out["shown"] = text(self.shown())
        if not self.queued:
            out["side"], out["px"] = self.side, None if self.px is None else text(self.px)
        return out


def oid_of(event):
    """The key of an order and how it is shown: a number and a text are two orders."""
    return event.get("oid")


def hidden_of(event):
    """Whether the order can never rest; None where the event does not say."""
    if number(event.get("display_qty")) == 0 or event.get("reason") == "suspended":
        return True
    if event.get("tif") in ("IOC", "FOK"):
        return True
    if "type" in event:
        return event["type"] == "market" or event["type"].startswith("stop")
    return False if "tif" in event else None


class OrderBook:
    def __init__(self):
        self.orders, self.queues, self.aside, self.matching = {}, {"B": {}, "S": {}}, [], None

    def best(self, side):
        prices = self.queues[side]
        return (max(prices) if side == "B" else min(prices)) if prices else None

    def meets(self, order):
        best = self.best("S" if order.side == "B" else "B")
        return best is not None and not better(order.side, best, order.px)

    def join(self, order):
        self.aside.remove(order)
        order.queued = True
        self.queues[order.side].setdefault(order.px, []).append(order)

    def leave(self, order):
        """Out of its queue, and aside."""
        if order.queued:
            self.unlink(order)
            self.aside.insert(0, order)

    def unlink(self, order):
        queue = self.queues[order.side][order.px]
        queue.remove(order)
        if not queue:
            del self.queues[order.side][order.px]
        order.queued = False

    def drop(self, order):
        self.unlink(order) if order.queued else self.aside.remove(order)
        if self.matching is order:
            self.matching = None
        del self.orders[order.oid_key]

    def finish(self):
        """The venue is done with the order that is being matched."""
        order, self.matching = self.matching, None
        if order is not None:
            self.join(order)

    def settle(self):
        if self.matching is not None and not self.meets(self.matching):
            self.finish()

    def place(self, order, continuous):
        if order.hidden or order.px is None:
            return
        if continuous and self.meets(order):
            self.matching = order
        else:
            self.join(order)

    def on_new(self, event, continuous):
        self.finish()
        self.enter(event, continuous)

    def enter(self, event, continuous):
        oid, total = oid_of(event), number(event.get("qty"))
        if "side" not in event:
            raise Fault("wrong_side")
        if total is None or total <= 0:
            raise Fault("bad_quantity")
        known = self.orders.get(oid)
        if known is not None:
            self.drop(known)
        left, display = number(event.get("left", total)), number(event.get("display_qty"))
        if left <= 0 or left > total or display is not None and display < 0:
            raise Fault("bad_quantity")
        order = Order(str(oid), event["side"])
        order.oid_key = oid
        order.px, order.left, order.done = number(event.get("px")), left, total - left
        order.display, order.hidden = display, bool(hidden_of(event))
        self.orders[oid] = order
        self.aside.insert(0, order)
        self.place(order, continuous)
        if known is not None and "snapshot" not in event.get("flags", []):
            raise Fault("duplicate_order")

    def on_amend(self, event, continuous):
        order = self.orders.get(oid_of(event))
        if order is None or self.matching is not order:
            self.finish()
        if order is None:
            left = number(event.get("left"))
            if left is not None and left > 0:
                return self.enter(event, continuous)
            if left == 0:
                return None
            raise Fault("unknown_order")
        try:
            self.amend(order, event, continuous)
        finally:
            self.settle()

    def amend(self, order, event, continuous):
        total, left, display = (number(event.get(name)) for name in ("qty", "left", "display_qty"))
        reduced = number(event.get("qty_reduced")) if total is None and left is None else None
        wrong = left is not None and (left < 0 or total is not None and left > total)
        wrong = wrong or reduced is not None and reduced <= 0
        if wrong or display is not None and display < 0:
            raise Fault("bad_quantity")
        done = order.done
        if left is not None:
            done = done if total is None else total - left
        elif total is not None:
            left = total - done
        else:
            left = order.left - (reduced or 0)
        if left <= 0:
            self.drop(order)
            if left < 0:
                raise Fault("negative_left")
            return
        px = number(event.get("px"))
        px = order.px if px is None else px
        hidden = hidden_of(event)
        hidden = order.hidden if hidden is None else hidden
        display = order.display if display is None else display
        shown = left if display is None else min(left, display)
        keeps = order.queued and px == order.px and not hidden and left <= order.left and shown <= order.shown()
        if not keeps:
            self.leave(order)
        order.px, order.left, order.done, order.hidden, order.display = px, left, done, hidden, display
        if not keeps:
            if self.matching is order:
                self.matching = None
            self.place(order, continuous)
        if event.get("side", order.side) != order.side:
            raise Fault("wrong_side")

    def on_cancel(self, event):
        order = self.orders.get(oid_of(event))
        if order is None:
            if event.get("reason") in ("rejected", "done_for_day"):
                return
            raise Fault("unknown_order")
        self.drop(order)
        self.settle()

    def on_exec(self, event):
        order = self.orders.get(oid_of(event))
        if order is None:
            raise Fault("unknown_order")
        try:
            qty = number(event.get("qty"))
            if qty is None or qty <= 0:
                raise Fault("bad_quantity")
            order.left -= qty
            order.done += qty
            if order.left <= 0:
                self.drop(order)
            if order.left < 0:
                raise Fault("negative_left")
            if event.get("side", order.side) != order.side:
                raise Fault("wrong_side")
        finally:
            self.settle()

    def levels(self, side):
        prices = sorted(self.queues[side], reverse=side == "B")
        return [(px, sum(o.shown() for o in self.queues[side][px]), len(self.queues[side][px])) for px in prices]


class LevelBook:
    """Levels of a side, best first: price, quantity, orders."""

    def __init__(self):
        self.sides = {"B": [], "S": []}

    def on_level(self, event):
        action, side = event["action"], event.get("side")
        if action == "R":
            for cleared in "BS" if side is None else side:
                self.sides[cleared] = []
            return
        if side is None:
            raise Fault("bad_level")
        px, qty = number(event.get("px")), number(event.get("qty"))
        if action != "D" and (qty is None or qty < 0):
            raise Fault("bad_quantity")
        says_nothing_left = action == "U" or (action == "D" and qty == 0)
        if action == "D":
            qty = Decimal(0)
        levels, level = self.sides[side], (px, qty, event.get("orders"))
        if "depth" in event:
            return self.by_place(levels, side, action, level, event["depth"])
        if px is None:
            raise Fault("bad_level")
        at = next((n for n, known in enumerate(levels) if not better(side, known[0], px)), len(levels))
        found = at < len(levels) and levels[at][0] == px
        if found and qty == 0:
            del levels[at]
        elif found:
            levels[at] = level
        elif qty == 0:
            if not says_nothing_left:
                raise Fault("unknown_level")
        else:
            levels.insert(at, level)
        if action == "A" and found:
            raise Fault("duplicate_level")
        if action == "C" and not found:
            raise Fault("unknown_level")

    def by_place(self, levels, side, action, level, depth):
        px, qty, orders = level
        last = len(levels) + (action == "A")
        if action == "U" or not 1 <= depth <= last:
            raise Fault("bad_level")
        at = depth - 1
        if action == "A":
            if px is None and (qty > 0 or depth == last):
                raise Fault("bad_level")
            if qty == 0:
                raise Fault("bad_quantity")
            levels.insert(at, level)
        elif qty == 0:
            del levels[at]
            return
        else:
            levels[at] = (levels[at][0] if px is None else px, qty, orders)
        mine = levels[at][0]
        after_better = at == 0 or better(side, levels[at - 1][0], mine)
        before_worse = at + 1 == len(levels) or better(side, mine, levels[at + 1][0])
        if not (after_better and before_worse):
            raise Fault("unsorted_level")


class Listing:
    def __init__(self, venue, instr):
        self.venue, self.instr = venue, instr
        self.phase, self.halted, self.cleared = None, False, 0
        self.source, self.faults = None, {}
        self.lost = dict.fromkeys(BASES)
        self.empty()

    def empty(self):
        self.orders, self.levels, self.best = OrderBook(), LevelBook(), {"B": None, "S": None}
        self.known, self.stale = dict.fromkeys(BASES, False), dict.fromkeys(BASES, False)
        self.lost = dict.fromkeys(BASES)
        self.ts, self.feeds = {}, {}
        self.stated = {"B": False, "S": False}

    def is_continuous(self):
        return self.phase in (None, "open") and not self.halted

    def is_stale(self, basis):
        return self.stale[basis] or self.lost[basis] is not None

    def mark_stale(self, basis):
        self.stale[basis] = True
        if basis == BBO:
            self.stated = {"B": False, "S": False}

    def mark_lost(self, basis, place):
        self.lost[basis] = place
        if basis == BBO:
            self.stated = {"B": False, "S": False}

    def on_partial(self, event, goes_with):
        """A quote that states only what it has. Returns whether both sides are known again."""
        is_whole = self.known[BBO] and not self.is_stale(BBO)
        best, stated = dict(self.best), dict(self.stated)
        for side, px, qty in (("B", "bid", "bid_qty"), ("S", "ask", "ask_qty")):
            is_known = is_whole or stated[side]
            px, qty = number(event.get(px)), number(event.get(qty))
            if qty is not None and qty <= 0:
                best[side], stated[side] = None, True
            elif px is not None:
                before = best[side][1] if best[side] and is_known else Decimal(0)
                best[side], stated[side] = (px, before if qty is None else qty, None), True
            elif qty is not None and best[side]:
                best[side] = (best[side][0], qty, None)
            elif qty is not None and is_known:
                raise Fault("bad_level")
        self.best = best
        if is_whole:
            return False
        if not goes_with:
            self.stated = stated
            if all(stated.values()):
                return True
        self.stale[BBO] = self.stale[BBO] or not self.known[BBO]
        return False

    def basis(self):
        known = [b for b in PREFER if self.known[b]]
        return next((b for b in known if not self.is_stale(b)), known[0] if known else None)

    def count(self, fault):
        self.faults[fault] = self.faults.get(fault, 0) + 1

    def side(self, basis, side):
        if basis == ORDERS:
            return self.orders.levels(side)
        if basis == LEVELS:
            return self.levels.sides[side]
        return [self.best[side]] if self.best[side] else []

    def marks(self, basis):
        found = {PHASE_MARKS.get(self.phase)} | ({"halted"} if self.halted else set())
        found |= crossed(*([level[0] for level in self.side(basis, s)[:1]] for s in "BS"))
        if self.is_stale(basis):
            found.add("stale")
        return [mark for mark in MARKS if mark in found]


def crossed(bid, ask):
    if not bid or not ask:
        return set()
    return {"crossed"} if bid[0] > ask[0] else {"locked"} if bid[0] == ask[0] else set()


class Books:
    def __init__(self):
        self.listings, self.wide, self.instruments = {}, [], {}
        self.kinds = {}  # what the definition of a source says of its events
        self.losses, self.lost = 0, {}  # number of the last loss; by feed and what was lost the last number
        self.warnings = dict.fromkeys(["lost", "unnamed", "bookless", "no_room", "unknown_phase"], 0)
        self.seq = self.position = self.ts = 0

    def on_line(self, event):
        kind = event["kind"]
        if kind == "source":
            self.kinds[event["index"]] = event.get("books")
        if kind in ("define", "source", "progress", "message"):
            return
        self.seq, self.position, self.ts = event["seq"], event["position"], event["ts"]
        if "instr" in event and kind != "quarantine":
            self.instruments.setdefault(event["instr"], event["ids"]["instr"])
        source = event.get("src", {})
        self.source, self.offset = source.get("id", 0), source.get("base", 0) + source.get("offset", 0)
        self.feed = source.get("feed", f"#{self.source}")
        self.place = (self.source, self.offset) if self.source else None
        if kind == "quarantine":
            self.on_quarantine(event)
        elif kind == "session":
            self.on_session(event)
        elif kind == "status":
            self.on_status(event)
        elif kind in ORDER_KINDS:
            if self.kinds.get(self.source) == "none":
                self.warnings["bookless"] += 1
            elif "oid" not in event or "instr" not in event:
                self.warnings["unnamed"] += 1
                self.lose((self.feed, ORDERS), self.listings.values(), [ORDERS])
            else:
                self.on_event(event, ORDERS)
        elif kind in ("level", "bbo"):
            if "instr" in event:
                self.on_event(event, LEVELS if kind == "level" else BBO)
            else:
                self.warnings["unnamed"] += 1

    # ---------------------------------------------------------------------------------------------- losses

    def on_quarantine(self, event):
        if event.get("books") is False or self.kinds.get(self.source) in ("none", "marked"):
            return
        if "instr" not in event:
            self.warnings["lost"] += 1
            self.lose((self.feed, None), self.listings.values(), BASES)
            return
        venue, instr, reason = event.get("venue"), event["instr"], event["reason"]
        concerned = [l for l in self.listings.values() if l.instr == instr and venue in (None, l.venue)]
        reason = "duplicate_order" if reason == "duplicate_id" else reason
        for listing in concerned:
            listing.count(reason if reason in FAULTS else "refused")
        self.lose((self.feed, venue, instr), concerned, BASES)

    def lose(self, what, listings, bases):
        self.losses += 1
        self.lost[what] = self.losses
        for listing in listings:
            for basis in bases:
                if listing.known[basis] and listing.feeds[basis] == self.feed:
                    listing.mark_lost(basis, ELSEWHERE)

    def last_loss(self, listing, basis):
        of = [(self.feed, None), (self.feed, None, listing.instr), (self.feed, listing.venue, listing.instr)]
        return max(self.lost.get(what, 0) for what in of + [(self.feed, ORDERS)] * (basis == ORDERS))

    def recover_feed(self):
        self.lost.pop((self.feed, None), None)
        self.lost.pop((self.feed, ORDERS), None)

    # ----------------------------------------------------------------------------------- phases and statuses

    def about(self, event):
        venue, instr = event.get("venue"), event.get("instr")
        return [l for l in self.listings.values() if venue in (None, l.venue) and instr in (None, l.instr)]

    def listing(self, venue, instr):
        """The listing, made now if it is new: as if it had been there when anything was said of it."""
        listing = self.listings.get((venue, instr))
        if listing is None:
            listing = self.listings[venue, instr] = Listing(venue, instr)
            for of_venue, of_instr, word, value in self.wide:
                if of_venue not in (None, venue) or of_instr not in (None, instr):
                    continue
                if word == "phase":
                    listing.phase = value
                    listing.halted = listing.halted and value == "halt"
                elif word == "halted":
                    listing.halted = value
                else:
                    listing.lost = dict.fromkeys(BASES, ELSEWHERE if value else None)
        return listing

    def is_late(self, event, listing):
        if "late" in event.get("flags", []):
            seen = listing.source
            return seen is not None and seen[0] == self.source and self.offset < seen[1]
        listing.source = (self.source, self.offset)
        return False

    def on_session(self, event):
        phase, venue, instr = event["phase"], event.get("venue"), event.get("instr")
        if phase not in PHASES:
            self.warnings["unknown_phase"] += 1
            return
        if venue is not None and instr is not None:
            listing = self.listing(venue, instr)
            if self.is_late(event, listing):
                return
        else:
            said = [v for of_venue, of_instr, word, v in self.wide if (of_venue, of_instr, word) == (venue, instr, "phase")]
            if said and said[-1] == "close" and phase != "close":
                self.wide.append((venue, instr, "stale", False))
                if instr is None:
                    self.recover_feed()
            self.wide.append((venue, instr, "phase", phase))
        for listing in self.about(event):
            was, listing.phase = listing.phase, phase
            listing.halted = listing.halted and phase == "halt"
            if was == "close" and phase != "close":
                listing.empty()
                listing.cleared = self.losses
            else:
                listing.orders.finish()

    def on_status(self, event):
        state, venue, instr = event["state"], event.get("venue"), event.get("instr")
        if state not in HALTS and state not in ("stale", "recovered", "restarted"):
            return
        if venue is not None and instr is not None and (venue, instr) in self.listings:
            listing = self.listings[venue, instr]
            if self.is_late(event, listing):
                listing.count("late")
                return
        else:
            word, value = ("halted", HALTS[state]) if state in HALTS else ("stale", state == "stale")
            self.wide.append((venue, instr, word, value))
            if instr is None and state in ("recovered", "restarted"):
                self.recover_feed()
        for listing in self.about(event):
            if state in HALTS:
                listing.halted = HALTS[state]
                listing.orders.finish()
            elif state == "stale":
                for basis in BASES:
                    listing.mark_lost(basis, self.place or ELSEWHERE)
            else:
                if state == "restarted":
                    listing.empty()
                listing.lost, listing.cleared = dict.fromkeys(BASES), self.losses
                listing.stale[ORDERS] = False

    # ----------------------------------------------------------------------------------------------- events

    def on_event(self, event, basis):
        listing = self.listing(event.get("venue"), event["instr"])
        if self.is_late(event, listing):
            listing.count("late")
            return
        goes_with = self.place is not None and listing.source == self.place and listing.lost[basis] == self.place
        fault, whole = None, False
        try:
            if basis == BBO and event.get("partial"):
                whole = listing.on_partial(event, goes_with)
            elif basis == BBO:
                for side, px, qty in (("B", "bid", "bid_qty"), ("S", "ask", "ask_qty")):
                    there = px in event and number(event.get(qty, "1")) > 0
                    listing.best[side] = (number(event[px]), number(event.get(qty, "0")), None) if there else None
                whole = not goes_with
            elif basis == LEVELS:
                whole = event["action"] == "R" and "side" not in event and not goes_with
                listing.levels.on_level(event)
            elif event["kind"] == "order_new":
                listing.orders.on_new(event, listing.is_continuous())
            elif event["kind"] == "order_amend":
                listing.orders.on_amend(event, listing.is_continuous())
            elif event["kind"] == "order_cancel":
                listing.orders.on_cancel(event)
            else:
                listing.orders.on_exec(event)
        except Fault as found:
            fault = found.args[0]
        if whole:
            listing.stale[basis], listing.lost[basis] = False, None
        if fault:
            listing.count(fault)
            listing.mark_stale(basis)
        if not listing.known[basis] and not whole and self.last_loss_of(listing, basis) > listing.cleared:
            listing.lost[basis] = ELSEWHERE
        listing.known[basis], listing.ts[basis], listing.feeds[basis] = True, event["ts"], self.feed

    def last_loss_of(self, listing, basis):
        return 0 if self.kinds.get(self.source) == "marked" else self.last_loss(listing, basis)

    # ---------------------------------------------------------------------------------------------- output

    def json(self, depth, with_orders):
        instruments = []
        for listing in self.listings.values():
            if listing.instr not in instruments:
                instruments.append(listing.instr)
            for basis in BASES:
                if listing.known[basis]:
                    yield self.book(listing, basis, depth, with_orders)
        for instr in sorted(instruments, key=lambda name: self.instruments[name]):
            listings = [l for l in self.listings.values() if l.instr == instr and l.venue != "NBBO"]
            if len(listings) > 1:
                yield self.nbbo(instr, listings)
        warnings = {word: count for word, count in self.warnings.items() if count}
        if warnings:
            yield {"warnings": warnings}

    def book(self, listing, basis, depth, with_orders):
        book = listing.orders if basis == ORDERS else None

        def levels(side):
            out = []
            for px, qty, orders in listing.side(basis, side)[:depth]:
                level = {"px": text(px), "qty": text(qty)}
                if orders is not None:
                    level["orders"] = orders
                if with_orders:
                    level["queue"] = [order.json() for order in book.queues[side][px]] if book else []
                out.append(level)
            return out

        out = {
            "seq": self.seq, "position": self.position, "ts": listing.ts[basis], "instr": listing.instr,
            "venue": listing.venue or "", "basis": basis, "phase": listing.phase, "marks": listing.marks(basis),
            "levels": [len(listing.side(basis, side)) for side in "BS"],
            "orders": len(book.orders) if book else 0, "bids": levels("B"), "asks": levels("S"),
            "faults": {fault: listing.faults[fault] for fault in FAULTS if fault in listing.faults},
        }
        if with_orders:
            out["aside"] = [order.json() for order in book.aside] if book else []
        return out

    def nbbo(self, instr, listings):
        touches, marks = {"B": [], "S": []}, set()
        for listing in listings:
            basis = listing.basis()
            if basis is None or not listing.is_continuous():
                continue
            if listing.is_stale(basis):
                marks.add("stale")
                continue
            for side in "BS":
                touches[side] += [(px, qty, listing.venue or "") for px, qty, _ in listing.side(basis, side)[:1]]
        out = {"seq": self.seq, "ts": self.ts, "kind": "bbo", "venue": "NBBO", "instr": instr}
        best, venues = {"B": [], "S": []}, {}
        for side, px_name, qty_name in (("B", "bid", "bid_qty"), ("S", "ask", "ask_qty")):
            prices = [touch[0] for touch in touches[side]]
            best[side] = [max(prices) if side == "B" else min(prices)] if prices else []
            there = [touch for touch in touches[side] if [touch[0]] == best[side]]
            venues[px_name + "_venues"] = [venue for _, _, venue in there]
            if there:
                out[px_name] = text(best[side][0])
                qty = sum(qty for _, qty, _ in there)
                if qty:
                    out[qty_name] = text(qty)
        marks |= crossed(best["B"], best["S"])
        out.update({"basis": "venues", "marks": [mark for mark in MARKS if mark in marks]}, **venues)
        out["position"] = self.position
        return out


def main():
    arguments, depth = sys.argv[1:], 5
    if "--depth" in arguments:
        depth = int(arguments[arguments.index("--depth") + 1])
    books = Books()
    for line in sys.stdin:
        books.on_line(json.loads(line))
    for out in books.json(depth, "--orders" in arguments):
        print(json.dumps(out, separators=(",", ":"), ensure_ascii=False))


if __name__ == "__main__":
    main()
