#!/usr/bin/env python3
"""Promises: no command, alone or in pieces, takes the server past its memory limit, and a cache that evicts still makes
and grows filters.
Would notice: used memory beyond maxmemory after a flood of each command that can allocate, a key left behind by a
refused command, a refusal on a full allkeys-lru server. Every way to allocate is in FLOODS; a command that is
registered as deny-oom and is in none of them fails the test."""
import struct

import harness
from harness import Client, Error, Server

MIB = 1 << 20
MAXMEMORY = 32 * MIB
SLACK = 6 * MIB  # client buffers, and what is granted between two looks at the server's memory
OVER_LIMIT = "ERR operation exceeds bloom object memory limit"


def used(client):
    return int(client("INFO", "memory").split(b"used_memory:")[1].split()[0])


def bloom_header(links, table, options=5):
    link = struct.pack("<QQQddIQB", table, 8 * table, 0, 0.005, 11.027753, 8, table, 0)
    return struct.pack("<QIII", 0, links, options, 2) + links * link


def cuckoo_header(filters, buckets, bucket_size=1, expansion=1):
    return struct.pack("<QQQQHHH", 0, buckets, 0, filters, bucket_size, 20, expansion)


def valkey_object(table):
    """What BF.LOAD takes, see valkey_bloom_test.py."""
    block = struct.pack("<BQI", 1, table, 7) + bytes(32) + bytes(table)
    return struct.pack("<BIddBQQ", 1, 2, 0.01, 0.5, 1, 1, len(block)) + block + struct.pack("<qq", 0, table)


def header_of(client, *reserve):
    client("BF.RESERVE", "model", *reserve)
    header = client("BF.SCANDUMP", "model", 0)[1]
    client("DEL", "model")
    return header


def line_header(client, links):
    """Links of about 1 MiB each, as BF.RESERVE LAYOUT LINE makes them."""
    header = header_of(client, "0.01", 700_000, "LAYOUT", "LINE")
    return struct.pack("<QIII", 0, links, 32, 2) + links * header[20:]


# name: commands that together ask for far more than MAXMEMORY. `client` may make what they need first.
def one_by_one(*command):
    return lambda client: [tuple(str(w).replace("#", str(i)) for w in command) for i in range(120)]


