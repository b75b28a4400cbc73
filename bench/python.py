"""What the Python package costs: python.py PEER [--keys N] [--rounds N]

PEER is bench/python_peer.cc: the same filter in C++, in this process. Every figure is the least of interleaved rounds,
and ratios are of such figures. Times are of the CPU, so that other programs disturb them less; only the gain of a
second thread is one of elapsed time. `make bench-python` builds both.
"""
import argparse
import ctypes
import os
import random
import resource
import subprocess
import sys
import threading
import time

import numpy

import perhaps

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("peer")
parser.add_argument("--keys", type=float, default=1e8, help="of the large filter")
parser.add_argument("--rounds", type=int, default=9)
arguments = parser.parse_args()
KEYS = int(arguments.keys)
COLUMN = min(KEYS, 10_000_000)
TEXTS = 1_000_000

peer = ctypes.CDLL(os.path.abspath(arguments.peer))
peer.peer_new.restype = ctypes.c_void_p
peer.peer_batches_of_64.restype = ctypes.c_double


def least(*works, clock=time.process_time):
    """Seconds of each, the least of interleaved rounds."""
    best = [float("inf")] * len(works)
    for _ in range(arguments.rounds):
        for i, work in enumerate(works):
            start = clock()
            work()
            best[i] = min(best[i], clock() - start)
    return best


def children():
    """CPU seconds of the processes that were started."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def in_threads(count, work):
    threads = [threading.Thread(target=work, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def pointer(array):
    return ctypes.c_void_p(array.ctypes.data), ctypes.c_size_t(len(array))


def row(what, figure, bar=""):
    print(f"{what:52} {figure:>12}   {bar}", flush=True)


rng = numpy.random.default_rng(1)
seen = perhaps.Filter(keys=KEYS)
cpp = ctypes.c_void_p(peer.peer_new(ctypes.c_uint64(KEYS)))
for part in range(0, KEYS, 1_000_000):
    some = rng.integers(0, 2**63, min(1_000_000, KEYS - part), dtype="u8")
    seen.update(some)
    peer.peer_insert(cpp, *pointer(some))
column = rng.integers(0, 2**64 - 1, COLUMN, dtype="u8")
column[::2] = some[: (COLUMN + 1) // 2] if len(some) >= COLUMN else numpy.resize(some, (COLUMN + 1) // 2)
bits = numpy.zeros((COLUMN + 63) // 64, dtype="u8")
peer.peer_query(cpp, *pointer(column), ctypes.c_void_p(bits.ctypes.data))
assert (numpy.unpackbits(bits.view("u1"), bitorder="little")[:COLUMN] == seen.contains(column)).all()

halves = [column[: COLUMN // 2].copy(), column[COLUMN // 2:].copy()]
python, native = least(lambda: seen.contains(column),
                       lambda: peer.peer_query(cpp, *pointer(column), ctypes.c_void_p(bits.ctypes.data)))
one, two = least(lambda: in_threads(1, lambda i: seen.contains(column)),
                 lambda: in_threads(2, lambda i: seen.contains(halves[i])), clock=time.perf_counter)
print(f"filter of {KEYS} keys, {seen.nbytes} bytes; column of {COLUMN} numbers; {arguments.rounds} rounds")
row("contains, numpy column of uint64", f"{python / COLUMN * 1e9:.2f} ns")
row("the same column in C++", f"{native / COLUMN * 1e9:.2f} ns")
row("contains, speed in units of C++", f"{native / python:.2f}", ">= 0.9")
row("two threads, speed in units of one", f"{one / two:.2f}", ">= 1.7")
peer.peer_free(cpp)

texts = [f"https://example.org/{i:08d}" for i in range(TEXTS)]
small = perhaps.Filter(keys=TEXTS)
small.update(texts[::2])
shuffled = texts.copy()
random.Random(1).shuffle(shuffled)  # as a list is whose texts were sorted, or came from many places
numbers = [int(n) for n in column[:TEXTS]]
batch, loop, far_batch, far_loop, single, empty = least(
    lambda: small.contains(texts), lambda: [text in small for text in texts],
    lambda: small.contains(shuffled), lambda: [text in small for text in shuffled],
    lambda: [number in small for number in numbers], lambda: [number for number in numbers])
for order, list_, each in [("in order of memory", batch, loop), ("shuffled", far_batch, far_loop)]:
    row(f"list of texts of 28 bytes, {order}", f"{list_ / TEXTS * 1e9:.1f} ns")
    row("`in`, loop over them", f"{each / TEXTS * 1e9:.1f} ns")
    row("list, speed in units of the loop", f"{each / list_:.1f}", ">= 5")
row("`in`, loop over ints (of which the loop itself)",
    f"{single / TEXTS * 1e9:.1f} ({empty / TEXTS * 1e9:.1f}) ns", "<= 120 ns")
ratio = peer.peer_batches_of_64(*pointer(column[:640_000]), ctypes.c_int(10 * arguments.rounds))
row("C API, 64 integers in cache, time in units of C++", f"{ratio:.2f}", "<= 1.1")

paths = [path for path in sys.path if path]
run = subprocess.run
bare, imported = least(lambda: run([sys.executable, "-S", "-c", "pass"], check=True),
                       lambda: run([sys.executable, "-S", "-c", f"import sys; sys.path[:0] = {paths}; import perhaps"],
                                   check=True), clock=children)
row("import", f"{(imported - bare) * 1e3:.1f} ms", "<= 20 ms")
row("size of the extension", f"{os.path.getsize(perhaps._native.__file__) / 1e6:.2f} MB", "<= 3 MB")
