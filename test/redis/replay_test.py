#!/usr/bin/env python3
"""Promises: what a RedisBloom primary or append-only file says is carried out whole, whichever version wrote it: its
ranges, its cap on rates and its abbreviated words.
Would notice: an error reply to a command that the writer had accepted, a filter whose numbers differ from the writer's,
an item that is gone, an append-only file and a replication stream that end in different bytes. The commands are random,
from a grammar of what RedisBloom 2.8 and 8.8 accept; the expected numbers come from a model of their sizing. Seed and
number of commands are printed."""
import math
import os
import random
import socket
import struct
import threading

import harness
from harness import Client, Server

SEED = int(os.environ.get("PERHAPS_SEED", 7))
COMMANDS = 15_000  # for each of the two versions
LARGE = 1 << 20  # tables from here on are compared by their numbers, not byte by byte


class Primary:
    """Speaks the primary's side of replication: an empty RDB file, then the commands."""

    def __init__(self, stream):
        self.stream = stream
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.done = threading.Event()
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def serve(self):
        self.connection, _ = self.listener.accept()  # stays open until the test ends
        connection = self.connection
        reader = connection.makefile("rb")

        def command():
            count = int(reader.readline()[1:])
            return [reader.read(int(reader.readline()[1:]) + 2)[:-2] for _ in range(count)]

        while True:
            words = command()
            if words[0].upper() == b"PSYNC":
                break
            connection.sendall(b"+PONG\r\n" if words[0].upper() == b"PING" else b"+OK\r\n")
        rdb = b"REDIS0009\xff" + bytes(8)
        connection.sendall(b"+FULLRESYNC " + b"a" * 40 + b" 0\r\n$%d\r\n" % len(rdb) + rdb)
        connection.sendall(self.stream + Client.pack(("REPLCONF", "GETACK", "*")))
        while True:
            words = command()
            if words[:2] == [b"REPLCONF", b"ACK"] and int(words[2]) >= len(self.stream):
                self.done.set()
                return

    def close(self):
        self.connection.close()
        self.listener.close()


def by_file(stream, *options):
    server = Server("--appendonly", "yes", "--aof-load-truncated", "no", *options)
    with open(os.path.join(server.folder, "appendonly.aof"), "wb") as file:
        file.write(stream)
    return server


def replayed(stream, *module_args):
    """Both ways, as clients of servers that have carried out the stream."""
    file = by_file(stream)
    file.module_args = module_args
    with file, Server(module_args=module_args) as replica:
        primary = Primary(stream)
        client = Client(replica.port, timeout=120)
        assert client("REPLICAOF", "127.0.0.1", primary.port) == "OK"
        assert primary.done.wait(120), "the replica did not carry out the whole stream"
        for server in (file, replica):
            assert "CRITICAL" not in server.log(), [
                line for line in server.log().splitlines() if "CRITICAL" in line][:3]
        yield Client(file.port, timeout=120)
        yield client
        primary.close()


def bloom_link(entries, error):
    bpe = abs(math.log(error) / 0.480453013918201)
    bits = max(1, int(entries * bpe))
    return entries, (bits + 63) // 64 * 64, error, math.ceil(0.693147180559945 * bpe)


class Bloom:
    def __init__(self, version, rate=0.01, capacity=100, expansion=2, fixed=False):
        rate = min(rate, 0.25) if version == 8 else rate
        fixed = fixed or expansion == 0
        self.first = bloom_link(capacity, rate if fixed else rate / 2)
        self.options = 13 if fixed else 5
        self.growth = expansion % 2**32
        self.items = set()

    def check(self, client, key):
        header = client("BF.SCANDUMP", key, 0)[1]
        size, links, options, growth = struct.unpack_from("<QIII", header)
        _, bits, _, error, _, hashes, entries, _ = struct.unpack_from("<QQQddIQB", header, 20)
        found = (options, growth, (entries, bits, error, hashes))
        assert found == (self.options, self.growth, self.first), (key, found, vars(self))
        if self.options == 13 and len(self.items) > entries:
            return
        answers = client("BF.MEXISTS", key, *self.items) if self.items else []
        assert all(answers), key
        assert size <= len(self.items)


