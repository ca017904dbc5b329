#!/usr/bin/env python3
"""Prints a tape as `unitape tape cat DIR --json --full --all` does, and checks it on the way.

Written from docs/formats-tape.md, docs/formats-events.md and docs/events.md alone, with Python's standard library. It reads
the tables of kinds, fields and dictionaries out of docs/formats-events.md itself: what the page lacks, this cannot read.

    python3 examples/python/read_tape.py TAPE
    python3 examples/python/read_tape.py TAPE --page formats-events.md --quiet

What is wrong is printed on stderr, and the exit code is 3. It is made to be read, not to be fast.
"""
import argparse
import os
import re
import struct
import sys

from canonical import comes_back, json_depth, text_of
from tape_files import Tape, uint

PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../docs/formats-events.md")
LAST, LATE, SNAPSHOT, EXTENSION, CLOCK_AHEAD = 1, 2, 8, 16, 32
FLAG_WORDS = (LAST, "last"), (LATE, "late"), (SNAPSHOT, "snapshot"), (CLOCK_AHEAD, "clock_ahead")
DEFINE, SOURCE, PROGRESS, QUARANTINE, MESSAGE = 2, 3, 8, 40, 64
TS_RECV, SRC_SEQ, OWN_NAME = 1, 2, 0xFFFE
NS_NONE, PRICE_NONE = -(1 << 63), (1 << 63) - 1
RESERVED = "rec seq ts kind src_seq ts_recv src flags ids position ext raw".split()


# ------------------------------------------------------------------------------------------------- the page's tables


class Field:
    """A row of a kind's table: tag, name, whether it came with layout 1, offset in the fixed part (None: extension), form."""

    def __init__(self, tag, name, mark, at, form):
        self.tag, self.name, self.at = int(tag), name, None if at == "extension" else int(at)
        self.added = mark == "layout 1"
        numbers = [int(n) for n in re.findall(r"\d+", form)]
        named = re.search(r"\((\w+)\)", form)
        self.dict = named.group(1) if named else None
        self.size = self.exponent_at = self.shift = self.mask = 0
        if form.startswith("id of a name"):
            self.form, self.size = "name", 0 if self.at is None else 2 if self.dict == "venue" else 4
            # A venue and a bank share a place; a bit of another byte says whose it is.
            self.bank = ("not set" not in form) if "bit 6" in form else None
        elif form.startswith("ids of names"):
            self.form = "names"
        elif form.startswith("decimal"):
            self.form = "decimal"
        elif "mantissa" in form:
            bits = re.match(r"[iu](\d+)", form)
            self.form, self.size, self.exponent_at = form[: bits.end()], int(bits.group(1)) // 8, numbers[-1]
        elif form.startswith(("inline id", "text")):
            self.form, self.size = form.split(",")[0], numbers[0] if numbers else 0
        elif "set of" in form:
            self.form, self.shift = "set", numbers[0] if self.at is not None else 0
            self.values = re.findall(r"\d+ `(\w+)`", form)
        elif form.startswith("bit "):
            self.form, self.shift = "flag", numbers[0]
        elif form.startswith("byte"):
            self.form = "byte"
        elif form.startswith("date"):
            self.form, self.size = "date", 0 if self.at is None else int(re.search(r"u(\d+)", form).group(1)) // 8
        elif form.startswith("id of a tape"):
            self.form, self.size = "tape", 16
        elif form.startswith("position on a tape"):
            self.form, self.size = "tape position", 24
        elif form.startswith("positions on tapes"):
            self.form = "tape positions"
        elif form.startswith("bits"):
            self.form, self.shift, self.mask = "bits", numbers[0], (1 << (numbers[1] - numbers[0] + 1)) - 1
            self.values = [False, True] if "1 false, 2 true" in form else re.findall(r"\d+ `(\w+)`", form)
        elif form.startswith("u16 ms"):
            self.form, self.size = "ms", 2
        elif re.fullmatch(r"u(8|16|32|64)", form):
            self.form, self.size = "uint", numbers[0] // 8 if self.at is not None else 0
        else:
            self.form = {"price, i64 in 1e-9": "price", "i64 ns since 1970": "ns", "JSON text": "json"}[form]


