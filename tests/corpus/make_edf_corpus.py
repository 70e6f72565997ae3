#!/usr/bin/env python3
"""Writes the seed inputs of tests/fuzz_edf.c into tests/corpus/edf: small hand-made files, no real data."""
import gzip
import os

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "edf")
os.makedirs(HERE, exist_ok=True)


def make(name, signals, records, count=None, duration=b"1", reserved=b"", bdf=False, patient=b"X X X X"):
    """signals: (label, unit, physical min, max, digital min, max, samples)."""
    def field(width, text):
        return text.ljust(width)[:width]
    out = b"\xFFBIOSEMI" if bdf else field(8, b"0")
    out += field(80, patient) + field(80, b"Startdate 02-MAR-2002 X X X") + b"02.03.0214.27.05"
    out += field(8, b"%d" % (256 * (len(signals) + 1))) + field(44, reserved)
    out += field(8, b"%d" % (len(records) if count is None else count)) + field(8, duration) + field(4, b"%d" % len(signals))
    out += b"".join(field(16, s[0]) for s in signals) + b" " * 80 * len(signals)
    for k in range(1, 6):
        out += b"".join(field(8, s[k]) for s in signals)
    out += b" " * 80 * len(signals) + b"".join(field(8, b"%d" % s[6]) for s in signals) + b" " * 32 * len(signals)
    width = 3 if bdf else 2
    for record in records:
        for s, part in zip(signals, record):
            assert len(part) <= s[6] * width
            out += part.ljust(s[6] * width, b"\0") if isinstance(part, bytes) else b"".join(
                (v & (1 << 8 * width) - 1).to_bytes(width, "little") for v in part)
    if name.endswith("gz"):
        out = gzip.compress(out, mtime=0)
    open(os.path.join(HERE, name), "wb").write(out)


def tals(onset, more=b""):
    return onset + b"\x14\x14\0" + more


EEG = (b"EEG Cz-REF", b"uV", b"-100", b"100", b"-32768", b"32767", 4)
SLOW = (b"Temp", b"degC", b"34", b"40.2", b"-2048", b"2047", 2)
NOTES = (b"EDF Annotations", b"", b"-1", b"1", b"-32768", b"32767", 16)
make("plain", [EEG, SLOW], [([1, 2, 3, -4], [5, -6])] * 3, patient=b"id F 02-MAY-1951 name Age:50")
make("plus_c", [EEG, NOTES], [([1, 2, 3, 4], tals(b"+0.25", b"+1\x150.5\x14one\x14two\x14\0")), ([5, 6, 7, 8], tals(b"+1.25"))],
     reserved=b"EDF+C")
make("plus_d", [NOTES, EEG], [(tals(b"+0"), [1, 2, 3, 4]), (tals(b"+0.5", b"-2\x14a@@EEG Cz-REF\x14\0"), [1, 2, 3, 4]),
                              (tals(b"+7"), [1, 2, 3, 4])], reserved=b"EDF+D", duration=b"0.5")
make("bdf", [(b"Cz", b"uV", b"-262144", b"262143", b"-8388608", b"8388607", 4),
             (b"Status", b"Boolean", b"-8388608", b"8388607", b"-8388608", b"8388607", 4)],
     [([1, -2, 3, -4], [0x1000CA, 0x1000CA, 0xFFFFFF, 0x100000]), ([1, 2, 3, 4], [1, 0, 1, 2])], reserved=b"24BIT", bdf=True)
make("alone", [NOTES], [(tals(b"+0", b"+30\x1590\x14Gr\xF6\xDFe\x14\0"),)], reserved=b"EDF+C", duration=b"0")
make("unknown_count", [EEG], [([1, 2, 3, 4],)] * 3, count=-1, duration=b"1,5")
make("zero_duration", [EEG], [([1, 2, 3, 4],)] * 3, duration=b"0")
make("odd", [(b"a", b"", b"0", b"0", b"5", b"5", 3), (b"", b"\xB5V", b"100", b"-100", b"32767", b"-32768", 6)],
     [([1, 2, 3], [1, 2, 3, 4, 5, 6])] * 2)
make("packed.gz", [EEG, NOTES], [([1, 2, 3, 4], tals(b"+%d" % k, b"+%d\x14x\x14\0" % k)) for k in range(5)], reserved=b"EDF+D")
