#!/usr/bin/env python3
"""Writes the seed inputs of tests/fuzz_brainvision.c into tests/corpus/brainvision: small hand-made files, no real data."""
import os

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "brainvision")
os.makedirs(HERE, exist_ok=True)


def case(name, *files):
    with open(os.path.join(HERE, name), "wb") as out:
        for file, data in files:
            out.write(("%s %d\n" % (file, len(data))).encode())
        out.write(b"\n")
        for _, data in files:
            out.write(data)


def header(binary="INT_16", orientation="MULTIPLEXED", more="", n=2, interval="4000", channels=None, kind="BINARY"):
    return ("Brain Vision Data Exchange Header File Version 1.0\n; c\n[Common Infos]\nCodepage=UTF-8\nDataFile=r.eeg\n"
            "MarkerFile=r.vmrk\nDataFormat=%s\nDataOrientation=%s\nNumberOfChannels=%d\nSamplingInterval=%s\n%s"
            "[Binary Infos]\nBinaryFormat=%s\n[Channel Infos]\n%s" % (
                kind, orientation, n, interval, more, binary,
                channels or "".join("Ch%d=C%d,REF,0.5,\u00b5V\n" % (i + 1, i) for i in range(n)))).encode()


MARKERS = (b"Brain Vision Data Exchange Marker File, Version 1.0\n[Common Infos]\nDataFile=r.eeg\n[Marker Infos]\n"
           b"Mk1=New Segment,,1,1,0,20200101000000000000\nMk2=Stimulus,S\\1 1,2,1,1\nMk3=New Segment,,4,1,0,20200101000010000000\n"
           b"Mk4=Comment,Gr\xf6\xdfe,5,0,0\nMk5=Stimulus,x,999,1,0\n")
RAMP = bytes(range(1, 97))
case("int16", ("r.vhdr", header()), ("r.eeg", RAMP), ("r.vmrk", MARKERS))
case("int32", ("r.vhdr", header("INT_32", "VECTORIZED", "DataPoints=12\n")), ("r.eeg", RAMP), ("r.vmrk", MARKERS))
case("float32", ("r.vhdr", header("IEEE_FLOAT_32", n=3)), ("r.eeg", RAMP), ("r.vmrk", MARKERS))
case("uint16", ("r.vhdr", header("UINT_16\nUseBigEndianOrder=YES", more="SegmentDataPoints=5\n")), ("r.eeg", RAMP),
     ("r.vmrk", MARKERS))
case("ascii", ("r.vhdr", header(kind="ASCII").replace(b"[Binary Infos]\nBinaryFormat=INT_16", b"[ASCII Infos]\nDecimalSymbol=,\nSkipLines=1")),
     ("r.eeg", b"C0 C1\n1,5 2\n-3e1\t4\n5;6\n7 8\n9 10\n"), ("r.vmrk", MARKERS))
case("ascii_rows", ("r.vhdr", header(kind="ASCII", orientation="VECTORIZED").replace(
    b"[Binary Infos]\nBinaryFormat=INT_16", b"[ASCII Infos]\nSkipColumns=1")), ("r.eeg", b"C0 1 2 nan 4\nC1 5 6 inf 8\n"), ("r.vmrk", MARKERS))
case("renamed", ("q.vhdr", header().replace(b"r.eeg", b"../r.eeg").replace(b"r.vmrk", b"x.vmrk")), ("q.eeg", RAMP), ("q.vmrk", MARKERS))
case("coordinates", ("r.vhdr", header(channels="Ch1=EOG,,,mV\nCh2=Te\\1mp,,1,C\n") + b"[Coordinates]\nCh1=1,-90,-72\nCh2=0,0,0\n[Comment]\n"
     b"S o f t w a r e  F i l t e r s\n====\n# Low\n1 0.9 50 50\n2 Off Off Off\n\n[x]\n"), ("r.eeg", RAMP), ("r.vmrk", MARKERS))
