#!/usr/bin/env python3
"""Promises: no payload and no command takes the server down, whatever it says; what is refused leaves nothing behind.
Would notice: a server that ended, memory that grew, a key that appeared. Seed and number of rounds are printed; more
rounds: hostile_test.py --rounds 1000000."""
import random
import struct
import sys

import harness
from harness import Client, Error, Server

ROUNDS, SEED = 10_000, 6
if "--rounds" in sys.argv:
    at = sys.argv.index("--rounds")
    ROUNDS = int(sys.argv[at + 1])
    del sys.argv[at:at + 2]
EDGES = [0, 1, 2, 7, 63, 64, 255, 256, 2**16, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**40, 2**62, 2**63 - 1, 2**63,
         2**64 - 1]


def crc64(data, table=[]):
    if not table:
        for i in range(256):
            for _ in range(8):
                i = i >> 1 ^ (0x95ac9329ac4bc9b5 if i & 1 else 0)
            table.append(i)
    crc = 0
    for b in data:
        crc = table[(crc ^ b) & 255] ^ crc >> 8
    return crc


def sealed(value, version=9):
    body = value + struct.pack("<H", version)
    return body + struct.pack("<Q", crc64(body))


def length(n):
    if n < 64:
        return bytes([n])
    if n < 16384:
        return struct.pack(">H", 0x4000 | n)
    return b"\x80" + struct.pack(">I", n) if n < 2**32 else b"\x81" + struct.pack(">Q", n)


def type_id(name, encoding):
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    number = 0
    for c in name:
        number = number << 6 | alphabet.index(c)
    return b"\x07\x81" + struct.pack(">Q", number << 10 | encoding)


def number(n):
    return length(2) + length(n % 2**64)


def real(x):
    return length(4) + struct.pack("<d", x)


def text(data):
    return length(5) + length(len(data)) + data