class Kind:
    def __init__(self, name, number, size, layout):
        self.name, self.number, self.size, self.fields = name, int(number), int(size), []
        self.layout = None if layout is None else int(layout)


class Kinds:
    """Kinds by number and, where a kind has had several layouts, by the layout that its frames say."""

    def __init__(self):
        self.by_number = {}

    def add(self, kind):
        self.by_number[kind.number, kind.layout] = kind

    def get(self, frame):
        """The kind of a frame; None if the page does not have it."""
        return self.by_number.get((frame[6], None)) or self.by_number.get((frame[6], frame[38]))


def read_page(path):
    """Kinds, and names of dictionaries by number."""
    kinds, dictionaries, kind = Kinds(), {}, None
    for line in open(path, encoding="utf-8"):
        if head := re.match(r"### `(\w+)`: kind (\d+), (\d+) bytes(?:, layout (\d+))?", line):
            kind = Kind(*head.groups())
            kinds.add(kind)
        elif row := re.match(r"\| (\d+) \| `(\w+)`(?: \((must|layout 1)\))? \| (\d+|extension) \| (.+) \|$", line):
            kind.fields.append(Field(*row.groups()))
        elif (row := re.match(r"\| (\d+) \| `(\w+)` \| \d+ \|$", line)) and kind is None:
            dictionaries[int(row.group(1))] = row.group(2)
    return kinds, dictionaries


# --------------------------------------------------------------------------------------------------- values of frames


def entries(data):
    """The entries of an extension: tag and payload."""
    at = 0
    while at + 6 <= len(data):
        tag, length = struct.unpack_from("<HI", data, at)
        if tag == 0 or at + 6 + length > len(data):
            return
        yield tag, data[at + 6 : at + 6 + length]
        at += 6 + length


def inline_id(place, entry):
    """An inline id: an int, or the bytes of a text."""
    if not place or place[0] == 0:
        if entry is not None and len(entry) == 9 and entry[0] == 0xFF:
            return uint(entry, 1, 8)
        return entry
    if place[0] == 1:
        return uint(place, 1, 7)
    if place[0] in (2, 3) and len(place) >= 17:
        digits = place[1:17].hex()
        text = "-".join([digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]])
        return (text.upper() if place[0] == 3 else text).encode()
    return place.split(b"\0")[0]