class Cuckoo:
    def __init__(self, capacity=1024, bucket_size=2, iterations=20, expansion=1):
        power = lambda n: 1 << max(0, n - 1).bit_length()
        self.numbers = (power(max(1, capacity // bucket_size)), bucket_size, iterations,
                        power(expansion) if expansion else 0)
        self.items = {}

    def add(self, item):
        self.items[item] = self.items.get(item, 0) + 1

    def check(self, client, key):
        info = client("CF.INFO", key)
        found = dict(zip(info[::2], info[1::2]))
        assert (found["Number of buckets"], found["Bucket size"], found["Max iterations"],
                found["Expansion rate"]) == self.numbers, (key, found, self.numbers)
        if self.numbers[3] == 0:
            return  # a filter that never grows may have refused some
        present = [item for item, count in self.items.items() if count > 0]
        assert all(client("CF.MEXISTS", key, *present) if present else []), key


class Writer:
    """Commands that a version accepts, and what they make."""

    def __init__(self, version, seed):
        self.version = version
        self.random = random.Random(seed)
        self.keys = {}
        self.large = 0

    def cased(self, word):
        r = self.random
        return "".join(c.upper() if r.random() < 0.7 else c.lower() for c in word)

    def abbreviated(self, word, least):
        return self.cased(word[:self.random.randrange(least, len(word) + 1)])

    def rate(self):
        text = self.random.choice(["0.01", "1e-3", "0.00001", "0.2", "0.25", "0.26", "0.5", "5e-1", "0.75", "0.99"])
        return text, float(text)

    def capacity(self, least):
        r = self.random
        if self.large == 0 or self.large < 6 and r.random() < 0.01:
            self.large += 1
            return r.randrange(2**30 + 1, 3 * 10**9) if self.version == 2 else r.randrange(10**8, 2**30 + 1)
        return r.randrange(least, 2000)

    def expansion(self):
        choices = [1, 2, 3, 4, 10, 100] + ([40_000] if self.version == 2 else [0, 32768])
        return self.random.choice(choices)

    def items(self):
        r = self.random
        return [str(r.randrange(5000)) for _ in range(r.choice([1, 1, 2, 3, 10, 60]))]

    def reserve_bloom(self, key):
        r = self.random
        text, rate = self.rate()
        capacity = self.capacity(1)
        words, numbers = [], {}
        what = r.randrange(6)
        if what == 0:
            words, numbers = [self.cased("NONSCALING")], {"fixed": True}
        elif what < 4:
            expansion = self.expansion()
            words, numbers = [self.cased("EXPANSION"), expansion], {"expansion": expansion}
        if what == 3:
            words = r.choice([["FOO"] + words, words + ["FOO"], words + [self.cased("EXPANSION")]])
        self.keys[key] = Bloom(self.version, rate, capacity, **numbers)
        return ["BF.RESERVE", key, text, capacity, *words]

    def insert_bloom(self, key, filter):
        r = self.random
        options, numbers = [], {}
        if r.random() < 0.5:
            numbers["capacity"] = self.capacity(1)
            options.append([self.abbreviated("CAPACITY", 1), numbers["capacity"]])
        if r.random() < 0.5:
            text, numbers["rate"] = self.rate()
            options.append([self.abbreviated("ERROR", 2), text])
        if r.random() < 0.5:
            numbers["expansion"] = self.expansion()
            options.append([r.choice([self.cased("E"), self.abbreviated("EXPANSION", 2)]), numbers["expansion"]])
        if r.random() < 0.1:
            numbers["fixed"] = True
            options.append([self.abbreviated("NONSCALING", 3)])
        if filter and r.random() < 0.3:
            options.append([self.abbreviated("NOCREATE", 3)])
        r.shuffle(options)
        items = self.items()
        if not filter:
            filter = self.keys[key] = Bloom(self.version, **numbers)
        filter.items.update(items)
        return ["BF.INSERT", key, *sum(options, []), self.abbreviated("ITEMS", 1), *items]

    def reserve_cuckoo(self, key):
        r = self.random
        words, numbers = [], {}
        if r.random() < 0.5:
            numbers["bucket_size"] = r.choice([1, 2, 3, 4, 8, 255])
            words += [self.cased("BUCKETSIZE"), numbers["bucket_size"]]
        if r.random() < 0.5:
            numbers["iterations"] = r.choice([1, 5, 20, 100])
            words += [self.cased("MAXITERATIONS"), numbers["iterations"]]
        if r.random() < 0.5:
            numbers["expansion"] = r.choice([0, 1, 2, 3, 4, 5])
            words += [self.cased("EXPANSION"), numbers["expansion"]]
        if words and r.random() < 0.2:
            words = ["FOO", *words, "BAR"]  # passed over, and the others stand where values stood
        capacity = self.capacity(2 * numbers.get("bucket_size", 2))
        self.keys[key] = Cuckoo(capacity, **numbers)
        return ["CF.RESERVE", key, capacity, *words]

    def insert_cuckoo(self, key, filter):
        r = self.random
        options, numbers = [], {}
        if r.random() < 0.5:
            numbers["capacity"] = self.capacity(4)
            options.append([self.abbreviated("CAPACITY", 1), numbers["capacity"]])
        if filter and r.random() < 0.3:
            options.append([self.abbreviated("NOCREATE", 1)])
        r.shuffle(options)
        items = self.items()[:10]
        if not filter:
            filter = self.keys[key] = Cuckoo(**numbers)
        for item in items:
            filter.add(item)
        return [r.choice(["CF.INSERT", "CF.INSERTNX"]), key, *sum(options, []), self.abbreviated("ITEMS", 1), *items]

    def command(self):
        r = self.random
        family = r.choice(["bf", "cf"])
        key = f"{family}:{r.randrange(400)}"
        filter = self.keys.get(key)
        if filter and r.random() < 0.1 and not self.is_large(filter):
            del self.keys[key]
            return ["DEL", key]
        if family == "bf":
            if not filter and r.random() < 0.5:
                return self.reserve_bloom(key)
            if r.random() < 0.5:
                return self.insert_bloom(key, filter)
            filter = self.keys.setdefault(key, filter or Bloom(self.version))
            items = self.items()
            filter.items.update(items if len(items) > 1 else items[:1])
            return ["BF.MADD", key, *items] if len(items) > 1 else ["BF.ADD", key, items[0]]
        if not filter and r.random() < 0.5:
            return self.reserve_cuckoo(key)
        if r.random() < 0.5:
            return self.insert_cuckoo(key, filter)
        filter = self.keys.setdefault(key, filter or Cuckoo())
        item = self.items()[0]
        if filter.items.get(item, 0) > 0 and r.random() < 0.3:
            filter.items.clear()  # what DEL removes may be another item's fingerprint
            return ["CF.DEL", key, item]
        filter.add(item)
        return [r.choice(["CF.ADD", "CF.ADDNX"]), key, item]

    @staticmethod
    def is_large(filter):
        table = filter.first[1] // 8 if isinstance(filter, Bloom) else filter.numbers[0] * filter.numbers[1]
        return table >= LARGE


def check_version(version):
    writer = Writer(version, SEED + version)
    commands = [writer.reserve_bloom("bf:large"), *(writer.command() for _ in range(COMMANDS - 1))]
    print(f"RedisBloom {version}: {len(commands)} commands, seed {SEED + version}, {len(writer.keys)} keys")
    assert any(writer.is_large(f) for f in writer.keys.values())
    stream = b"".join(map(Client.pack, [("SELECT", "0"), *commands]))
    dumps = []
    for client in replayed(stream, "bf-replay-version", str(version)):
        assert client("DBSIZE") == len(writer.keys)
        dump = {}
        for key, filter in writer.keys.items():
            filter.check(client, key)
            if client("MEMORY", "USAGE", key) < LARGE:
                dump[key] = client("DUMP", key)
        dumps.append(dump)
    assert dumps[0] == dumps[1] and len(dumps[0]) > 400


def test_stream_of_version_2():
    check_version(2)


def test_stream_of_version_8():
    check_version(8)


def test_cases_by_name():
    commands = [("SELECT", "0"), ("BF.INSERT", "d", "CAPACITY", 1_500_000_000, "ITEMS", "x"),
                ("BF.INSERT", "short", "I", "x"), ("BF.RESERVE", "rate", "0.5", 1000),
                ("BF.RESERVE", "large", "0.01", 1_500_000_000), ("CF.RESERVE", "cuckoo", 1_500_000_000),
                ("CF.INSERT", "cuckoo short", "c", 100, "i", "x"),
                ("BF.RESERVE", "grows", "0.01", 10, "EXPANSION", 40_000)]
    for client in replayed(b"".join(map(Client.pack, commands))):
        assert client("DBSIZE") == 7, client("KEYS", "*")
        assert client("BF.EXISTS", "d", "x") == 1 and client("BF.EXISTS", "short", "x") == 1
        assert client("BF.INFO", "large", "CAPACITY") == [1_500_000_000]
        assert client("BF.INFO", "rate", "ERROR") == [b"0.5"]
        assert client("BF.INFO", "grows", "EXPANSION") == [40_000]
    # A client is held to the ranges.
    with Server() as server:
        client = server.client()
        for command in commands[1:]:
            if command[1] != "rate":
                assert isinstance(client(*command), harness.Error), command
        assert client("BF.RESERVE", "rate", "0.5", 1000) == "OK"
        assert client("BF.INFO", "rate", "ERROR") == [b"0.25"]


if __name__ == "__main__":
    harness.run(globals())
