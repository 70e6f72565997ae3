#!/usr/bin/env python3
"""Writes the seed inputs of tests/fuzz_xdf.c into tests/corpus/xdf: small hand-made files, no real data."""
import os
import struct

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "xdf")
os.makedirs(HERE, exist_ok=True)


def length(n):
    return bytes([1, n]) if n < 256 else bytes([4]) + struct.pack("<I", n)


def chunk(tag, content):
    return length(len(content) + 2) + struct.pack("<H", tag) + content


def header(stream, fmt, channels, rate, more=""):
    return chunk(2, struct.pack("<I", stream) + ("<?xml version='1.0'?><info><name>s%d</name><type>EEG</type><channel_count>%d</channel_count>"
                 "<nominal_srate>%g</nominal_srate><channel_format>%s</channel_format><desc>%s</desc></info>" % (
                     stream, channels, rate, fmt, more)).encode())


def samples(stream, rows):
    body = struct.pack("<I", stream) + length(len(rows))
    for stamp, data in rows:
        body += b"\0" if stamp is None else b"\x08" + struct.pack("<d", stamp)
        body += data
    return chunk(3, body)


def offset(stream, time, value):
    return chunk(4, struct.pack("<Idd", stream, time, value))


def text(word):
    return length(len(word)) + word


def write(name, *chunks):
    data = b"XDF:" + chunk(1, b"<info><version>1.0</version></info>") + b"".join(chunks)
    with open(os.path.join(HERE, name), "wb") as out:
        out.write(b"r.xdf %d\n\n" % len(data) + data)


CHANNELS = ("<channels><channel><label>Fp1</label><unit>microvolts</unit><type>EEG</type></channel>"
            "<channel><label>E&amp;G&#x31;</label><unit>mV</unit><type>ECG</type></channel></channels>")
ROWS = [(10.0, struct.pack("<hh", 1, -1)), (None, struct.pack("<hh", 2, -2)), (10.2, struct.pack("<hh", 3, -3)),
        (12.0, struct.pack("<hh", 4, -4)), (None, struct.pack("<hh", 5, -5))]
write("int16", header(1, "int16", 2, 10, CHANNELS), header(7, "string", 1, 0), samples(1, ROWS),
      samples(7, [(10.1, text(b"on")), (12.1, text(b"Gr\xf6\xdfe")), (99.0, text(b"late"))]), chunk(5, b"0" * 16),
      chunk(6, struct.pack("<I", 1) + b"<info><sample_count>5</sample_count></info>"))
write("offsets", header(2, "float32", 1, 10), *[offset(2, t, o) for t, o in ((9, 1), (10, 1.1), (11, 1.2), (2, 9), (3, 9))],
      samples(2, [(10 + k / 10, struct.pack("<f", k)) for k in range(5)]), samples(2, [(2 + k / 10, struct.pack("<f", k)) for k in range(5)]))
write("several", header(3, "double64", 1, 4), header(4, "int8", 3, 8), header(5, "int64", 1, 0), header(6, "int32", 1, 2),
      samples(3, [(1.0, struct.pack("<d", 0.5)), (1.25, struct.pack("<d", float("nan")))]), samples(4, [(1.0, b"\1\2\3"), (None, b"\4\5\6")]),
      samples(5, [(1.5, struct.pack("<q", 1 << 60))]), samples(6, [(1.5, struct.pack("<i", -9))]))
