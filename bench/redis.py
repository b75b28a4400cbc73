#!/usr/bin/env python3
"""What the Redis module costs, and what its batches gain: `make bench-redis`.

One server with the module and a filter of four times the L3 cache. The ways to be compared alternate in rounds; each is
compared with the first way of its own round, and the median of the rounds counts. Rates are items per second of the
server's own processor time, so that a busy machine or a slow client changes little.

  redis.py MODULE [--capacity 1e8] [--items 4e7] [--rounds 5]
  redis.py MODULE --blocking [--capacity 1e8] [--rounds 5]    how long commands on one large filter block the server
"""
import argparse
import os
import random
import re
import statistics
import struct
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "test", "redis"))
parser = argparse.ArgumentParser()
parser.add_argument("module")
parser.add_argument("--capacity", type=float, default=1e8)
parser.add_argument("--items", type=float, default=4e7)
parser.add_argument("--rounds", type=int, default=5)
parser.add_argument("--blocking", action="store_true")
options = parser.parse_args()
os.environ["PERHAPS_REDIS_MODULE"] = os.path.abspath(options.module)
import harness  # noqa: E402  (it reads the environment)

BATCH, PIPELINE = 100, 16
SINGLE = 1_000_000  # capacity of the filter for single items, and how many different ones there are
RANGE = int(2 * options.items)  # the even numbers are in the filter: half of the keys that are looked up


def processor_seconds(pid):
    with open(f"/proc/{pid}/schedstat") as f:
        return int(f.read().split()[0]) * 1e-9


def fill(client, key, items):
    """Every second number, twelve digits each, in batches of 1000, ten batches in flight."""
    item = b"$12\r\n%012d\r\n" * 1000
    head = b"*1002\r\n$7\r\nBF.MADD\r\n$%d\r\n%s\r\n" % (len(key), key.encode())
    size = len(b"*1000\r\n") + 4 * 1000
    sent = 0
    for first in range(0, 2 * int(items), 2000):
        client.socket.sendall(head + item % tuple(range(first, first + 2000, 2)))
        sent += 1
        if sent > 10:
            client.file.read(size)
    client.file.read(size * min(sent, 10))


def batches(key, count):
    """Commands as they go over the wire; half of the keys are in the filter."""
    rng = random.Random(1)
    return [harness.Client.pack(["BF.MEXISTS", key] + [f"{rng.randrange(RANGE):012d}" for _ in range(BATCH)])
            for _ in range(count)]


def ask(client, commands):
    """Pipelined: the next commands are sent before the last replies are read, so that the server never waits. All
    replies have the same length, so they are not parsed."""
    size = len(b"*%d\r\n" % BATCH) + 4 * BATCH
    due = 0
    for i in range(0, len(commands), PIPELINE):
        part = commands[i:i + PIPELINE]
        client.socket.sendall(b"".join(part))
        client.file.read(due)
        due = size * len(part)
    client.file.read(due)


def measure(server, client, rounds, ways):
    """Items per second of the server's processor, for each of the ways in each round."""
    # More lines than any cache holds. Made beforehand: a server that waited for them would begin every round cold.
    commands = {target: batches(target, 6400) for target, _ in ways.values()}
    found = {name: [] for name in ways}
    for r in range(rounds):
        part = slice(r % 5 * 1280, (r % 5 + 1) * 1280)
        for name, (target, prepare) in ways.items():
            prepare()
            before = processor_seconds(server.process.pid)
            ask(client, commands[target][part])
            found[name].append(1280 * BATCH / (processor_seconds(server.process.pid) - before))
    return found


def throughput(server, pipeline, command, requests):
    command = ["redis-benchmark", "-p", str(server.port), "-r", str(SINGLE), "-n", str(requests), "-c", "50", "-P",
               str(pipeline), "-q", *command]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return float(re.findall(r"([0-9.]+) requests per second", text)[-1])


def main():
    with harness.Server() as server:
        client = server.client()
        setting = "bf-prefetch" if client("CONFIG", "SET", "bf-prefetch", "yes") == "OK" else "bf.prefetch"

        def prefetch(value):
            assert client("CONFIG", "SET", setting, value) == "OK"

        prefetch("yes")
        start = time.monotonic()
        assert client("BF.RESERVE", "compatible", "0.01", int(options.capacity)) == "OK"
        fill(client, "compatible", options.items)
        ways = {"prefetch off": ("compatible", lambda: prefetch("no")),
                "prefetch on": ("compatible", lambda: prefetch("yes"))}
        if not isinstance(client("BF.RESERVE", "line", "0.01", int(options.capacity), "LAYOUT", "LINE"), harness.Error):
            fill(client, "line", options.items)
            ways["LAYOUT LINE"] = ("line", lambda: prefetch("yes"))
        print(f"{client('BF.CARD', 'compatible'):,} items in {client('BF.INFO', 'compatible', 'SIZE')[0]:,} bytes, "
              f"filled in {time.monotonic() - start:.0f} s")
        found = measure(server, client, options.rounds, ways)
        print(f"\nBF.MEXISTS of {BATCH} items, pipeline {PIPELINE}: items per second of the server's processor, "
              f"medians of {options.rounds} rounds")
        for name, rates in found.items():
            ratios = [rate / first for rate, first in zip(rates, found["prefetch off"])]
            print(f"  {name:14} {statistics.median(rates):12,.0f}   {statistics.median(ratios):.2f}  "
                  f"({min(ratios):.2f} to {max(ratios):.2f})")

        print("\nrequests per second, 50 connections; share of PING in the same round, medians")
        for pipeline, requests in ((1, 40_000), (64, 400_000)):
            shares = {}
            for _ in range(options.rounds):
                client("DEL", "single")  # so that most items that are added are new
                client("BF.RESERVE", "single", "0.01", SINGLE)
                ping = throughput(server, pipeline, ["PING"], requests)
                for name in ("BF.ADD", "BF.EXISTS"):
                    share = throughput(server, pipeline, [name, "single", "__rand_int__"], requests) / ping
                    shares.setdefault(name, []).append(share)
            for name, found in shares.items():
                print(f"  pipeline {pipeline:2}  {name:10} {statistics.median(found):.2f}  "
                      f"({min(found):.2f} to {max(found):.2f})")