class Attack:
    def __init__(self, server):
        self.random = random.Random(SEED)
        self.server = server
        self.client = Client(server.port, timeout=600)  # the digest of a large key, under a sanitizer, takes long
        self.client("BF.MADD", "bf", *range(300))
        self.client("CF.INSERT", "cf", "CAPACITY", 64, "ITEMS", *range(300))
        self.client("BF.RESERVE", "line", "0.01", "100", "LAYOUT", "LINE")
        self.client("BF.MADD", "line", *range(300))
        self.client("BF.RESERVE", "window", "0.01", "100", "WINDOW", "100", "SECONDS")
        self.client("BF.MADD", "window", *range(300))
        self.client("BF.RESERVE", "growing", "0.01", "100", "LAYOUT", "GROWING")
        self.client("BF.MADD", "growing", *range(3000))
        self.client("BF.RESERVE", "growing-empty", "0.01", "100", "LAYOUT", "GROWING")
        link = struct.pack("<BQI", 1, 120, 7) + bytes(32) + self.random.randbytes(120)
        self.loads = struct.pack("<BIddBQQ", 1, 2, 0.01, 0.5, 1, 1, len(link)) + link + struct.pack("<qq", 9, 100)
        assert self.client("BF.LOAD", "valkey", self.loads) == "OK"
        self.dumps = [self.client("DUMP", k) for k in ("bf", "cf", "line", "window", "growing", "valkey")]
        self.headers = [self.client("BF.SCANDUMP", "bf", 0)[1], self.client("CF.SCANDUMP", "cf", 0)[1],
                        self.client("BF.SCANDUMP", "line", 0)[1], self.client("BF.SCANDUMP", "window", 0)[1],
                        self.client("BF.SCANDUMP", "growing", 0)[1]]
        self.iterator, self.table = self.client("BF.SCANDUMP", "growing", 1)

    def over_limit(self):
        return int(self.client("INFO", "bf").split(b"bf_refused_over_limit:")[1].split()[0])

    def any_number(self):
        r = self.random
        return r.choice(EDGES) if r.random() < 0.5 else r.randrange(1 << r.randrange(1, 64))

    def any_real(self):
        return self.random.choice([0.0, -0.0, 1.0, 0.5, 0.005, 5e-324, 1e-300, -1.0, 1e308, float("inf"), float("nan")])

    def mangled(self, data):
        r = self.random
        data = bytearray(data)
        for _ in range(r.randrange(1, 4)):
            what = r.randrange(4)
            at = r.randrange(len(data))
            if what == 0:
                data[at] ^= 1 << r.randrange(8)
            elif what == 1:
                data[at:at + 8] = struct.pack("<Q", self.any_number())
            elif what == 2:
                data[at:at + 8] = struct.pack("<d", self.any_real())
            else:
                del data[at:at + r.randrange(1, 9)]
            if not data:
                data = bytearray(b"\0")
        return bytes(data)

    def bloom_value(self):
        r = self.random
        links = r.choice([0, 1, 2, 3, self.any_number()])
        out = type_id("MBbloom--", r.choice([0, 1, 2, 3, 4, 4, 4, 5, 1023]))
        out += number(r.choice([0, 5, self.any_number()])) + number(links)
        out += number(r.choice([5, 13, self.any_number()])) + number(r.choice([2, self.any_number()]))
        for _ in range(min(links, 3)):
            size = r.choice([0, 8, 64, 200])
            bits = r.choice([8 * size, self.any_number()])
            out += number(self.any_number()) + real(r.choice([0.005, self.any_real()]))
            out += number(r.choice([8, self.any_number()])) + real(r.choice([11.0, self.any_real()]))
            out += number(bits) + number(r.choice([0, 0, self.any_number()]))
            out += text(r.randbytes(size)) + number(r.choice([0, self.any_number()]))
        return sealed(out + (b"\0" if r.random() < 0.9 else b""))

    def cuckoo_value(self):
        r = self.random
        filters = r.choice([0, 1, 2, self.any_number()])
        buckets = r.choice([1, 2, 64, self.any_number()])
        size = r.choice([1, 2, 255, self.any_number()])
        out = type_id("MBbloomCF", r.choice([0, 3, 4, 4, 4, 5]))
        out += number(filters) + number(buckets) + number(r.choice([0, 5, self.any_number()]))
        out += number(self.any_number()) + number(size) + number(r.choice([20, self.any_number()]))
        out += number(r.choice([0, 1, 2, self.any_number()]))
        for _ in range(min(filters, 3)):
            out += number(r.choice([buckets, self.any_number()]))
            out += text(r.randbytes(r.choice([0, min(buckets * size, 5000), 77])))
        return sealed(out + b"\0")

    def any_word(self):
        r = self.random
        return r.choice([b"", b"x", b"0", b"1", b"-1", b"1e-12", b"nan", b"inf", b"1e308", b"ITEMS", b"NOCREATE",
                         b"CAPACITY", b"ERROR", b"EXPANSION", b"NONSCALING", b"VALIDATESCALETO", b"BUCKETSIZE",
                         b"MAXITERATIONS", b"WINDOW", b"SECONDS", b"LAYOUT", b"LINE", b"GROWING", b"bf", b"cf", b"new",
                         b"text", str(self.any_number()).encode(), r.randbytes(r.randrange(40)),
                         self.mangled(self.loads), *self.headers])

    def command(self):
        r = self.random
        name = r.choice("""BF.ADD BF.MADD BF.CARD BF.DEBUG BF.EXISTS BF.MEXISTS BF.INFO BF.INSERT BF.LOAD BF.LOADCHUNK
            BF.MERGE BF.RESERVE BF.SCANDUMP BF.ADVANCE CF.ADD CF.ADDNX CF.COMPACT CF.COUNT CF.DEBUG CF.DEL CF.EXISTS
            CF.MEXISTS CF.INFO CF.INSERT CF.INSERTNX CF.LOADCHUNK CF.RESERVE CF.SCANDUMP""".split())
        key = r.choice(["bf", "cf", "line", "window", "growing", "valkey", "new", "text", "none"])
        return (name, key, *[self.any_word() for _ in range(r.randrange(6))])

    def step(self):
        r = self.random
        what = r.randrange(10)
        if what < 2:
            return ("RESTORE", "new", 0, r.choice([self.bloom_value, self.cuckoo_value])(), "REPLACE")
        if what < 4:
            family = r.randrange(5)
            return ("RESTORE", "new", 0, sealed(self.mangled(self.dumps[family][:-10])), "REPLACE")
        if what < 6:
            if r.random() < 0.2:
                table = self.mangled(self.table)
                size = len(self.table)
                return ("BF.LOADCHUNK", "growing", self.iterator, table.ljust(size, b"\xff")[:size])
            family = r.randrange(5)
            return ("CF.LOADCHUNK" if family == 1 else "BF.LOADCHUNK", "fresh", 1, self.mangled(self.headers[family]))
        return self.command()


