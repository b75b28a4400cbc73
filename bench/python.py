"""What the Python package costs: python.py [KEYS]

Every figure is the least of several interleaved runs, and ratios are of such figures. What a batch costs in C++ on the
same machine, `make bench` says.
"""
import subprocess
import sys
import threading
import time

import numpy

import perhaps

KEYS = int(float(sys.argv[1])) if len(sys.argv) > 1 else 10_000_000
COLUMN = min(KEYS, 10_000_000)
ROUNDS = 7


def least(*works):
    """Seconds of each, the least of interleaved rounds."""
    best = [float("inf")] * len(works)
    for _ in range(ROUNDS):
        for i, work in enumerate(works):
            start = time.perf_counter()
            work()
            best[i] = min(best[i], time.perf_counter() - start)
    return best


def threads(count, work):
    all = [threading.Thread(target=work, args=(i,)) for i in range(count)]
    for thread in all:
        thread.start()
    for thread in all:
        thread.join()


rng = numpy.random.default_rng(1)
seen = perhaps.Filter(keys=KEYS)
for part in range(0, KEYS, 1_000_000):
    seen.update(rng.integers(0, 2**63, min(1_000_000, KEYS - part), dtype="u8"))
column = rng.integers(2**63, 2**64 - 1, COLUMN, dtype="u8")
halves = [column[: COLUMN // 2].copy(), column[COLUMN // 2:].copy()]
one, two = least(lambda: seen.contains(column), lambda: threads(2, lambda i: seen.contains(halves[i])))
print(f"filter of {KEYS} keys, {seen.nbytes} bytes")
print(f"contains, column of u64        {one / COLUMN * 1e9:7.1f} ns per key")
print(f"two threads                    {one / two:7.2f} x")

texts = [f"https://example.org/{i:08d}" for i in range(1_000_000)]
small = perhaps.Filter(keys=1_000_000)
small.update(texts[::2])
numbers = [int(n) for n in column[:1_000_000]]
batch, loop, single = least(lambda: small.contains(texts), lambda: [text in small for text in texts],
                            lambda: [number in small for number in numbers])
empty = least(lambda: [number for number in numbers])[0]
print(f"contains, list of texts        {batch / 1e6 * 1e9:7.1f} ns per key")
print(f"`in`, loop over texts          {loop / 1e6 * 1e9:7.1f} ns per key, {loop / batch:.1f} x the batch")
print(f"`in`, loop over ints           {single / 1e6 * 1e9:7.1f} ns per key, the empty loop {empty / 1e6 * 1e9:.1f}")
start = subprocess.run
bare, imported = least(lambda: start([sys.executable, "-S", "-c", "pass"]),
                       lambda: start([sys.executable, "-S", "-c", "import sys; sys.path[:0] = %r; import perhaps"
                                      % [p for p in sys.path if p]]))
print(f"import                         {(imported - bare) * 1e3:7.1f} ms")