FLOODS = {
    "bf.reserve": one_by_one("BF.RESERVE", "k#", "0.01", 700_000),
    "bf.reserve, small": lambda client: [("BF.RESERVE", f"k{i}", "0.01", 50_000) for i in range(1500)],
    "bf.reserve line": one_by_one("BF.RESERVE", "k#", "0.01", 600_000, "LAYOUT", "LINE"),
    "bf.reserve window": one_by_one("BF.RESERVE", "k#", "0.01", 300_000, "WINDOW", 300_000),
    "bf.reserve growing": one_by_one("BF.RESERVE", "k#", "0.01", 500_000, "LAYOUT", "GROWING"),
    "bf.madd, a growing filter": lambda client: [  # 7 bytes per item, in what a large string leaves
        client("SETRANGE", "large", 27 * MIB, "x"), client("BF.RESERVE", "k", "1e-12", 1000, "LAYOUT", "GROWING")] and [
        ("BF.MADD", "k", *range(i, i + 2500)) for i in range(0, 500_000, 2500)],
    "bf.merge growing": lambda client: [client("BF.RESERVE", "source", "0.01", 500_000, "LAYOUT", "GROWING")] and
    one_by_one("BF.MERGE", "k#", 1, "source")(client),
    "bf.loadchunk growing": lambda client: [("BF.LOADCHUNK", f"k{i}", 1, header) for header in [
        header_of(client, "0.01", 500_000, "LAYOUT", "GROWING")] for i in range(120)],
    "bf.insert": one_by_one("BF.INSERT", "k#", "CAPACITY", 700_000, "ITEMS", "x"),
    "bf.insert, growing": lambda client: [
        ("BF.INSERT", "k", "CAPACITY", 2, "EXPANSION", 10_000, "ITEMS", *range(i, i + 2500))
        for i in range(0, 30_000, 2500)],
    "bf.add": lambda client: [client("CONFIG", "SET", "bf.initial-size", 700_000)] and one_by_one(
        "BF.ADD", "k#", "x")(client),
    "bf.madd": lambda client: [client("CONFIG", "SET", "bf.initial-size", 700_000)] and one_by_one(
        "BF.MADD", "k#", "x", "y")(client),
    "bf.loadchunk": lambda client: [("BF.LOADCHUNK", "k", 1, bloom_header(1000, MIB))],
    "bf.loadchunk, small links": lambda client: [("BF.LOADCHUNK", "k", 1, bloom_header(1000, MIB // 4))],
    "bf.loadchunk, many keys": lambda client: [
        ("BF.LOADCHUNK", f"k{i}", 1, bloom_header(3, MIB // 4)) for i in range(120)],
    "bf.loadchunk line": lambda client: [("BF.LOADCHUNK", "k", 1, line_header(client, 1000))],
    "bf.loadchunk window": lambda client: [("BF.LOADCHUNK", f"k{i}", 1, header) for header in [
        header_of(client, "0.01", 300_000, "WINDOW", 300_000)] for i in range(120)],
    "bf.load": lambda client: [("BF.LOAD", f"k{i}", valkey_object(MIB)) for i in range(60)],
    "bf.merge": lambda client: [client("BF.RESERVE", "source", "0.01", 700_000)] and one_by_one(
        "BF.MERGE", "k#", 1, "source")(client),
    "cf.reserve": one_by_one("CF.RESERVE", "k#", MIB, "BUCKETSIZE", 1),
    "cf.insert, equal items": lambda client: [
        client("CF.RESERVE", "k", MIB, "BUCKETSIZE", 1)] and [("CF.INSERT", "k", "ITEMS", *["x"] * 3000)],
    "cf.insert": one_by_one("CF.INSERT", "k#", "CAPACITY", MIB, "ITEMS", "x"),
    "cf.insertnx": one_by_one("CF.INSERTNX", "k#", "CAPACITY", MIB, "ITEMS", "x"),
    "cf.add": lambda client: [client("CF.RESERVE", "k", MIB, "BUCKETSIZE", 1)] and [("CF.ADD", "k", "x")] * 120,
    "cf.addnx": lambda client: [client("CONFIG", "SET", "bf.cf-initial-size", MIB)] and one_by_one(
        "CF.ADDNX", "k#", "x")(client),
    "cf.loadchunk": lambda client: [("CF.LOADCHUNK", "k", 1, cuckoo_header(1500, MIB))],
    "cf.loadchunk, small": lambda client: [("CF.LOADCHUNK", "k", 1, cuckoo_header(65535, 4096))],
    "cf.loadchunk, growing": lambda client: [("CF.LOADCHUNK", "k", 1, cuckoo_header(16, 4096, expansion=2))],
    "copy": lambda client: [client("BF.RESERVE", "source", "0.01", 700_000)] and one_by_one("COPY", "source", "k#")(
        client),
    "copy cuckoo": lambda client: [client("CF.RESERVE", "source", MIB, "BUCKETSIZE", 1)] and one_by_one(
        "COPY", "source", "k#")(client),
    "restore": lambda client: [client("BF.RESERVE", "source", "0.01", 700_000)] and [
        ("RESTORE", f"k{i}", 0, dump) for dump in [client("DUMP", "source")] for i in range(120)],
    "restore, many links": lambda client: [("RESTORE", "k", 0, dump_of_many_links(client, 100))],
}


def dump_of_many_links(client, links):
    """A dump of a few hundred KiB that unpacks to 100 MiB: the server compresses strings of zeros."""
    client("CONFIG", "SET", "maxmemory", 0)
    assert client("BF.LOADCHUNK", "model", 1, bloom_header(links, MIB)) == "OK"
    dump = client("DUMP", "model")
    client("DEL", "model")
    client("CONFIG", "SET", "maxmemory", MAXMEMORY)
    assert len(dump) < 10 * MIB
    return dump


def ways(commands):
    """The same commands one by one, in a pipeline, in a transaction, in a script."""
    def plainly(client):
        return [client(*command) for command in commands]

    def piped(client):
        return client.many(commands)

    def transaction(client):
        client("MULTI")
        client.many(commands)
        replies = client("EXEC")
        return replies if isinstance(replies, list) else [replies]

    def script(client):
        body = """local out = {}
                  for i, packed in ipairs(ARGV) do out[i] = redis.pcall(unpack(cmsgpack.unpack(packed))) end
                  return #out"""
        return [client("EVAL", body, 0, *map(packed, commands))]

    return {"plainly": plainly, "piped": piped, "transaction": transaction, "script": script}


def packed(command):
    words = [w if isinstance(w, bytes) else str(w).encode() for w in command]
    return struct.pack(">BH", 0xdc, len(words)) + b"".join(struct.pack(">BI", 0xdb, len(w)) + w for w in words)


def fresh(client, maxmemory=MAXMEMORY):
    client("CONFIG", "SET", "maxmemory", 0)
    client("FLUSHALL", "SYNC")
    for name, value in (("initial-size", 100), ("cf-initial-size", 1024), ("max-bytes-per-key", 0)):
        assert client("CONFIG", "SET", "bf." + name, value) == "OK"
    client("CONFIG", "SET", "maxmemory", maxmemory)


def test_no_flood_exceeds_maxmemory():
    with Server() as server:
        client = Client(server.port, timeout=120)
        client("CONFIG", "SET", "bf.cf-max-expansions", 65536)
        covered = {name.split()[0].rstrip(",") for name in FLOODS}
        allocating = {c[0].decode() for c in client("COMMAND") if c[0][:3] in (b"bf.", b"cf.")
                      and any("denyoom" in str(flag) for flag in c[2])}
        assert allocating and allocating <= covered, allocating - covered
        for name, flood in FLOODS.items():
            for way in ("plainly", "piped", "transaction", "script"):
                fresh(client)
                replies = ways(flood(client))[way](client)
                assert used(client) < MAXMEMORY + SLACK, (name, way, used(client))
                refused = [r for r in replies if isinstance(r, Error) or (isinstance(r, list) and any(
                    isinstance(x, Error) for x in r)) or r == 0]
                assert refused or way == "script", (name, way, repr(replies[-1])[:200])
                del replies


def test_a_header_is_summed_before_it_is_believed():
    """Of 38 bytes that promise 64 GiB nothing is allocated, and no key appears."""
    with Server("--maxmemory", "100mb") as server:
        client = server.client()
        before = int(client("INFO", "memory").split(b"used_memory_peak:")[1].split()[0])
        for command, header in (("CF.LOADCHUNK", cuckoo_header(1500, MIB)), ("CF.LOADCHUNK", cuckoo_header(65535, MIB)),
                                ("BF.LOADCHUNK", bloom_header(1000, MIB)),
                                ("BF.LOADCHUNK", line_header(client, 1000)),
                                ("BF.LOADCHUNK", struct.pack("<8sQQd", b"perhapsG", 0, 400, 0.01))):
            assert client(command, "k", 1, header) == Error(OVER_LIMIT), (command, header[:38])
            assert client("EXISTS", "k") == 0
        peak = int(client("INFO", "memory").split(b"used_memory_peak:")[1].split()[0])
        assert peak - before < 4 * MIB, (before, peak)


def fill(client):
    """A cache that is full for good: more strings than maxmemory holds."""
    for first in range(0, 20_000, 1000):
        client.many([("SET", f"cached:{i}", "x" * 4000) for i in range(first, first + 1000)])
    assert used(client) > MAXMEMORY - 2 * MIB, used(client)


def test_a_full_cache_makes_and_grows_filters():
    """Under every policy that evicts, at most half of maxmemory per key, and the server evicts."""
    with Server() as server:
        client = Client(server.port, timeout=120)
        for policy in ("allkeys-lru", "allkeys-lfu", "allkeys-random"):
            client("CONFIG", "SET", "maxmemory-policy", policy)
            fresh(client)
            fill(client)
            assert client("BF.RESERVE", "new", "0.001", 1_000_000) == "OK"
            assert client("CF.RESERVE", "cuckoo", 1_000_000) == "OK"
            # Filters that are grown in the full cache take every item, whatever else is evicted for them.
            client("BF.RESERVE", "grows", "0.01", 1000)
            client("CF.RESERVE", "grows too", 1000, "EXPANSION", 2)
            client("BF.RESERVE", "in place", "0.01", 1000, "LAYOUT", "GROWING")
            for first in range(0, 200_000, 10_000):
                for command, key in (("BF.INSERT", "grows"), ("CF.INSERT", "grows too"), ("BF.INSERT", "in place")):
                    replies = client(command, key, "ITEMS", *range(first, first + 10_000))
                    assert not any(isinstance(r, Error) or r == -1 for r in replies), (policy, command, first)
            assert client("BF.RESERVE", "too large", "0.01", 40_000_000) == Error(OVER_LIMIT)
            assert used(client) < MAXMEMORY + SLACK
        # A transaction cannot be interrupted to evict: all it takes is bounded.
        client("MULTI")
        client.many([("BF.RESERVE", f"big{i}", "0.01", 8_000_000) for i in range(20)])
        replies = client("EXEC")
        assert replies[0] == "OK" and replies[-1] == Error(OVER_LIMIT)
        peak = int(client("INFO", "memory").split(b"used_memory_peak:")[1].split()[0])
        assert peak < 1.5 * MAXMEMORY + SLACK, peak
        # noeviction again: what is free now.
        client("CONFIG", "SET", "maxmemory-policy", "noeviction")
        fresh(client)
        fill(client)
        assert isinstance(client("BF.RESERVE", "new", "0.001", 1_000_000), Error)


def test_max_scaled_capacity_knows_free_memory():
    with Server("--maxmemory", "64mb") as server:
        client = server.client()
        client("BF.RESERVE", "k", "0.01", 1000)
        most = client("BF.INFO", "k", "MAXSCALEDCAPACITY")[0]
        assert 1_000_000 < most < 64_000_000, most
        client("CF.RESERVE", "other", 32 * MIB)
        assert client("BF.INFO", "k", "MAXSCALEDCAPACITY")[0] < most
        # VALIDATESCALETO believes the same figure.
        over = Error("ERR provided VALIDATESCALETO causes bloom object to exceed memory limit")
        assert client("BF.INSERT", "v", "CAPACITY", 1000, "VALIDATESCALETO", most, "ITEMS", "x") == over


def resident(client):
    return int(client("INFO", "memory").split(b"used_memory_rss:")[1].split()[0])


def test_an_empty_filter_takes_no_pages():
    """Tables come zeroed from the system, page by page as they are used: at creation, and when a filter grows."""
    with Server() as server:
        client = server.client()
        client("BF.RESERVE", "grows", "0.01", 2, "EXPANSION", 20_000)
        client("BF.MADD", "grows", *range(30_000))
        before = resident(client)
        for command in (("BF.RESERVE", "bloom", "0.01", 200_000_000),
                        ("BF.RESERVE", "line", "0.01", 200_000_000, "LAYOUT", "LINE"),
                        ("BF.RESERVE", "window", "0.01", 50_000_000, "WINDOW", 50_000_000),
                        ("BF.RESERVE", "growing", "0.01", 100_000_000, "LAYOUT", "GROWING"),
                        ("CF.RESERVE", "cuckoo", 200_000_000)):
            assert client(*command) == "OK", command
        replies = client("BF.MADD", "grows", *range(30_000, 41_000))
        assert client("BF.INFO", "grows", "SIZE")[0] > 400 * MIB and not any(isinstance(r, Error) for r in replies)
        # At most 1000 items are in the link of 1.2 GB that was added, each in 12 pages.
        assert resident(client) - before < 64 * MIB, (before, resident(client))
        client("DEL", "grows")
        assert client("BF.EXISTS", "bloom", "x") == 0


def test_no_memory_is_an_answer():
    """An allocation that the system refuses does not end the server."""
    with Server(address_space=2 << 30) as server:
        client = server.client()
        error = Error("ERR Insufficient memory to create filter")
        assert client("BF.RESERVE", "k", "0.000001", 1_000_000_000) == error
        assert client("CF.RESERVE", "k", 1 << 30, "BUCKETSIZE", 2) in ("OK", error)
        assert client("CF.RESERVE", "k2", 1 << 30, "BUCKETSIZE", 2) == error
        assert client("PING") == "PONG"


if __name__ == "__main__":
    harness.run(globals())