def test_hostile():
    # Small, so that even a wish that is granted is soon over.
    with Server("--maxmemory", "400mb", "--maxmemory-policy", "noeviction") as server:
        attack = Attack(server)
        print(f"seed {SEED}, {ROUNDS} rounds")
        done = 0
        kinds = {}
        while done < ROUNDS:
            batch = [attack.step() for _ in range(50)]
            attack.client.socket.sendall(b"".join(map(attack.client.pack, batch)))
            for command in batch:
                try:
                    answer = attack.client.read()
                except (ConnectionError, OSError):
                    raise AssertionError(f"the server is gone; the batch was {batch!r}") from None
                kind = (command[0], isinstance(answer, Error))
                kinds[kind] = kinds.get(kind, 0) + 1
            # Whatever came in answers, and can be saved and copied; a fresh start for all but the two.
            for key, value in (("new", "x"), ("fresh", "x"), ("growing", "x")):
                for family in ("BF", "CF"):
                    attack.client(f"{family}.MEXISTS", key, value, "y")
                    attack.client(f"{family}.INFO", key)
                attack.client("COPY", key, key + "2", "REPLACE")
                dump = attack.client("DUMP", key)
                # What is there was accepted, so it can be loaded again, if there is room for all three.
                refused = attack.over_limit()
                assert (dump is None or attack.client("RESTORE", key + "3", 0, dump, "REPLACE") == "OK"
                        or attack.over_limit() > refused), (key, batch)
                attack.client("DEBUG", "DIGEST-VALUE", key)
            attack.client("DEL", "new", "fresh", "new2", "fresh2", "growing2", "new3", "fresh3", "growing3", "none")
            attack.client("BF.MADD", "growing", *range(done, done + 40))
            attack.client("BF.MERGE", "growing-merged", 2, "growing", "growing-empty")
            attack.client("RESTORE", "growing", 0, attack.dumps[4], "REPLACE")
            attack.client("DEL", "growing-merged")
            attack.client("SET", "text", "x")
            if attack.client("EXISTS", "bf", "cf") != 2 or attack.client("MEMORY", "USAGE", "bf") > 1 << 20 \
                    or attack.client("MEMORY", "USAGE", "cf") > 1 << 20:
                attack.client("RESTORE", "bf", 0, attack.dumps[0], "REPLACE")
                attack.client("RESTORE", "cf", 0, attack.dumps[1], "REPLACE")
                attack.client("RESTORE", "line", 0, attack.dumps[2], "REPLACE")
            done += len(batch)
            if done % 100_000 == 0:
                print(f"{done} rounds", flush=True)
        assert attack.client("PING") == "PONG"
        assert server.process.poll() is None
        # Both ways were taken: refused and, where the payload happened to be right, accepted.
        assert kinds[("RESTORE", True)] > ROUNDS // 10 and kinds.get(("RESTORE", False), 0) > ROUNDS // 1000
        assert kinds[("BF.LOADCHUNK", True)] > ROUNDS // 50 and kinds.get(("BF.LOADCHUNK", False), 0) > ROUNDS // 1000