def blocked_milliseconds(server, client, command):
    """Processor time of the server's main thread, which serves nobody else meanwhile: what the command takes on a
    machine that has nothing else to do."""
    before = processor_seconds(server.process.pid)
    reply = client(*command)
    assert not isinstance(reply, harness.Error), (command[0], reply)
    return 1000 * (processor_seconds(server.process.pid) - before)


def fill_at_random(client, family, key, header, size):
    """Half of the bits, or every slot, without hashing a billion items. Returns the first chunk."""
    rng = random.Random(2)
    assert client(f"{family}.LOADCHUNK", key, 1, header) == "OK"
    chunks = []
    for first in range(0, size, 16 << 20):
        chunks.append(rng.randbytes(min(16 << 20, size - first)))
        assert client(f"{family}.LOADCHUNK", key, 1 + first + len(chunks[-1]), chunks[-1]) == "OK"
    return chunks[0]


def fill_growing(client, key):
    """A growing filter that says it is full: the next item makes it grow."""
    client("BF.RESERVE", key, "0.01", int(options.capacity), "LAYOUT", "GROWING")
    capacity = client("BF.INFO", key, "CAPACITY")[0]
    iterator = 1
    while True:
        following, data = client("BF.SCANDUMP", key, iterator)
        if following == 0:
            return
        if iterator == 1:
            data = struct.pack("<QQ", capacity, capacity) + data[16:]
        assert client("BF.LOADCHUNK", key, following, data) == "OK"
        iterator = following


def blocking():
    with harness.Server("--proto-max-bulk-len", "1gb", "--client-query-buffer-limit", "2gb") as server:
        client = harness.Client(server.port, timeout=600)
        client("BF.RESERVE", "a", "0.01", int(options.capacity))
        header = client("BF.SCANDUMP", "a", 0)[1]
        size = client("BF.INFO", "a", "SIZE")[0] - 96
        client("DEL", "a")
        part = fill_at_random(client, "BF", "a", header, size)
        fill_at_random(client, "BF", "b", header, size)
        buckets = 1 << (size // 2).bit_length() - 1
        cuckoo = struct.pack("<QQQQHHH", buckets, buckets // 2, 0, 2, 2, 20, 1)
        fill_at_random(client, "CF", "c", cuckoo, 2 * buckets)
        fill_growing(client, "full")
        client("COPY", "full", "grows")
        dump = client("DUMP", "a")
        print(f"{client('MEMORY', 'USAGE', 'a') / 2**20:.0f} MiB of Bloom filter, "
              f"{client('MEMORY', 'USAGE', 'c') / 2**20:.0f} MiB of cuckoo filter, "
              f"{client('MEMORY', 'USAGE', 'full') / 2**20:.0f} MiB of growing filter; milliseconds of the server's "
              f"processor, medians of {options.rounds} (least to most)")
        commands = [
            (("BF.RESERVE", "new", "0.01", 10**9), ("DEL", "new")),
            (("BF.ADD", "a", "x"), None), (("BF.EXISTS", "a", "y"), None),
            (("BF.MADD", "a", *range(1000)), None), (("BF.INFO", "a"), None), (("BF.INFO", "a", "FPR"), None),
            (("BF.MERGE", "new", 2, "a", "b"), ("DEL", "new")), (("BF.MERGE", "a", 1, "b"), None),
            (("BF.ADD", "grows", "x"), ("COPY", "full", "grows", "REPLACE")),
            (("COPY", "a", "new"), ("DEL", "new")), (("DUMP", "a"), None),
            (("RESTORE", "new", 0, dump), ("DEL", "new")), (("DEBUG", "DIGEST-VALUE", "a"), None),
            (("BF.SCANDUMP", "a", 1), None), (("BF.LOADCHUNK", "a", 1 + len(part), part), None),
            (("CF.DEL", "c", "x"), None), (("CF.COMPACT", "c"), None), (("COPY", "c", "new"), ("DEL", "new")),
        ]
        for command, undo in commands:
            times = []
            for _ in range(options.rounds):
                times.append(blocked_milliseconds(server, client, command))
                if undo:
                    client(*undo)
            words = " ".join(str(w) for w in command[:5] if not isinstance(w, bytes))
            print(f"  {words:32} {statistics.median(times):9.2f}   ({min(times):.2f} to {max(times):.2f})", flush=True)
        for name in ("UNLINK", "DEL"):
            times = []
            for _ in range(options.rounds):
                client("COPY", "a", "new")
                times.append(blocked_milliseconds(server, client, (name, "new")))
            print(f"  {name:32} {statistics.median(times):9.2f}   ({min(times):.2f} to {max(times):.2f})")


blocking() if options.blocking else main()
