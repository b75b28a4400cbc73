#!/usr/bin/env python3
"""What the Redis module costs and what its batches gain: `make bench-redis`.

One server with the module and a filter of four times the L3 cache. Rounds of the ways to be compared alternate in one
run, and the best round of each counts; items a second of the server's own processor time, so that a busy machine or a
slow client changes little.

  redis.py MODULE [--capacity 1e8] [--items 4e7] [--rounds 5]
"""
import argparse
import os
import random
import re
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
RANGE = int(2 * options.items)  # of the keys asked for some 40 % are there


def processor_seconds(pid):
    with open(f"/proc/{pid}/schedstat") as f:
        return int(f.read().split()[0]) * 1e-9


def fill(server, key, items):
    """Random keys, in batches of 400, by redis-benchmark: twelve digits each."""
    words = ["__rand_int__"] * 400
    subprocess.run(["redis-benchmark", "-p", str(server.port), "-r", str(RANGE), "-n", str(int(items / 400)), "-c",
                    "4", "-P", "4", "-q", "BF.MADD", key, *words], check=True, stdout=subprocess.DEVNULL)


def batches(key, seed, count):
    """Commands as they go over the wire; half of the keys are of the kind that was put in."""
    rng = random.Random(seed)
    return [harness.Client.pack(["BF.MEXISTS", key] + [f"{rng.randrange(RANGE):012d}" for _ in range(BATCH)])
            for _ in range(count)]


def ask(client, commands):
    """Pipelined; every answer has the same length, so it need not be parsed."""
    size = len(b"*%d\r\n" % BATCH) + 4 * BATCH
    for i in range(0, len(commands), PIPELINE):
        part = commands[i:i + PIPELINE]
        client.socket.sendall(b"".join(part))
        client.file.read(size * len(part))


def best(server, client, key, rounds, ways):
    """Items a second of the server's processor, for each of the ways, which alternate."""
    found = {}
    for r in range(rounds):
        for name, (target, prepare) in ways.items():
            prepare()
            commands = batches(target, 1000 * r + len(name), 640)
            ask(client, commands[:64])
            before = processor_seconds(server.process.pid)
            ask(client, commands[64:])
            spent = processor_seconds(server.process.pid) - before
            found[name] = max(found.get(name, 0), (len(commands) - 64) * BATCH / spent)
    return found


def throughput(server, pipeline, command, requests):
    command = ["redis-benchmark", "-p", str(server.port), "-r", "100000000", "-n", str(requests), "-c", "50", "-P",
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
        fill(server, "compatible", options.items)
        ways = {"prefetch off": ("compatible", lambda: prefetch("no")),
                "prefetch on": ("compatible", lambda: prefetch("yes"))}
        if not isinstance(client("BF.RESERVE", "line", "0.01", int(options.capacity), "LAYOUT", "LINE"), harness.Error):
            fill(server, "line", options.items)
            ways["LAYOUT LINE"] = ("line", lambda: prefetch("yes"))
        print(f"{client('BF.CARD', 'compatible'):,} items in {client('BF.INFO', 'compatible', 'SIZE')[0]:,} bytes, "
              f"filled in {time.monotonic() - start:.0f} s")
        found = best(server, client, "compatible", options.rounds, ways)
        print(f"\nBF.MEXISTS of {BATCH} items, pipeline {PIPELINE}: items a second of the server's processor")
        for name, rate in found.items():
            print(f"  {name:14} {rate:12,.0f}   {rate / found['prefetch off']:.2f}")

        print("\nrequests a second, 50 connections; share of PING in the same round, best of the rounds")
        client("BF.RESERVE", "single", "0.01", 1_000_000)
        for pipeline, requests in ((1, 40_000), (64, 400_000)):
            shares = {}
            for _ in range(options.rounds):
                ping = throughput(server, pipeline, ["PING"], requests)
                for name in ("BF.ADD", "BF.EXISTS"):
                    share = throughput(server, pipeline, [name, "single", "__rand_int__"], requests) / ping
                    shares[name] = max(shares.get(name, 0), share)
            for name, share in shares.items():
                print(f"  pipeline {pipeline:2}  {name:10} {share:.2f}")


main()
