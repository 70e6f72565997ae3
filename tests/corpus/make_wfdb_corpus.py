#!/usr/bin/env python3
"""Writes the seed inputs of tests/fuzz_wfdb.c into tests/corpus/wfdb: small hand-made records, no real data."""
import os
import struct

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "wfdb")
os.makedirs(HERE, exist_ok=True)


def case(name, *files):
    with open(os.path.join(HERE, name), "wb") as out:
        for file, data in files:
            out.write(("%s %d\n" % (file, len(data))).encode())
        out.write(b"\n")
        for _, data in files:
            out.write(data)


RAMP = bytes(range(1, 97))
ATR = bytes([0x01, 0x70, 0x03, 0xFC, 0x28, 0x4E, 0, 0, 0x02, 0x04, 0xFE, 0xF4, 0x03, 0xF8, 0xFF, 0xF0, 0x00, 0xEC, 0, 0, 3, 0,
             0x00, 0x14, 0, 0])
NOTE = b"## time resolution: 50"
HEAD = bytes([0, 0x58, len(NOTE), 0xFC]) + NOTE + bytes([0, 0xEC, 0xFF, 0xFF, 0xFF, 0xFF, 1, 0]) + ATR
case("f16", ("r.hea", b"r 2 100 12 10:11:12.5 04/05/2001\nr.dat 16 200(3)/mV 12 0 513 0 0 ECG lead II\n"
             b"r.dat 16x3:2 20/mmHg 12 0 0 7 0 ABP\n#Age: 38\n#Sex: F\n"), ("r.dat", RAMP), ("r.atr", ATR))
case("f212", ("r.hea", b"# c\r\nr 3 360/720.5(3)\r\n\r\nr.dat 212 0 11 1024\r\nr.dat 212x2+3\r\nr.dat 212:1\r\n"),
     ("r.dat", RAMP), ("r.atr", HEAD))
case("f8", ("r.hea", b"r 2 100 40\nr.dat 8 10/uV 8 0 5 0 0 a\nr.dat 8 -1.5e2(2)/NU 8 0 -5 0 0 a\n"), ("r.dat", RAMP))
for fmt in (24, 32, 61, 80, 160, 310, 311):
    case("f%d" % fmt, ("r.hea", ("r 2 0.5\nr.dat %d 7\nr.dat %dx2 7 0 1 2 3 4 x y\n" % (fmt, fmt)).encode()), ("r.dat", RAMP))
MAT = struct.pack("<5i", 30, 2, 3, 0, 4) + b"val\0" + struct.pack("<6h", 1, 2, 3, 4, -32768, 6)
case("mat", ("r.hea", b"r.mat 2 500 3 12-May-2020 12:33:59\nr.mat 16+24 1000/mV 16 0 1 0 0 I\nr.mat 16+24 1000/mV 16 0 2 0 0 II\n"),
     ("r.mat", MAT))
case("variable", ("m.hea", b"m/5 2 100 15\nl 0\n~ 4\np 3\n~ 5\nq 3\n"), ("l.hea", b"l 2 100 0\n~ 0 10/mV 12 0 0 0 0 I\n~ 0 5/mmHg 12 0 0 0 0 A\n"),
     ("p.hea", b"p 1 100 3\np.dat 16 2/mV 12 0 1 6 0 I\n"), ("p.dat", RAMP[:6]),
     ("q.hea", b"q 2 100 3\nq.dat 16 5/mmHg 12 0 7 24 0 A\nq.dat 16 1/uV 12 0 4 15 0 I\n"), ("q.dat", RAMP[:12]), ("m.atr", ATR))
case("fixed", ("m.hea", b"m/2 1 100 6\np 3\nq 3\n"), ("p.hea", b"p 1 100 3\np.dat 16 2/mV\n"), ("p.dat", RAMP[:6]),
     ("q.hea", b"q 1 100 3\nq.dat 8 2/mV\n"), ("q.dat", RAMP[:3]))
case("two_files", ("r.hea", b"r 2 100\na.dat 16 1/mV\nb.dat 212 1/mV\n"), ("a.dat", RAMP[:10]), ("b.dat", RAMP[:9]))


def bits(*fields):
    value = n = 0
    for v, k in fields:
        value, n = value << k | (v & (1 << k) - 1), n + k
    return (value << -n % 8).to_bytes((n + 7) // 8, "big")


def crc(data, poly, width):
    value = 0
    for byte in data:
        value ^= byte << (width - 8)
        for _ in range(8):
            value = (value << 1 ^ (poly if value >> (width - 1) else 0)) & ((1 << width) - 1)
    return value


def flac(samples):  # one block of one verbatim 16-bit channel (RFC 9639)
    n = len(samples)
    info = bits((n, 16), (n, 16), (0, 24), (0, 24), (96000, 20), (0, 3), (15, 5), (n, 36)) + bytes(16)
    head = bits((0x3FFE, 14), (0, 2), (6, 4), (0, 4), (0, 4), (4, 3), (0, 1), (0, 8), (n - 1, 8))
    head += bytes([crc(head, 0x07, 8)])
    body = head + bits((0, 1), (1, 6), (0, 1), *[(s, 16) for s in samples])
    return b"fLaC" + bits((1, 1), (0, 7), (34, 24)) + info + body + struct.pack(">H", crc(body, 0x8005, 16))


case("f516", ("r.hea", b"r 1 100 16\nr.dat 516 1/mV 16 0 0 0 0 I\n"), ("r.dat", flac([0, 5, -32768, 7] * 4)))
with open(os.path.join(HERE, "plain"), "wb") as out:
    out.write(b"r 1 100 20\nr.dat 80 1/mV\n")