def date_of(days):
    """The text of a date; None outside years 1 to 9999."""
    if not -719_162 <= days <= 2_932_896:
        return None
    era, day = divmod(days + 719_468, 146_097)
    year = (day - day // 1_460 + day // 36_524 - day // 146_096) // 365
    day -= 365 * year + year // 4 - year // 100
    month = (5 * day + 2) // 153
    day, month = day - (153 * month + 2) // 5 + 1, month + 3 if month < 10 else month - 9
    return "%04d-%02d-%02d" % (year + era * 400 + (month <= 2), month, day)


def date_value(field, place, ts, entry):
    """A date, in days since 1970-01-01, as a field has it."""
    code, mark = uint(place, 0, field.size) if place else 0xFF, (1 << 8 * field.size) - 1 if place else 0xFF
    if code == mark:
        days = uint(entry, 0, 4, True) if entry is not None and len(entry) == 4 else None
    elif code == 0:
        days = None
    else:
        days = code - 1 + (ts // 86_400_000_000_000 if field.size == 1 else 0)
        days = days if days < 1 << 31 else None
    return None if days is None or date_of(days) is None else days


FLAG_SETS = 1, 2, 4, 8, 10


def flag_set(field, frame, entry):
    """A set of flags, as a sum."""
    code = 7 if field.at is None else frame[field.at] >> field.shift & 7
    if code == 7:
        total = entry[0] if entry is not None and len(entry) == 1 else 0
    else:
        total = FLAG_SETS[code - 1] if 0 < code <= len(FLAG_SETS) else 0
    return total & (1 << len(field.values)) - 1 or None


def wrap(ns):
    return (ns + (1 << 63)) % (1 << 64) - (1 << 63)


def value_of(field, frame, ts, entry):
    """The value of a field, or None. `entry` is its payload in the extension, or None."""
    form, at, size = field.form, field.at, field.size
    place = b"" if at is None else frame[at : at + size]
    wide = entry if entry is not None and len(entry) == 8 else None
    if form == "name":
        if field.bank is not None and field.bank != bool(frame[38] & 64):
            return None
        if at is None:
            return uint(entry, 0, 4) or None if entry is not None and len(entry) == 4 else None
        return uint(place, 0, size) or None
    if form == "flag":
        return True if frame[at] >> field.shift & 1 else None
    if form == "byte":
        return {b"\1": False, b"\2": True}.get(entry)
    if form == "set":
        return flag_set(field, frame, entry)
    if form == "date":
        return date_value(field, place, ts, entry)
    if form in ("tape", "tape position"):
        data = entry if at is None else place
        return data if data is not None and len(data) == size and any(data) else None
    if form == "tape positions":
        return entry
    if form == "names":
        return None if entry is None else [uint(entry, i, 4) for i in range(0, len(entry) // 4 * 4, 4)]
    if form == "price":
        data = wide if at is None else frame[at : at + 8]
        price = PRICE_NONE if data is None else uint(data, 0, 8, True)
        return None if price == PRICE_NONE else price
    if form in ("i64", "u32", "i128"):
        exponent = uint(frame, field.exponent_at, 1, True)
        if exponent == -128:
            return None
        if form == "u32" and exponent == -127:
            fits = entry is not None and len(entry) == 9
            return (uint(entry, 0, 8, True), uint(entry, 8, 1, True)) if fits else None
        return uint(place, 0, size, form != "u32"), exponent
    if form == "decimal":
        fits = entry is not None and len(entry) == 9
        return (uint(entry, 0, 8, True), uint(entry, 8, 1, True)) if fits else None
    if form == "inline id":
        return inline_id(place, entry)
    if form == "text":
        data = place.split(b"\0")[0] if place and place[0] else entry
        return None if data is None else text_of(data)
    if form == "bits":
        code = frame[at] >> field.shift & field.mask
        return field.values[code - 1] if 0 < code <= len(field.values) else None
    if form == "uint":
        if at is None:
            return None if wide is None else uint(wide, 0, 8)
        number, none = uint(place, 0, size), (1 << 8 * size) - 1
        if number == none - 1:
            return None if wide is None else uint(wide, 0, 8)
        return None if number == none else number
    if form == "ns":
        data = wide if at is None else frame[at : at + 8]
        ns = NS_NONE if data is None else uint(data, 0, 8, True)
        return None if ns == NS_NONE else ns
    if form == "ms":
        ms = uint(place, 0, 2)
        if ms == 65534:
            return None if wide is None else uint(wide, 0, 8, True)
        return None if ms == 65535 else wrap(ts + ms * 1_000_000)
    return None if entry is None else text_of(entry)


class Event:
    """A frame, split by the table of its kind."""

    def __init__(self, kind, frame):
        self.kind, self.frame, self.flags = kind, frame, frame[7]
        self.ts, self.source, self.offset = struct.unpack_from("<qII", frame, 8)
        delta, sequence = struct.unpack_from("<iI", frame, 24)
        extension = frame[kind.size :] if self.flags & EXTENSION else b""
        first, self.own = {}, []
        for tag, payload in entries(extension):
            first.setdefault(tag, payload)
            if tag == OWN_NAME and len(payload) >= 2:
                end = 2 + uint(payload, 0, 2)
                name, value = text_of(payload[2:end]), text_of(payload[end:])
                if end <= len(payload) and name is not None and value is not None:
                    self.own.append((name, value))
        wide = {tag: first[tag] for tag in (TS_RECV, SRC_SEQ) if len(first.get(tag, b"")) == 8}
        self.ts_recv = self.src_seq = None
        if delta == (1 << 31) - 1:
            self.ts_recv = uint(wide[TS_RECV], 0, 8, True) if TS_RECV in wide else None
        elif delta != -(1 << 31):
            self.ts_recv = wrap(self.ts + delta)
        if sequence == (1 << 32) - 2:
            self.src_seq = uint(wide[SRC_SEQ], 0, 8) if SRC_SEQ in wide else None
        elif sequence != (1 << 32) - 1:
            self.src_seq = sequence
        values = [(f, value_of(f, frame, self.ts, first.get(f.tag))) for f in kind.fields]
        self.values = [(f, v) for f, v in values if v is not None]
        self.needs_layout_1 = bool(kind.layout) or any(f.added for f, _ in self.values)

    def get(self, name):
        return next((v for f, v in self.values if f.name == name), None)


# -------------------------------------------------------------------------------------------------------------- lines

ESCAPES = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}


def quoted(text):
    return '"' + re.sub(r'["\\\x00-\x1f]', lambda m: ESCAPES.get(m[0], "\\u%04x" % ord(m[0])), text) + '"'


def quoted_bytes(data):
    text = text_of(data)
    return '{"hex":"%s"}' % data.hex() if text is None else quoted(text)


def json_text(text):
    return quoted(text) if json_depth(text) is None else text.strip(" \t\n\r").replace("\n", " ")


def tape_position(data):
    return '{"tape":"%032x","position":%d}' % (uint(data, 0, 16), uint(data, 16, 8))


def decimal(mantissa, exponent):
    sign, digits = "-" if mantissa < 0 else "", str(abs(mantissa))
    if exponent >= 0:
        return sign + digits + ("0" * exponent if mantissa else "")
    digits = digits.rjust(1 - exponent, "0")
    return f"{sign}{digits[:exponent]}.{digits[exponent:]}"


def price(number):
    exponent = -9 if number else 0
    while number and number % 10 == 0:
        number, exponent = number // 10, exponent + 1
    return decimal(number, exponent)


class Lines:
    """Writes lines, and knows the names and sources that a tape has defined."""

    def __init__(self, kinds, dictionaries):
        self.kinds, self.dictionaries = kinds, dictionaries
        self.names = {name: [] for name in dictionaries.values()}
        self.sources = {}

    def learn(self, event):
        """Takes a definition; False if it does not follow the ones before it."""
        if event.kind.number == SOURCE:
            self.sources[event.get("index")] = (event.get("feed"), event.get("file"), event.get("base") or 0)
        elif event.kind.number == DEFINE:
            names, index = self.names.get(self.dictionaries.get(event.get("dict"))), event.get("index")
            if names is None or not index or index > len(names) + 1:
                return False
            if index == len(names) + 1:
                names.append(event.get("name"))
            return names[index - 1] == event.get("name")
        return True

    def name(self, dictionary, index):
        names = self.names[dictionary]
        return quoted(names[index - 1]) if index <= len(names) else '{"id":%d}' % index

    def value(self, field, value):
        form = field.form
        if form == "name":
            return self.name(field.dict, value)
        if form == "names":
            return "[" + ",".join(self.name(field.dict, index) for index in value) + "]"
        if form == "price":
            return f'"{price(value)}"'
        if form in ("i64", "u32", "i128", "decimal"):
            return f'"{decimal(*value)}"'
        if form == "json":
            return json_text(value)
        if form == "set":
            words = [f'"{word}"' for bit, word in enumerate(field.values) if value >> bit & 1]
            return "[" + ",".join(words) + "]"
        if form == "date":
            return f'"{date_of(value)}"'
        if form == "tape":
            return '"%032x"' % uint(value, 0, 16)
        if form == "tape position":
            return tape_position(value)
        if form == "tape positions":
            return "[" + ",".join(tape_position(value[i : i + 24]) for i in range(0, len(value) // 24 * 24, 24)) + "]"
        if isinstance(value, bytes):
            return quoted_bytes(value)
        if isinstance(value, bool):
            return "true" if value else "false"
        if field.name == "dict" and value in self.dictionaries:
            return quoted(self.dictionaries[value])
        return quoted(value) if isinstance(value, str) else str(value)

    def event(self, event, seq, position):
        kind, parts = event.kind, [f'"seq":{seq}', f'"ts":{event.ts}', f'"kind":"{event.kind.name}"']
        parts += [f'"{f.name}":{self.value(f, v)}' for f, v in event.values]
        known = self.sources.get(event.source)
        used = set(RESERVED) | {f.name for f in kind.fields if event.needs_layout_1 or not f.added}
        if kind.number == QUARANTINE and event.source:
            used |= {"source", "offset"}
            parts.append(f'"source":{quoted(known[0] + "/" + known[1]) if known else json_id(event.source)}')
            parts.append(f'"offset":{min((known[2] if known else 0) + event.offset, (1 << 64) - 1)}')
        top = 0
        while top < min(len(event.own), 64) and event.own[top][0] not in used:
            name, json = event.own[top]
            used.add(name)
            parts.append(f"{quoted(name)}:{json_text(json)}")
            top += 1
        if top < len(event.own):
            pairs = ",".join(f"[{quoted(name)},{json_text(json)}]" for name, json in event.own[top:])
            parts.append(f'"ext":[{pairs}]')
        if event.src_seq is not None:
            parts.append(f'"src_seq":{event.src_seq}')
        if event.ts_recv is not None:
            parts.append(f'"ts_recv":{event.ts_recv}')
        overflows = False
        if event.source or event.offset:
            place = (known[2] if known else 0) + event.offset
            overflows = place >= 1 << 64
            source = f'"id":{event.source}'
            if known:
                source += f',"feed":{quoted(known[0])},"file":{quoted(known[1])},"base":{known[2]}'
            parts.append('"src":{' + source + ("" if overflows else f',"offset":{place}') + "}")
        words = [f'"{w}"' for bit, w in FLAG_WORDS if event.flags & bit]
        words += ['"layout_1"'] if event.needs_layout_1 else []
        parts.append(f'"flags":[{",".join(words)}]')
        ids = [f'"{f.name}":{str(v).replace(" ", "")}' for f, v in event.values if f.form in ("name", "names")]
        parts.append('"ids":{' + ",".join(ids) + "}")
        parts.append(f'"position":{position}')
        if overflows or not comes_back(event, top):
            parts.append(f'"raw":"00000000{event.frame[4:].hex()}"')
        return "{" + ",".join(parts) + "}"

    def message(self, frame, seq, position):
        length, topic = struct.unpack_from("<II", frame, 8)
        data = quoted_bytes(frame[16 : 16 + length])
        return f'{{"seq":{seq},"kind":"message","topic":{topic},"bytes":{data},"position":{position}}}'


def json_id(number):
    return '{"id":%d}' % number


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("tape")
    parser.add_argument("--page", default=PAGE, help="docs/formats-events.md")
    parser.add_argument("--quiet", action="store_true", help="check only")
    args = parser.parse_args()
    kinds, dictionaries = read_page(args.page)
    tape, lines = Tape(args.tape), Lines(kinds, dictionaries)
    out = open(sys.stdout.fileno(), "w", encoding="utf-8", newline="\n", closefd=False)
    for position, frame in tape.log.items():
        kind = kinds.get(frame)
        if kind and not lines.learn(Event(kind, frame)):
            tape.wrong("definitions.log", 0, f"the definition of position {position} does not follow those before it")
    raw_bytes = os.path.getsize(tape.path("quarantine.raw")) if os.path.exists(tape.path("quarantine.raw")) else 0
    seen, first = set(), None
    for position, ordinal, frame in tape.frames():
        first = position if first is None else first
        kind, known = frame[6], kinds.get(frame)
        if kind == MESSAGE:
            line = lines.message(frame, ordinal + 1, position)
        elif known:
            event = Event(known, frame)
            if 2 <= kind <= 7:
                seen.add(position)
                if not lines.learn(event) or (position < tape.durable and tape.log.get(position) != frame):
                    tape.wrong("definitions.log", 0, f"the definition at position {position} is not the tape's")
            if kind == QUARANTINE and (event.get("raw_at") or 0) + (event.get("length") or 0) > raw_bytes:
                tape.wrong("quarantine.raw", raw_bytes, f"the event at position {position} names bytes beyond its end")
            if kind == PROGRESS and event.get("messages") < sum(
                event.get(name) for name in ("ignored", "duplicates", "quarantined")
            ):
                tape.wrong("segments", position, "the account of a source does not close")
            line = lines.event(event, ordinal + 1, position)
        else:
            tape.wrong("segments", position, f"a frame of kind {kind}, which the page does not have")
            continue
        if not args.quiet:
            print(line, file=out)
    for position in tape.log:
        if first is not None and position >= first and position not in seen and (tape.closed or position < tape.durable):
            tape.wrong("definitions.log", 0, f"the definition of position {position} is not on the tape")
    out.flush()
    return 3 if tape.problems else 0


if __name__ == "__main__":
    sys.exit(main())
