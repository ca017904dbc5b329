"""The files of a tape and their checksums, as docs/formats-tape.md has them."""
import os
import re
import struct
import sys

HEADER_PAGE, LINE = 4096, 64
LAST, META = 1, 4
PAD = 1


def uint(data, at, size, signed=False):
    return int.from_bytes(data[at : at + size], "little", signed=signed)


def crc_table():
    table = []
    for n in range(256):
        for _ in range(8):
            n = n >> 1 ^ (0x82F63B78 if n & 1 else 0)
        table.append(n)
    return table


TABLE = crc_table()


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = TABLE[(crc ^ byte) & 255] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


def read_file(path):
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        return None


class Tape:
    """The files of a tape, and what is wrong with them."""

    def __init__(self, directory):
        self.dir, self.problems = directory, 0
        self.meta = dict(re.findall(r'(?m)^(\w+) = "?(\w+)"?$', read_file(self.path("tape.toml")).decode()))
        if self.meta["format"] != "1":
            sys.exit(f"{directory}: format {self.meta['format']}, this reads 1")
        self.id = int(self.meta["tape"], 16).to_bytes(16, "little")
        self.segment_bytes = int(self.meta["segment_bytes"])
        self.span = min(int(self.meta["checksum_span"]), self.segment_bytes)
        self.closed = not os.path.exists(self.path("run/writer.lock"))
        hot = read_file(self.path("run/hot"))
        self.places = ([hot.decode().rstrip("\n")] if hot else []) + [self.path("segments")]
        self.durable, self.log_bytes = self.read_durable()
        self.log = self.read_log()

    def path(self, name):
        return os.path.join(self.dir, name)

    def wrong(self, name, offset, what):
        self.problems += 1
        print(f"{self.path(name)} at offset {offset}: {what}", file=sys.stderr)

    def small(self, name, magic, bytes_checked):
        """A file that begins with a magic word, a version, and ends its head with a checksum."""
        data = read_file(self.path(name))
        if data is None and name == "durable" and not self.closed:
            return None
        if data is None or data[:8] != magic or uint(data, 8, 8) != 1:
            self.wrong(name, 0, "the head is not one of format 1")
            return None
        if uint(data, bytes_checked, 4) != crc32c(data[:bytes_checked]):
            self.wrong(name, bytes_checked, "the checksum of the head does not match")
        return data

    def read_durable(self):
        data = self.small("durable", b"UNITDURA", 60)
        return (uint(data, 16, 8), uint(data, 24, 8)) if data else (0, 0)

    def read_log(self):
        """The definitions of the log: frames by position."""
        data, at, log = self.small("definitions.log", b"UNITDEFS", 60), 64, {}
        if data and data[16:32] != self.id:
            self.wrong("definitions.log", 16, "it is of another tape")
        while data and at < len(data):
            position, length, crc = struct.unpack_from("<QII", data[at : at + 16].ljust(16, b"\0"))
            frame = data[at + 16 : at + 16 + length]
            if length == 0 or len(frame) < length or crc32c(data[at : at + 12] + frame) != crc:
                if self.closed or at < self.log_bytes:
                    self.wrong("definitions.log", at, "the record is damaged or cut short")
                break
            log[position] = frame
            at += 16 + length
        return log

    def indices(self):
        names = [name for place in self.places if os.path.isdir(place) for name in os.listdir(place)]
        return sorted({int(name[:16], 16) for name in names if re.fullmatch(r"[0-9a-f]{16}\.seg", name)})

    def segment(self, index):
        """A segment's frames and first ordinal, or None where it cannot be read."""
        name = f"segments/{index:016x}.seg"
        found = (read_file(os.path.join(place, f"{index:016x}.seg")) for place in self.places)
        data = next((data for data in found if data is not None), None)
        head = struct.pack("<Q16sQQQ", 1, self.id, index, index * self.segment_bytes, self.segment_bytes)
        if data is None or data[:8] != b"UNITAPE\x01" or data[8:56] != head or uint(data, 64, 4) != crc32c(data[:64]):
            self.wrong(name, 0, "the header page is not that of this segment")
            return None
        return data[HEADER_PAGE:], uint(data, 56, 8)

    def check_sums(self, index, data):
        name, base = f"segments/{index:016x}", index * self.segment_bytes
        below = self.durable if self.closed else self.durable - self.durable % self.span
        covered = max(0, min(below - base, self.segment_bytes))
        sums, wanted = read_file(self.path(name + ".crc")) or b"", -(-covered // self.span)
        if len(sums) < 4 * wanted:
            self.wrong(name + ".crc", len(sums), f"there must be {wanted} checksums")
        for i in range(min(wanted, len(sums) // 4)):
            span = data[i * self.span : min((i + 1) * self.span, covered)].ljust(self.span, b"\0")
            if crc32c(span) != uint(sums, 4 * i, 4):
                self.wrong(name + ".seg", HEADER_PAGE + i * self.span, "the checksum of the span does not match")

    def frames(self):
        """Every committed frame from the oldest on: position, number of events before it, bytes."""
        expected, last = None, True
        end = 0
        for index in self.indices():
            base, name = index * self.segment_bytes, f"segments/{index:016x}.seg"
            if expected is not None and index != expected[0]:
                self.wrong(name, 0, "segments before this one are missing")
                expected = None
            if (found := self.segment(index)) is None:
                expected = None
                continue
            data, ordinal = found
            at = 0
            while at < self.segment_bytes:
                word = uint(data, at, 8)
                stamp, lines, kind, flags = struct.unpack_from("<IHBB", data, at)
                if word == 0:
                    break
                if at == 0 and expected is not None and ordinal != expected[1]:
                    self.wrong(name, 56, f"the first ordinal is {ordinal}, there were {expected[1]} events before")
                if stamp == 1 << 31 | base + at >> 6 & 0x7FFFFFFF and kind == PAD and lines == 0:
                    if any(data[at + 8 :]):
                        self.wrong(name, HEADER_PAGE + at + 8, "bytes after the pad")
                    at = self.segment_bytes
                elif stamp == 1 << 31 | base + at >> 6 & 0x7FFFFFFF and kind > PAD and 0 < lines * LINE <= len(data) - at:
                    yield base + at, ordinal, data[at : at + lines * LINE]
                    ordinal += 0 if flags & META else 1
                    at, last = at + lines * LINE, bool(flags & LAST)
                    end = base + at
                else:
                    self.wrong(name, HEADER_PAGE + at, "no frame begins so")
                    break
            self.check_sums(index, data)
            expected = (index + 1, ordinal)
            if at < self.segment_bytes and self.closed and any(data[at:]):
                self.wrong(name, HEADER_PAGE + at, "bytes after the end of the tape")
            end = max(end, base + at)
        if not last and self.closed:
            self.wrong("segments", end, "the last unit is not complete")
        if end != self.durable if self.closed else end < self.durable:
            self.wrong("durable", 16, f"the durable position is {self.durable}, the tape ends at {end}")
