"""Makes tests/golden/philox_values.h: the definitions of core/philox.h written a second time, in Python integers.

    python3 tests/golden/make_philox.py > tests/golden/philox_values.h
"""
import hashlib

M32 = 0xFFFFFFFF
PURPOSE, FORK, FEISTEL = 0x736E7075, 0x736E666B, 0x736E6662


def philox(counter, key):
    c, (k0, k1) = list(counter), key
    for _ in range(10):
        p, q = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(q >> 32) ^ c[1] ^ k0, q & M32, (p >> 32) ^ c[3] ^ k1, p & M32]
        k0, k1 = (k0 + 0x9E3779B9) & M32, (k1 + 0xBB67AE85) & M32
    return c


def split(x):
    return [x & M32, x >> 32]


def identity(seed, purpose, epoch, sample):
    return philox(philox(split(epoch) + split(sample), split(seed)), (purpose, PURPOSE))


def fork(i, part):
    return philox([i[0] ^ FORK] + i[1:], split(part))


def words(i, n):
    out = []
    block = 0
    while len(out) < n:
        out += philox(split(block) + i[2:], i[:2])
        block += 1
    return out[:n]


def bijection(seed, purpose, epoch, n, x):
    half = 1
    while (n - 1) >> (2 * half):
        half += 1
    mask = (1 << half) - 1
    i = identity(seed, purpose, epoch, FEISTEL)
    while True:
        left, right = x >> half, x & mask
        for r in range(8):
            left, right = right, left ^ (philox([right, r] + i[2:], i[:2])[0] & mask)
        x = left << half | right
        if x < n:
            return x


def hexes(values, width):
    return ", ".join(f"0x{v:0{width}x}" for v in values)


big = (1 << 63) + 12345
cases = [(0, 1, 0, 0), (1, 2, 3, 4), (0xFFFFFFFFFFFFFFFF, 13, 0xFFFFFFFFFFFFFFFF, 0xFFFFFFFFFFFFFFFF),
         (big, 6, 7, 0x123456789ABCDEF0)]
print("/* Made by tests/golden/make_philox.py; do not edit. */")
print("static const struct {\n  uint64_t seed, purpose, epoch, sample;\n  uint32_t words[6], forked[3];\n} STREAMS[] = {")
for c in cases:
    i = identity(*c)
    print(f"    {{0x{c[0]:x}u, {c[1]}, 0x{c[2]:x}u, 0x{c[3]:x}u, {{{hexes(words(i, 6), 8)}}},")
    print(f"     {{{hexes(words(fork(i, 0x100000005), 3), 8)}}}}},")
print("};")
print("static const struct {\n  uint64_t seed, epoch, n, i, image;\n} IMAGES[] = {")
for seed, epoch, n, x in [(1, 0, 5, 0), (1, 0, 5, 4), (9, 2, 64, 63), (9, 3, 1000, 999), (5, 1, 10**12, 123456789),
                          (5, 1, (1 << 64) - 1, 42), (5, 1, (1 << 62) + 1, 7)]:
    print(f"    {{{seed}u, {epoch}u, 0x{n:x}u, {x}u, 0x{bijection(seed, 2, epoch, n, x):x}u}},")
print("};")
h = int.from_bytes(hashlib.sha256(b"abc").digest()[:8], "little")
print(f"#define HASH_OF_ABC 0x{h:016x}u")