def test_each_defect():
    """The defects by name, each refused and without a key left behind."""
    with Server("--maxmemory", "400mb") as server:
        client = server.client()
        bad = Error("ERR Bad data format")

        def bloom(encoding=4, size=3, links=1, options=5, growth=2, entries=10, error=0.005, hashes=8, bpe=11.027753,
                  bits=64, n2=0, data=b"\1" * 8, items=3, end=b"\0", cut=None):
            out = type_id("MBbloom--", encoding) + number(size) + number(links) + number(options) + number(growth)
            for _ in range(min(links, 2)):
                out += number(entries) + real(error) + number(hashes) + real(bpe) + number(bits) + number(n2)
                out += text(data) + number(items)
            return sealed((out + end)[:cut])

        assert client("RESTORE", "k", 0, bloom()) == "OK"
        client("DEL", "k")
        for defect in (dict(encoding=5), dict(links=0), dict(links=2**40), dict(links=2**64 - 1), dict(options=16),
                       dict(error=0.0), dict(error=1.0), dict(error=float("nan")), dict(hashes=0), dict(hashes=9),
                       dict(hashes=2**40), dict(bpe=float("nan")), dict(bpe=1e300), dict(bits=0), dict(bits=65),
                       dict(bits=2**63), dict(bits=72), dict(n2=64), dict(n2=7), dict(data=b""), dict(items=4),
                       dict(size=2**64 - 1), dict(cut=30), dict(cut=-12)):
            assert client("RESTORE", "k", 0, bloom(**defect)) == bad, defect
            assert client("EXISTS", "k") == 0

        def cuckoo(encoding=4, filters=1, buckets=2, items=1, deletes=0, size=2, iterations=20, expansion=1, own=2,
                   data=b"\1\0\0\0", end=b"\0", cut=None):
            out = type_id("MBbloomCF", encoding)
            for n in (filters, buckets, items, deletes, size, iterations, expansion):
                out += number(n)
            for _ in range(min(filters, 2)):
                out += number(own) + text(data)
            return sealed((out + end)[:cut])

        assert client("RESTORE", "k", 0, cuckoo()) == "OK"
        client("DEL", "k")
        for defect in (dict(encoding=5), dict(filters=0), dict(filters=2**40), dict(buckets=0), dict(buckets=3),
                       dict(buckets=2**63), dict(items=5), dict(size=0), dict(size=256), dict(size=65537),
                       dict(iterations=0), dict(iterations=65536), dict(expansion=3), dict(expansion=65536),
                       dict(own=4), dict(data=b"\1\0\0"), dict(data=b""), dict(cut=25)):
            assert client("RESTORE", "k", 0, cuckoo(**defect)) == bad, defect
            assert client("EXISTS", "k") == 0
        # Our own types as they were before their hash changed: refused, and the log says why. Read as bytes of today,
        # such a table would deny the keys that are in it.
        def line(encoding=5, options=32, data=b"\1" * 64):
            out = type_id("perhapsLB", encoding) + number(1) + number(1) + number(options) + number(2)
            out += number(10) + real(0.005) + number(8) + real(51.2) + number(512) + number(0)
            return sealed(out + text(data) + number(1) + b"\0")

        assert client("RESTORE", "k", 0, line()) == "OK"
        assert client("TYPE", "k") == "perhapsLB"
        client("DEL", "k")
        assert "no longer supported" not in server.log()
        assert client("RESTORE", "k", 0, line(encoding=4, options=16)) == bad
        assert "perhapsLB: encoding 4: written by a version before 0.2" in server.log()
        for defect in (dict(encoding=4), dict(encoding=6), dict(options=16), dict(options=5), dict(options=48)):
            assert client("RESTORE", "k", 0, line(**defect)) == bad, defect
        window = sealed(type_id("perhapsWF", 4) + text(b"perhapsW" + b"\0" * 56) + text(b"\0" * 64) + b"\0")
        assert client("RESTORE", "k", 0, window) == bad
        assert "perhapsWF: encoding 4: written by a version before 0.2" in server.log()
        # The same in pieces. Only these very options were of that version; others are damage.
        client("BF.RESERVE", "model", "0.01", 1000, "LAYOUT", "LINE")
        header = client("BF.SCANDUMP", "model", 0)[1]
        for options in (16, 24, 17, 48, 0x110, 0xffffffff):
            reply = client("BF.LOADCHUNK", "k", 1, header[:12] + struct.pack("<I", options) + header[16:])
            assert ("a version before 0.2" in reply) == (options in (16, 24)), (options, reply)
            assert "a version before 0.2" in reply or reply == Error("ERR received bad data"), (options, reply)

        def growing(encoding=1, magic=b"perhapsG", first=0, step=20, rate=0.01, waiting=0, cut=None, table=None):
            if table is None:
                client("BF.LOADCHUNK", "k", 1, struct.pack("<8sQQd", b"perhapsG", 0, 20, 0.01))
                table = client("BF.SCANDUMP", "k", 1)[1]
                client("DEL", "k")
                table = table[:16] + struct.pack("<Q", waiting) + table[24:cut]
            header = struct.pack("<8sQQd", magic, first, step, rate)
            return sealed(type_id("perhapsGF", encoding) + text(header) + text(table) + b"\0")

        assert client("RESTORE", "k", 0, growing()) == "OK" and client("TYPE", "k") == "perhapsGF"
        assert client("RESTORE", "k", 0, growing(waiting=1), "REPLACE") == "OK"
        assert client("BF.ADD", "k", "x") in (0, 1)
        # A head comes whole, and says no more than there is; behind it, anything goes.
        iterator, table = client("BF.SCANDUMP", "k", 1)
        for chunk in (table[:16] + struct.pack("<Q", 2) + table[24:], table[:16] + b"\xff" * 8 + table[24:]):
            assert client("BF.LOADCHUNK", "k", iterator, chunk) == Error("ERR received bad data")
        assert client("BF.LOADCHUNK", "k", 1 + 63, table[:63]) == Error("ERR received bad data")
        assert client("BF.LOADCHUNK", "k", 1 + 8 + 64, table[8:72]) == Error("ERR received bad data")
        assert client("BF.LOADCHUNK", "k", 1 + len(table), b"\xff" * (len(table) - 64)) == "OK"
        assert client("BF.MADD", "k", *range(100)) and client("BF.MERGE", "k2", 2, "k", "k") != "OK"
        client("DEL", "k")
        for defect in (dict(encoding=0), dict(encoding=2), dict(magic=b"perhapsX"), dict(first=22), dict(first=2**63),
                       dict(step=19), dict(step=21), dict(step=704), dict(step=2**63), dict(rate=0.0), dict(rate=1.0),
                       dict(rate=float("nan")), dict(rate=1e-13), dict(waiting=2), dict(waiting=2**64 - 1),
                       dict(cut=-1), dict(cut=40), dict(table=b""), dict(table=b"\0" * 8)):
            assert client("RESTORE", "k", 0, growing(**defect)) == bad, defect
            assert client("EXISTS", "k") == 0
        for header in (struct.pack("<8sQQd", b"perhapsG", 0, 650, 0.01), struct.pack("<8sQQd", b"perhapsG", 9, 3, 0.01),
                       struct.pack("<8sQQd", b"perhapsG", 0, 3, 0.01)[:-1]):
            assert isinstance(client("BF.LOADCHUNK", "k", 1, header), Error)
        assert client("EXISTS", "k") == 0
        numbers = struct.pack("<QQQddIQB", 64, 512, 0, 0.005, 51.2, 8, 10, 0)
        for header in (struct.pack("<QIII", 0, 1, 16, 2) + numbers, struct.pack("<QIII", 0, 1, 24, 2) + numbers,
                       b"perhapsW" + b"\0" * 56):
            reply = client("BF.LOADCHUNK", "k", 1, header)
            assert isinstance(reply, Error) and "no longer supported" in str(reply), reply
        assert client("BF.LOADCHUNK", "k", 1, struct.pack("<QIII", 0, 1, 32, 2) + numbers) == "OK"
        client("DEL", "k")

        # Headers that promise more than there is room for.
        one = struct.pack("<QIII", 0, 1, 5, 2)
        link = struct.pack("<QQQddIQB", 2**40, 2**43, 0, 0.005, 11.027753, 8, 2**40, 0)
        for header in (one + link, struct.pack("<QIII", 0, 3, 5, 2) + 3 * link):
            assert isinstance(client("BF.LOADCHUNK", "k", 1, header), Error)
        assert isinstance(client("CF.LOADCHUNK", "k", 1, struct.pack("<QQQQHHH", 1, 2**40, 0, 1, 2, 20, 1)), Error)
        assert isinstance(client("CF.LOADCHUNK", "k", 1, struct.pack("<QQQQHHH", 1, 2, 0, 65535, 255, 20, 2)), Error)
        assert client("EXISTS", "k") == 0
        used = int(client("INFO", "memory").split(b"used_memory:")[1].split()[0])
        assert used < 50_000_000, used


if __name__ == "__main__":
    harness.run(globals())
