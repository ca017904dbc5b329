"""What unitape writes for an event, as docs/formats-events.md says under "What unitape writes".

A printed line has `raw` where the line alone does not make the same frame again: `comes_back` finds that out.
"""
import re
import struct

LINE = 64
LAST, LATE, META, SNAPSHOT, EXTENSION, CLOCK_AHEAD = 1, 2, 4, 8, 16, 32
TS_RECV, SRC_SEQ, OWN_NAME = 1, 2, 0xFFFE
NS_NONE, PRICE_NONE = -(1 << 63), (1 << 63) - 1


def text_of(data):
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return None


class Canonical:
    """Builds the frame that unitape writes for what an event says."""

    def __init__(self, event):
        kind = event.kind
        self.frame, self.extension, self.ts = bytearray(kind.size), bytearray(), event.ts
        struct.pack_into("<qIIiI", self.frame, 8, event.ts, event.source, event.offset, -(1 << 31), (1 << 32) - 1)
        if event.src_seq is not None:
            self.put(28, 4, self.narrow(event.src_seq, event.src_seq < (1 << 32) - 2, (1 << 32) - 2, SRC_SEQ))
        if event.ts_recv is not None:
            delta = event.ts_recv - event.ts
            self.put(24, 4, self.narrow(event.ts_recv, abs(delta) < (1 << 31) - 1 or delta == 1 - (1 << 31),
                                        (1 << 31) - 1, TS_RECV, delta))
        if kind.layout is not None:
            self.frame[38] = kind.layout
        given = dict(event.values)
        for field in kind.fields:
            self.field(field, given.get(field))
        for name, json in event.own:
            name = name.encode()
            self.extend(OWN_NAME, struct.pack("<H", len(name)) + name + json.encode())
        self.frame += self.extension
        self.frame += bytes(-len(self.frame) % LINE)
        flags = event.flags & (LAST | LATE | SNAPSHOT | CLOCK_AHEAD) | (EXTENSION if self.extension else 0)
        flags |= META if kind.number < 16 else 0
        struct.pack_into("<IHBB", self.frame, 0, 0, len(self.frame) // LINE, kind.number, flags)

    def put(self, at, size, number):
        self.frame[at : at + size] = (number % (1 << 8 * size)).to_bytes(size, "little")

    def extend(self, tag, payload):
        self.extension += struct.pack("<HI", tag, len(payload)) + payload

    def narrow(self, value, fits, mark, tag, inside=None):
        """The number of the place: the value, or the mark; then the value is in the extension."""
        if fits:
            return value if inside is None else inside
        self.extend(tag, (value % (1 << 64)).to_bytes(8, "little"))
        return mark

    def field(self, field, value):
        form, at, size = field.form, field.at, field.size
        if form == "name" and at is None and value is not None:
            self.extend(field.tag, struct.pack("<I", value))
        elif form == "name" and value is not None:
            self.put(at, size, value)
            self.frame[38] |= 64 if field.bank else 0
        elif form == "names" and value is not None:
            self.extend(field.tag, b"".join(struct.pack("<I", n) for n in value))
        elif form == "price" and at is not None:
            self.put(at, 8, PRICE_NONE if value is None else value)
        elif form == "price" and value is not None:
            self.extend(field.tag, struct.pack("<q", value))
        elif form in ("i64", "u32", "i128"):
            mantissa, exponent = value or (0, -128)
            if form == "u32" and not 0 <= mantissa < 1 << 32:
                self.extend(field.tag, struct.pack("<qb", mantissa, exponent))
                mantissa, exponent = 0, -127
            self.put(at, size, mantissa)
            self.put(field.exponent_at, 1, exponent)
        elif form == "decimal" and value is not None:
            self.extend(field.tag, struct.pack("<qb", *value))
        elif form == "inline id" and value is not None:
            self.inline_id(field, value)
        elif form == "text" and value is not None:
            self.text(field, value.encode(), value != "")
        elif form == "bits" and value is not None:
            self.frame[at] |= field.values.index(value) + 1 << field.shift
        elif form == "flag" and value is not None:
            self.frame[at] |= 1 << field.shift
        elif form == "byte" and value is not None:
            self.extend(field.tag, b"\2" if value else b"\1")
        elif form == "set" and value is not None:
            self.flag_set(field, value)
        elif form == "date" and value is not None:
            self.date(field, value)
        elif form in ("tape", "tape position") and at is not None and value is not None:
            self.frame[at : at + size] = value
        elif form in ("tape position", "tape positions") and value is not None:
            self.extend(field.tag, value)
        elif form in ("uint", "ns") and at is None:
            if value is not None:
                self.extend(field.tag, (value % (1 << 64)).to_bytes(8, "little"))
        elif form == "uint":
            none = (1 << 8 * size) - 1
            self.put(at, size, none if value is None else self.narrow(value, value < none - 1, none - 1, field.tag))
        elif form == "ns":
            self.put(at, 8, NS_NONE if value is None else value)
        elif form == "ms":
            after, rest = (65535, 0) if value is None else divmod(value - self.ts, 1_000_000)
            fits = value is None or (rest == 0 and 0 <= after < 65534)
            self.put(at, 2, after if fits else self.narrow(value, False, 65534, field.tag))
        elif form == "json" and value is not None:
            self.extend(field.tag, value.encode())

    def flag_set(self, field, value):
        sets = 1, 2, 4, 8, 10
        code = sets.index(value) + 1 if field.at is not None and value in sets else 7
        if field.at is not None:
            self.frame[field.at] |= code << field.shift
        if code == 7:
            self.extend(field.tag, bytes([value]))

    def date(self, field, days):
        mark = (1 << 8 * field.size) - 1
        code = days + 1 - (self.ts // 86_400_000_000_000 if field.size == 1 else 0)
        code = code if 0 < code < mark else mark
        if field.at is not None:
            self.put(field.at, field.size, code)
        if field.at is None or code == mark:
            self.extend(field.tag, struct.pack("<i", days))

    def text(self, field, data, may_be_inside):
        if may_be_inside and len(data) <= field.size and 0 not in data:
            self.frame[field.at : field.at + len(data)] = data
        else:
            self.extend(field.tag, data)

    def inline_id(self, field, value):
        uuid = br"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"
        if isinstance(value, int):
            if value < 1 << 56 and field.size:
                self.put(field.at, 8, value << 8 | 1)
            else:
                self.extend(field.tag, b"\xff" + struct.pack("<Q", value))
        elif field.size >= 17 and len(value) > field.size and re.fullmatch(uuid, value.lower()) and (
            value in (value.lower(), value.upper())
        ):
            mark = 2 if value == value.lower() else 3
            self.frame[field.at : field.at + 17] = bytes([mark]) + bytes.fromhex(value.decode().replace("-", ""))
        else:
            self.text(field, value, value[:1] >= b" ")


TOKEN = re.compile(
    r'[ \t\n\r]*(?:(?P<mark>[\[\]{},:])|(?P<text>"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*")'
    r"|(?P<plain>-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|true|false|null))"
)


def json_depth(text):
    """How deep the lists and objects of one JSON value go; None if it is none."""
    text = text.rstrip(" \t\n\r")
    at, depth, stack, want = 0, 0, [], "value"
    while at < len(text) or not at:
        token = TOKEN.match(text, at)
        if not token or want == "end":
            return None
        at, mark, is_text = token.end(), token.group("mark"), token.group("text") is not None
        if want in ("key", "key or end") and is_text:
            want = "colon"
        elif want == "colon" and mark == ":":
            want = "value"
        elif want in ("value", "value or end") and mark is None:
            want = "comma" if stack else "end"
        elif want in ("value", "value or end") and mark in ("[", "{"):
            stack.append("]" if mark == "[" else "}")
            depth, want = max(depth, len(stack)), "value or end" if mark == "[" else "key or end"
        elif want in ("comma", "value or end", "key or end") and stack and mark == stack[-1]:
            stack.pop()
            want = "comma" if stack else "end"
        elif want == "comma" and mark == ",":
            want = "value" if stack[-1] == "]" else "key"
        else:
            return None
    return depth if want == "end" else None


def comes_back(event, within_ext):
    """Whether the printed line says all of the frame."""
    for field, value in event.values:
        if field.form in ("i64", "u32", "i128", "decimal"):
            mantissa, exponent = value
            good = exponent == 0 if mantissa == 0 else mantissa % 10 != 0 and abs(exponent) <= 30
            if not good or mantissa == -(1 << 127):
                return False
        if field.form == "inline id" and isinstance(value, bytes) and text_of(value) is None:
            return False
        if field.form == "tape position" and not any(value[:16]) or field.form == "tape positions" and (
            len(value) % 24 or any(not any(value[i : i + 16]) for i in range(0, len(value), 24))
        ):
            return False
        if field.form == "ms" and value == NS_NONE or field.form == "json" and value == "null":
            return False
    values = [(v, 0) for f, v in event.values if f.form == "json"]
    values += [(v, 2 if i >= within_ext else 0) for i, (_, v) in enumerate(event.own)]
    for json, deeper in values:
        depth = json_depth(json)
        if depth is None or depth + deeper > 128 or json != json.strip(" \t\n\r") or "\n" in json:
            return False
    return bytes(Canonical(event).frame[4:]) == event.frame[4:]
