#!/usr/bin/env python3
"""Promises: keys, streams, append-only files and settings of valkey-bloom are taken over, and with bf-compat valkey its
clients get its replies.
Would notice: a dump or BF.LOAD payload, made here from the description of the format by a second implementation of the
hash, whose items are not found or whose bits are not what we write; a reply or an error that differs. valkey-bloom
itself is not needed."""
import math
import struct

import harness
from harness import Client, Error, Server
from hostile_test import number, real, sealed, text, type_id
from persistence_test import caught_up, replicate
from replay_test import replayed

MASK = 2**64 - 1
FIXED = bytes([89, 15, 245, 34, 234, 120, 17, 218, 167, 20, 216, 9, 59, 62, 123, 217, 29, 137, 138, 115, 62, 152, 136,
               135, 48, 127, 151, 205, 40, 7, 51, 131])
VALKEY = ("bf-compat", "valkey")


def sip13(key, data):
    """SipHash-1-3, 64 bits."""
    k0, k1 = struct.unpack("<QQ", key)
    v = [k0 ^ 0x736f6d6570736575, k1 ^ 0x646f72616e646f6d, k0 ^ 0x6c7967656e657261, k1 ^ 0x7465646279746573]

    def rotate(x, b):
        return (x << b | x >> 64 - b) & MASK

    def turn():
        v[0] = (v[0] + v[1]) & MASK
        v[1] = rotate(v[1], 13) ^ v[0]
        v[0] = rotate(v[0], 32)
        v[2] = (v[2] + v[3]) & MASK
        v[3] = rotate(v[3], 16) ^ v[2]
        v[0] = (v[0] + v[3]) & MASK
        v[3] = rotate(v[3], 21) ^ v[0]
        v[2] = (v[2] + v[1]) & MASK
        v[1] = rotate(v[1], 17) ^ v[2]
        v[2] = rotate(v[2], 32)

    tail = data[len(data) // 8 * 8:]
    words = list(struct.unpack(f"<{len(data) // 8}Q", data[:len(data) // 8 * 8]))
    words.append(int.from_bytes(tail, "little") | (len(data) & 255) << 56)
    for word in words:
        v[3] ^= word
        turn()
        v[0] ^= word
    v[2] ^= 255
    for _ in range(3):
        turn()
    return v[0] ^ v[1] ^ v[2] ^ v[3]


class Link:
    def __init__(self, capacity, rate, seed):
        self.capacity, self.seed, self.items = capacity, seed, 0
        self.bytes = math.ceil(capacity * math.log(rate) / (-8.0 * (math.log(2) * math.log(2))))
        self.hashes = max(1, math.floor(8 * self.bytes / capacity * math.log(2) + 0.5))
        self.bits = bytearray(self.bytes)

    def places(self, item):
        message = struct.pack("<Q", len(item)) + item
        a, b = sip13(self.seed[:16], message), sip13(self.seed[16:], message)
        for i in range(self.hashes):
            h = (a, b)[i] if i < 2 else (a + i * b & MASK) % 0xffffffffffffffc5
            yield h % (8 * self.bytes)

    def has(self, item):
        return all(self.bits[p // 8] >> p % 8 & 1 for p in self.places(item))

    def add(self, item):
        for p in self.places(item):
            self.bits[p // 8] |= 1 << p % 8
        self.items += 1

    def block(self):
        return struct.pack("<BQI", 1, self.bytes, self.hashes) + self.seed + bytes(self.bits)


class Filter:
    """What valkey-bloom would hold."""

    def __init__(self, rate, capacity, expansion=2, tightening=0.5, seed=FIXED):
        self.rate, self.expansion, self.tightening, self.seed = rate, expansion, tightening, seed
        self.links = [Link(capacity, rate, seed)]

    def add(self, item):
        if any(link.has(item) for link in self.links):
            return 0
        newest = self.links[-1]
        if newest.items == newest.capacity:
            rate = self.rate * self.tightening ** len(self.links)
            newest = Link(newest.capacity * self.expansion, rate, self.seed)
            self.links.append(newest)
        newest.add(item)
        return 1

    def dump(self):
        out = type_id("bloomfltr", 1) + number(len(self.links)) + number(self.expansion) + real(self.rate)
        out += real(self.tightening) + number(self.seed != FIXED)
        for link in self.links:
            out += number(link.capacity)
            if link is self.links[-1]:
                out += number(link.items)
            out += text(link.block())
        return sealed(out + b"\0")

    def load(self):
        out = struct.pack("<BIddBQ", 1, self.expansion, self.rate, self.tightening, self.seed != FIXED,
                          len(self.links))
        for link in self.links:
            out += struct.pack("<Q", len(link.block())) + link.block() + struct.pack("<qq", link.items, link.capacity)
        return out


def items(count):
    return [b"item:%d" % i for i in range(count)] + [b"", b"x" * 1000, bytes(range(256))]


def filled(count, **numbers):
    model = Filter(**numbers)
    for item in items(count):
        model.add(item)
    return model


def test_hash():
    """The second implementation against the vectors of the paper's authors for SipHash-1-3, key 00 01 .. 0f."""
    key = bytes(range(16))
    assert sip13(key, b"") == 0xabac0158050fc4dc
    assert sip13(key, bytes(range(15))) == sip13(key, bytes(range(15)))  # odd lengths are read to the end
    assert len({sip13(key, bytes(n)) for n in range(64)}) == 64


def test_dumps_and_loads():
    seeds = (FIXED, bytes(range(32)))
    with Server("--rdbcompression", "no") as server:  # so that dumps can be compared byte by byte
        client = server.client()
        for i, numbers in enumerate((dict(rate=0.01, capacity=100), dict(rate=0.001, capacity=30, expansion=3),
                                     dict(rate=0.2, capacity=50, tightening=0.8), dict(rate=0.5, capacity=1000),
                                     dict(rate=1e-9, capacity=1000, expansion=0))):
            for seed in seeds:
                model = filled(300, seed=seed, **numbers)
                key = f"k{i}{seed[0]}"
                assert client("RESTORE", key, 0, model.dump()) == "OK", numbers
                assert client("BF.LOAD", key + "L", model.load()) == "OK", numbers
                assert client("TYPE", key) == "bloomfltr"
                assert client("DEBUG", "DIGEST-VALUE", key) == client("DEBUG", "DIGEST-VALUE", key + "L")
                assert all(client("BF.MEXISTS", key, *items(300)))
                assert client("BF.CARD", key) == sum(link.items for link in model.links)
                # The same items make the same bits, also where it grows.
                more = [b"more:%d" % j for j in range(200)]
                if numbers.get("expansion") != 0:
                    assert client("BF.MADD", key, *more) == [model.add(item) for item in more], numbers
                restored = model.dump()
                assert client("DUMP", key)[:-10] == restored[:-10], numbers  # but for the version and the checksum
        # Through a rewritten append-only file and back.
        assert client("DEBUG", "RELOAD") == "OK"
        digest = client("DEBUG", "DIGEST")
        client("CONFIG", "SET", "aof-use-rdb-preamble", "no")
        client("CONFIG", "SET", "appendonly", "yes")
        assert harness.wait_for(lambda: b"aof_rewrite_in_progress:0" in client("INFO", "persistence"))
        assert client("DEBUG", "LOADAOF") == "OK" and client("DEBUG", "DIGEST") == digest


def test_damage():
    good = filled(10, rate=0.01, capacity=100)
    with Server() as server:
        client = server.client()
        data, dump = good.load(), good.dump()
        assert client("BF.LOAD", "k", data) == "OK"
        assert client("BF.LOAD", "k", data) == Error("BUSYKEY Target key name already exists.")
        client("SET", "s", "x")
        assert client("BF.LOAD", "s", data).startswith("WRONGTYPE")
        client("DEL", "k")
        failed = Error("ERR bloom object decoding failed")
        assert client("BF.LOAD", "k", b"") == failed
        assert client("BF.LOAD", "k", b"\2" + data[1:]) == Error(failed + ". Unsupported version")
        for damaged in (data[:-1], data + b"x", data[:20], data[:22] + bytes(8) + data[30:],
                        data[:22] + b"\xff" * 8 + data[30:], data[:30] + b"\xff" * 8 + data[38:],
                        data[:38] + b"\2" + data[39:], data[:47] + bytes(4) + data[51:], data[:51] + b"x" + data[52:],
                        data[:-8] + bytes(8)):
            assert client("BF.LOAD", "k", damaged) == failed, damaged[:60]
            assert client("EXISTS", "k") == 0
        assert client("BF.LOAD", "k", data[:5] + bytes(8) + data[13:]) == Error("ERR (0 < error rate range < 1)")
        # Every byte of the numbers of a dump, changed: refused, or a filter that answers.
        for at in range(10, 90):
            for value in (0, 1, 255):
                damaged = dump[:-10][:at] + bytes([value]) + dump[:-10][at + 1:]
                client("RESTORE", "k", 0, sealed(damaged), "REPLACE")
                client("BF.MEXISTS", "k", "x", "y")
                client("BF.MADD", "k", "x")
        assert client("PING") == "PONG"
        # Chunks are RedisBloom's.
        client("BF.LOAD", "v", data)
        assert client("BF.SCANDUMP", "v", 0).startswith("WRONGTYPE")
        assert client("BF.LOADCHUNK", "v", 10, "x").startswith("WRONGTYPE")
        assert client("BF.MERGE", "v", 1, "v").startswith("WRONGTYPE")


def test_stream():
    """What a valkey-bloom primary sends when a filter is made, and its append-only file."""
    seed = bytes(range(100, 132))
    model = Filter(0.01, 100, expansion=3, tightening=0.25, seed=seed)
    for item in items(300):
        model.add(item)
    create = ("BF.INSERT", "k", "CAPACITY", 100, "ERROR", "0.01", "TIGHTENING", "0.25", "SEED", seed, "EXPANSION", 3)
    commands = [("SELECT", "0"), (*create, "ITEMS", *items(300)[:5]), ("BF.MADD", "k", *items(300)),
                ("BF.INSERT", "empty", *create[2:10], "NONSCALING"), ("BF.LOAD", "loaded", model.load())]
    for client in replayed(b"".join(map(Client.pack, commands))):
        assert client("DBSIZE") == 3
        assert client("DUMP", "k")[:-10] == model.dump()[:-10]
        assert client("DEBUG", "DIGEST-VALUE", "k") == client("DEBUG", "DIGEST-VALUE", "loaded")
        assert client("BF.INFO", "empty") == ["Capacity", 100, "Size", 384, "Number of filters", 1,
                                              "Number of items inserted", 0, "Expansion rate", None]


def test_settings_of_its_configuration_file():
    options = {"bloom-capacity": "1000", "bloom-expansion": "4", "bloom-fp-rate": "0.001",
               "bloom-tightening-ratio": "0.75", "bloom-memory-usage-limit": "1000000", "bloom-use-random-seed": "no",
               "bloom-defrag-enabled": "no"}
    words = [word for name, value in options.items() for word in (f"--bf.{name}", value)]
    # In the configuration file, as arguments of the module, and with CONFIG SET.
    with Server(*words) as server:  # without bf-compat: it starts, and makes RedisBloom's filters
        client = server.client()
        client("BF.ADD", "k", "x")
        assert client("TYPE", "k") == "MBbloom--"
    pairs = [word for pair in options.items() for word in pair]
    plain = ("--rdbcompression", "no")
    for server in (Server(*plain, *words, "--bf.compat", "valkey"), Server(*plain, module_args=(*VALKEY, *pairs))):
        with server:
            client = server.client()
            for name, value in options.items():
                assert client("CONFIG", "GET", "bf." + name) == [f"bf.{name}".encode(), value.encode()]
            assert client("BF.ADD", "k", "x") == 1 and client("TYPE", "k") == "bloomfltr"
            info = dict(zip(*[iter(client("BF.INFO", "k"))] * 2))
            assert (info["Capacity"], info["Expansion rate"], info["Error rate"], info["Tightening ratio"]) == (
                1000, 4, b"0.001", b"0.75"), info
            model = Filter(0.001, 1000, 4, 0.75)
            model.add(b"x")
            assert client("DUMP", "k")[:-10] == model.dump()[:-10]
            assert client("BF.RESERVE", "large", "0.001", 1_000_000) == Error(
                "ERR operation exceeds bloom object memory limit")


def test_replies():
    with Server(module_args=VALKEY) as server:
        for client in (server.client(2), server.client(3)):
            client("FLUSHALL")
            assert client("BF.ADD", "k", "x") == 1 and client("BF.ADD", "k", "x") == 0  # integers in RESP3 too
            assert client("BF.MADD", "k", "x", "y") == [0, 1] and client("BF.MEXISTS", "k", "y", "z") == [1, 0]
            assert client("BF.EXISTS", "k", "y") == 1 and client("BF.CARD", "k") == 2
            assert client("BF.INSERT", "made") == [] and client("TYPE", "made") == "bloomfltr"
            assert client("BF.INFO", "k", "CAPACITY") == 100 and client("BF.INFO", "k", "ITEMS") == 2
            assert client("BF.INFO", "k", "MAXSCALEDCAPACITY") == 26214300
            info = client("BF.INFO", "k")
            assert info[::2] == ["Capacity", "Size", "Number of filters", "Number of items inserted", "Error rate",
                                 "Expansion rate", "Tightening ratio", "Max scaled capacity"], info
            assert client("BF.RESERVE", "n", "1e-7", 2, "NONSCALING") == "OK"
            assert client("BF.MADD", "n", 1, 2, 3, 4) == [1, 1, Error("ERR non scaling filter is full")]
            assert client("BF.INFO", "n", "EXPANSION") is None and len(client("BF.INFO", "n")) == 12
            client("SET", "s", "x")
            for command in (("BF.EXISTS", "s", "x"), ("BF.MEXISTS", "s", "x"), ("BF.ADD", "s", "x")):
                assert client(*command).startswith("WRONGTYPE"), command
            for words, error in (
                    ("BF.INFO none", "ERR not found"), ("BF.INFO k foo", "ERR invalid information value"),
                    ("BF.INFO n TIGHTENING", "ERR invalid information value"),
                    ("BF.INSERT k HELLO WORLD", "ERR unknown argument received"),
                    ("BF.INSERT k EXPANSION 0.99 ITEMS x", "ERR bad expansion"),
                    ("BF.INSERT k ERROR 2 ITEMS x", "ERR (0 < error rate range < 1)"),
                    ("BF.INSERT k TIGHTENING 2 ITEMS x", "ERR (0 < tightening ratio range < 1)"),
                    ("BF.INSERT k SEED x ITEMS x", "ERR invalid seed"),
                    ("BF.INSERT k CAPACITY 0 ITEMS x", "ERR (capacity should be larger than 0)"),
                    ("BF.INSERT none NOCREATE ITEMS x", "ERR not found"),
                    ("BF.INSERT v NONSCALING VALIDATESCALETO 9 ITEMS x",
                     "ERR cannot use NONSCALING and VALIDATESCALETO options together"),
                    ("BF.INSERT v VALIDATESCALETO 26214301 ITEMS x",
                     "ERR provided VALIDATESCALETO causes bloom object to exceed memory limit"),
                    ("BF.INSERT v EXPANSION 1 VALIDATESCALETO 26214301 ITEMS x",
                     "ERR provided VALIDATESCALETO causes false positive to degrade to 0"),
                    ("BF.RESERVE r x 100", "ERR bad error rate"), ("BF.RESERVE r 0.01 x", "ERR bad capacity"),
                    ("BF.RESERVE r 0.01 -1", "ERR bad capacity"), ("BF.RESERVE k 0.01 10", "ERR item exists"),
                    ("BF.RESERVE r 0.01 0", "ERR (capacity should be larger than 0)"),
                    ("BF.RESERVE r 0.01 10 FOO", "ERROR"), ("BF.RESERVE r 0.01 10 EXPANSION 0", "ERR bad expansion"),
                    ("BF.RESERVE r 0.01 1 NONSCALING EXPANSION 1",
                     "ERR wrong number of arguments for 'BF.RESERVE' command"),
                    ("BF.INSERT k ITEMS", "ERR wrong number of arguments for 'BF.INSERT' command")):
                assert client(*words.split()) == Error(error), (words, client(*words.split()))
            assert client("BF.INSERT", "v", "VALIDATESCALETO", 26214300, "ITEMS", "x") == [1]
        metrics = server.client()("INFO", "bf").decode()
        assert "bf_bloom_num_objects:4" in metrics and "bf_bloom_total_memory_bytes:" in metrics, metrics


def test_how_far_filters_grow():
    """The limits that valkey-bloom's own tests name, to the item."""
    with Server(module_args=VALKEY) as server:
        client = server.client()
        assert client("BF.RESERVE", "k", "0.001", 10_000, "EXPANSION", 2) == "OK"
        assert client("BF.INFO", "k", "MAXSCALEDCAPACITY") == 20_470_000
        client("BF.MADD", "k", *range(40_000))
        assert client("BF.INFO", "k", "FILTERS") == 3 and client("BF.INFO", "k", "MAXSCALEDCAPACITY") == 20_470_000
        over = Error("ERR provided VALIDATESCALETO causes bloom object to exceed memory limit")
        assert client("BF.INSERT", "m", "ERROR", "0.00000001", "VALIDATESCALETO", 13_107_101) == over
        assert client("BF.INSERT", "m", "ERROR", "0.00000001", "VALIDATESCALETO", 13_107_100) == []
        assert client("BF.INFO", "m", "MAXSCALEDCAPACITY") == 13_107_100
        zero = Error("ERR provided VALIDATESCALETO causes false positive to degrade to 0")
        assert client("BF.INSERT", "f", "EXPANSION", 1, "VALIDATESCALETO", 101_601) == zero
        assert client("BF.INSERT", "f", "EXPANSION", 1, "VALIDATESCALETO", 101_600) == []
        assert client("BF.INFO", "f", "MAXSCALEDCAPACITY") == 101_600
        assert client("CONFIG", "SET", "bf.bloom-memory-usage-limit", 1000) == "OK"
        client("BF.RESERVE", "s", "0.001", 100, "EXPANSION", 10)
        replies = client("BF.MADD", "s", *range(200))
        assert replies[-1] == Error("ERR operation exceeds bloom object memory limit") and len(replies) < 110
        # A key whose next link would have a rate of 0.
        tiny = Filter(1e-300, 1, expansion=1, tightening=1e-9)
        tiny.add(b"x")
        assert client("BF.LOAD", "t", tiny.load()) == "OK"
        assert client("BF.ADD", "t", "y") == Error("ERR false positive degrades to 0 on scale out")


def test_replicas_have_the_same_seed():
    with Server(module_args=VALKEY) as primary, Server() as replica:
        client = primary.client()
        behind = replicate(primary, replica)
        client("BF.MADD", "a", *range(500))
        client("BF.RESERVE", "b", "0.01", 10, "NONSCALING")
        client("BF.RESERVE", "c", "0.01", 10, "EXPANSION", 5)
        client("BF.INSERT", "d", "CAPACITY", 5, "NONSCALING", "ITEMS", *range(9))
        client("BF.MADD", "c", *range(500))
        assert caught_up(client, behind)
        for key in "abcd":
            assert client("TYPE", key) == behind("TYPE", key) == "bloomfltr"
            assert client("DEBUG", "DIGEST-VALUE", key) == behind("DEBUG", "DIGEST-VALUE", key), key
        assert client("DUMP", "a") != client("DUMP", "c")


if __name__ == "__main__":
    harness.run(globals())
