#!/usr/bin/env python3
"""What the Redis module costs and what its batches gain: `make bench-redis`.

One server with the module and a filter of four times the L3 cache. The ways to be compared alternate, in rounds; each
is compared with the first way of its own round, and the median of the rounds counts. Items a second of the server's own
processor time, so that a busy machine or a slow client changes little.

  redis.py MODULE [--capacity 1e8] [--items 4e7] [--rounds 5]
"""
import argparse
import os
import random
import re
import statistics
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "test", "redis"))
parser = argparse.ArgumentParser()
parser.add_argument("module")
parser.add_argument("--capacity", type=float, default=1e8)
parser.add_argument("--items", type=float, default=4e7)
parser.add_argument("--rounds", type=int, default=5)
options = parser.parse_args()
os.environ["PERHAPS_REDIS_MODULE"] = os.path.abspath(options.module)
import harness  # noqa: E402  (it reads the environment)

BATCH, PIPELINE = 100, 16
SINGLE = 1_000_000  # capacity of the filter for single items, and how many different ones there are
RANGE = int(2 * options.items)  # the even ones are there: half of the keys that are asked for


def processor_seconds(pid):
    with open(f"/proc/{pid}/schedstat") as f:
        return int(f.read().split()[0]) * 1e-9


def fill(client, key, items):
    """Every second number, twelve digits each, in batches of 1000, ten of them on the way."""
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
    """Commands as they go over the wire; half of the keys are of the kind that was put in."""
    rng = random.Random(1)
    return [harness.Client.pack(["BF.MEXISTS", key] + [f"{rng.randrange(RANGE):012d}" for _ in range(BATCH)])
            for _ in range(count)]


def ask(client, commands):
    """Pipelined, the next commands on their way while the last are answered, so that the server never waits; every
    answer has the same length, so it need not be parsed."""
    size = len(b"*%d\r\n" % BATCH) + 4 * BATCH
    due = 0
    for i in range(0, len(commands), PIPELINE):
        part = commands[i:i + PIPELINE]
        client.socket.sendall(b"".join(part))
        client.file.read(due)
        due = size * len(part)
    client.file.read(due)


def measure(server, client, rounds, ways):
    """Items a second of the server's processor, for each of the ways in each round."""
    # More lines than any cache holds, made beforehand: a server that waits for them would begin every round cold.
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
        print(f"\nBF.MEXISTS of {BATCH} items, pipeline {PIPELINE}: items a second of the server's processor, "
              f"medians of {options.rounds} rounds")
        for name, rates in found.items():
            ratios = [rate / first for rate, first in zip(rates, found["prefetch off"])]
            print(f"  {name:14} {statistics.median(rates):12,.0f}   {statistics.median(ratios):.2f}  "
                  f"({min(ratios):.2f} to {max(ratios):.2f})")

        print("\nrequests a second, 50 connections; share of PING in the same round, medians")
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


main()
