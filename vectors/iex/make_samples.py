"""Makes the captures of this folder from messages.txt: python3 vectors/iex/make_samples.py"""

import pathlib
import struct

FOLDER = pathlib.Path(__file__).parent
PROTOCOLS = {"tops": 0x8003, "deep": 0x8004, "deep_plus": 0x8005}
START_NS = 1_772_436_590_000_000_000
SESSION = 1285


def files(text):
    """The packets of each file, in order: lists of messages."""
    found, messages = [], []
    for line in text.splitlines():
        if not line or line[0] in "#{":
            continue
        if line[0] == "=":
            _, protocol, name = line.split()
            found.append((protocol, name, []))
        elif line in ("-", "2"):
            found[-1][2].append((messages, 2 if line == "2" else 1))
            messages = []
        else:
            messages.append(bytes.fromhex(line))
    return found


def datagrams(protocol, packets):
    offset, sequence, sent = 0, 1, START_NS
    for messages, times in packets:
        payload = b"".join(struct.pack("<H", len(message)) + message for message in messages)
        # A packet is sent 20 microseconds after the last of its messages, a heartbeat a second after the packet before it.
        sent = struct.unpack_from("<q", messages[-1], 2)[0] + 20_000 if messages else sent + 1_000_000_000
        head = struct.pack("<BBHIIHHqqq", 1, 0, PROTOCOLS[protocol], 1, SESSION, len(payload), len(messages), offset, sequence, sent)
        for _ in range(times):
            yield sent, head + payload
        offset, sequence = offset + len(payload), sequence + len(messages)


def ethernet(payload):
    udp = struct.pack(">HHHH", 10378, 10378, 8 + len(payload), 0) + payload
    ip = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(udp), 0, 0x4000, 64, 17, 0, bytes([10, 0, 0, 1]), bytes([233, 252, 0, 8]))
    words = struct.unpack(">10H", ip)
    total = sum(words)
    total = (total & 0xFFFF) + (total >> 16)
    ip = ip[:10] + struct.pack(">H", ~((total & 0xFFFF) + (total >> 16)) & 0xFFFF) + ip[12:]
    return bytes.fromhex("01005e7c0008 020000000001 0800") + ip + udp


def pcap(records):
    out = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)
    for ns, frame in records:
        out += struct.pack("<IIII", ns // 10**9, ns % 10**9 // 1000, len(frame), len(frame)) + frame
    return out


def pcapng(records):
    def block(kind, body):
        body += bytes(-len(body) % 4)
        return struct.pack("<II", kind, 12 + len(body)) + body + struct.pack("<I", 12 + len(body))

    out = block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1))
    # if_tsresol: nanoseconds.
    out += block(1, struct.pack("<HHI", 1, 0, 65535) + struct.pack("<HHB3xHH", 9, 1, 9, 0, 0))
    for ns, frame in records:
        head = struct.pack("<IIIII", 0, ns >> 32, ns & 0xFFFFFFFF, len(frame), len(frame))
        out += block(6, head + frame)
    return out


for protocol, name, packets in files((FOLDER / "messages.txt").read_text()):
    records = [(ns, ethernet(payload)) for ns, payload in datagrams(protocol, packets)]
    made = pcapng(records) if name.endswith(".pcapng") else pcap(records)
    (FOLDER / name).write_bytes(made)
