#!/usr/bin/env python3
"""Promises: BF.* and CF.* reply word for word as RedisBloom 8 does, in RESP2 and in RESP3. Would notice: another
reply, type of reply, error text or order of checks. Each row: the words of a command, and the reply in RESP2 and in
RESP3 (or one for both)."""
import os

import harness
from harness import Error, Server, dump, same

WRONG = Error("WRONGTYPE Operation against a key holding the wrong kind of value")
FOUND = Error("ERR not found")
EXISTS = Error("ERR item exists")
RATE = Error("ERR error rate must be in the range (0.000000, 1.000000)")
CAPACITY = Error("ERR capacity must be in the range [1, 1073741824]")
EXPANSION = Error("ERR expansion must be in the range [0, 32768]")
FULL = Error("ERR non scaling filter is full")
BAD = Error("ERR received bad data")
POSITION = Error("Invalid position")
CHUNK = Error("Couldn't load chunk!")


def config_name(client, name):
    """On Redis 8 the name itself; elsewhere settings carry the name of their module."""
    return name if client("CONFIG", "GET", name) else "bf." + name.removeprefix("bf-")


def arity(command):
    return Error(f"ERR wrong number of arguments for '{command}' command")


class Both:
    """Says the same to a RESP2 and a RESP3 connection; each has keys of its own, {2} and {3}."""

    def __init__(self, server):
        self.clients = {2: server.client(2), 3: server.client(3)}

    def __call__(self, text, expected, *more):
        """Words by spaces; more: further words as they are. A pair (a, b) is RESP2 and RESP3."""
        for protocol, client in self.clients.items():
            words = [w.replace("%", str(protocol)) for w in text.split()] + list(more)
            answer = client(*words)
            wanted = expected[protocol - 2] if isinstance(expected, tuple) else expected
            assert same(answer, wanted), f"RESP{protocol} {words!r}: {answer!r}, expected {wanted!r}"


YES, NO = (1, True), (0, False)


def truths(*values):
    return [int(v) for v in values], [bool(v) for v in values]


def info(*pairs):
    flat = [x for pair in pairs for x in pair]
    return flat, dict(pairs)


def test_bf_reserve():
    with Server() as server:
        say = Both(server)
        say("BF.RESERVE a% 0.01 100", "OK")
        say("BF.RESERVE a% 0.01 100", EXISTS)
        say("bf.reserve b% 0.01 100 expansion 4", "OK")
        say("BF.INFO b% EXPANSION", ([4], {"Expansion rate": 4}))
        say("BF.RESERVE c% 0.01 100 NONSCALING", "OK")
        say("BF.INFO c% EXPANSION", ([None], {"Expansion rate": None}))
        say("BF.RESERVE d% 0.01 100 EXPANSION 0", "OK")
        say("BF.INFO d% EXPANSION", ([None], {"Expansion rate": None}))
        say("BF.RESERVE e% 0.01 100 NONSCALING EXPANSION 0", "OK")
        for words in ("", "e", "e 0.01", "e 0.01 100 EXPANSION 2 NONSCALING X", "e 0.1 1 2 3 4 5"):
            say("BF.RESERVE " + words, arity("bf.reserve"))
        for rate in ("x", "nan", "1e-9999", "0.01x"):
            say(f"BF.RESERVE f% {rate} 100", Error("ERR bad error rate"))
        say("BF.RESERVE f%", Error("ERR bad error rate"), "", "100")
        for rate in ("0", "1", "-0.1", "1.5", "inf", "-inf"):
            say(f"BF.RESERVE f% {rate} 100", RATE)
        for capacity in ("x", "1e3", "1.5", "99999999999999999999"):
            say(f"BF.RESERVE f% 0.01 {capacity}", Error("ERR bad capacity"))
        for capacity in ("", " 1", "1 "):
            say("BF.RESERVE f% 0.01", Error("ERR bad capacity"), capacity)
        for capacity in ("0", "-1", "1073741825"):
            say(f"BF.RESERVE f% 0.01 {capacity}", CAPACITY)
        say("BF.RESERVE f% x x EXPANSION", Error("ERR bad error rate"))
        say("BF.RESERVE f% 0.01 x EXPANSION", Error("ERR bad capacity"))
        say("BF.RESERVE f% 0.01 100 EXPANSION", Error("ERR no expansion"))
        say("BF.RESERVE f% 0.01 100 EXPANSION x", Error("ERR bad expansion"))
        say("BF.RESERVE f% 0.01 100 EXPANSION -1", EXPANSION)
        say("BF.RESERVE f% 0.01 100 EXPANSION 32769", EXPANSION)
        say("BF.RESERVE f% 0.01 100 NONSCALING EXPANSION 2", Error("Nonscaling filters cannot expand"))
        say("BF.RESERVE f% 0.01 100 EXPANSION 2 NONSCALING", Error("Nonscaling filters cannot expand"))
        say("BF.RESERVE a% x 100", Error("ERR bad error rate"))
        say("BF.RESERVE f% 5e-324 100", Error("ERR could not create filter"))  # half of it is 0
        say("BF.RESERVE f% 0.01 10 FOO", "OK")
        # A key may be named as an option is.
        client = server.client()
        assert client("BF.RESERVE", "NONSCALING", "0.01", "10") == "OK"
        assert client("BF.RESERVE", "EXPANSION", "0.01", "10") == "OK"
        assert client("BF.INFO", "NONSCALING", "EXPANSION") == [2]
        say("SET s% x", "OK")
        say("BF.RESERVE s% 0.01 10", WRONG)
        say("CF.RESERVE t% 100", "OK")
        say("BF.RESERVE t% 0.01 10", WRONG)
        # Rates above a quarter are a quarter, and the log says so.
        say("BF.RESERVE g% 0.9 1000 NONSCALING", "OK")
        assert "error rate 0.9 is capped to 0.25" in server.log()
        say("BF.DEBUG g%", [b"size:0", b"bytes:368 bits:2944 hashes:3 hashwidth:64 capacity:1000 size:0 ratio:0.25"])


def test_bf_add_and_exists():
    with Server() as server:
        say = Both(server)
        say("BF.ADD a% x", YES)
        say("BF.ADD a% x", NO)
        say("BF.ADD a%", YES, b"\x00\xff binary")
        say("BF.ADD a%", YES, b"")
        say("BF.ADD a%", NO, b"")
        say("BF.EXISTS a%", YES, b"")
        say("BF.EXISTS a% nothing", NO)
        say("BF.MADD a% y y z x", truths(1, 0, 1, 0))
        say("BF.MEXISTS a% x y z q", truths(1, 1, 1, 0))
        say("BF.MADD b% y", truths(1))
        say("BF.EXISTS none% x", NO)
        say("BF.MEXISTS none% x y", truths(0, 0))
        for words in ("", "k", "k x y"):
            say("BF.ADD " + words, arity("bf.add"))
            say("BF.EXISTS " + words, arity("bf.exists"))
        for words in ("", "k"):
            say("BF.MADD " + words, arity("bf.madd"))
            say("BF.MEXISTS " + words, arity("bf.mexists"))
        say("SET s% x", "OK")
        say("CF.ADD c% x", YES)
        for key in ("s%", "c%"):
            say(f"BF.ADD {key} x", WRONG)
            say(f"BF.MADD {key} x y", WRONG)
            say(f"BF.EXISTS {key} x", NO)
            say(f"BF.MEXISTS {key} x y", truths(0, 0))
            say(f"BF.CARD {key}", WRONG)
        say("BF.CARD none%", 0)
        say("BF.CARD a%", 5)
        say("BF.CARD", arity("bf.card"))
        say("BF.CARD a% b", arity("bf.card"))


def test_bf_full():
    with Server() as server:
        say = Both(server)
        say("BF.RESERVE a% 0.01 3 NONSCALING", "OK")
        say("BF.MADD a% 1 2 3 1 4 5 6", ([1, 1, 1, 0, FULL], [True, True, True, False, FULL]))
        say("BF.ADD a% 4", FULL)
        say("BF.ADD a% 1", NO)
        say("BF.MADD a% 1 2 4 3", ([0, 0, FULL], [False, False, FULL]))
        say("BF.INSERT a% ITEMS 1 9 2", ([0, FULL], [False, FULL]))
        say("BF.CARD a%", 3)


def test_bf_insert():
    with Server() as server:
        say = Both(server)
        say("BF.INSERT a% ITEMS x y x", truths(1, 1, 0))
        say("bf.insert b% capacity 1000 error 0.001 expansion 4 items x", truths(1))
        say("BF.INFO b%", info(("Capacity", 1000), ("Size", 2080), ("Number of filters", 1),
                               ("Number of items inserted", 1), ("Expansion rate", 4)))
        say("BF.INSERT c% NONSCALING EXPANSION 2 CAPACITY 2 ITEMS x y z", ([1, 1, FULL], [True, True, FULL]))
        say("BF.INSERT d% EXPANSION 0 ITEMS x", truths(1))
        say("BF.INFO d% EXPANSION", ([None], {"Expansion rate": None}))
        say("BF.INSERT n% NOCREATE ITEMS x", FOUND)
        say("BF.INSERT n% NOCREATE CAPACITY 10 ERROR 0.1 ITEMS x", FOUND)
        say("BF.INSERT a% NOCREATE CAPACITY 10 ITEMS x q", truths(0, 1))
        say("BF.INFO a% CAPACITY", ([100], {"Capacity": 100}))
        for value in ("x", "0", "-1", "1073741825", "1e3"):
            say(f"BF.INSERT e% CAPACITY {value} ITEMS x", Error("Bad capacity"))
        for value in ("x", "0", "1", "-1", "2"):
            say(f"BF.INSERT e% ERROR {value} ITEMS x", Error("Bad error rate"))
        for value in ("x", "-1", "32769"):
            say(f"BF.INSERT e% EXPANSION {value} ITEMS x", Error("Bad expansion"))
        for value in ("I", "FOO", "ITEM"):
            say(f"BF.INSERT e% {value} x", Error("Unknown argument received"))
        for words in ("", "k", "k ITEMS", "k NOCREATE ITEMS", "k NOCREATE NONSCALING", "k NOCREATE CAPACITY",
                      "k NOCREATE ERROR", "k NOCREATE EXPANSION"):
            say("BF.INSERT " + words, arity("bf.insert"))
        say("SET s% x", "OK")
        say("BF.INSERT s% ITEMS x", WRONG)
        # A word of valkey-bloom: only if it can grow so far.
        say("BF.INSERT e% VALIDATESCALETO x ITEMS x", Error("Bad capacity"))
        say("BF.INSERT e% VALIDATESCALETO 0 ITEMS x", Error("Bad capacity"))
        say("BF.INSERT k VALIDATESCALETO", arity("bf.insert"), "9", "NOCREATE")
        together = Error("ERR cannot use NONSCALING and VALIDATESCALETO options together")
        say("BF.INSERT e% NONSCALING VALIDATESCALETO 9 ITEMS x", together)
        say("BF.INSERT e% VALIDATESCALETO 9 EXPANSION 0 ITEMS x", together)
        client = server.client()
        client("CONFIG", "SET", config_name(client, "bf-max-bytes-per-key"), 1000)
        over = Error("ERR provided VALIDATESCALETO causes bloom object to exceed memory limit")
        say("BF.INSERT e% CAPACITY 100 VALIDATESCALETO 301 ITEMS x", over)
        say("EXISTS e%", 0)
        say("BF.INSERT v% CAPACITY 100 VALIDATESCALETO 300 ITEMS x", truths(1))
        say("BF.INSERT v% VALIDATESCALETO 301 ITEMS y", truths(1))  # it is there: options are of no account
        client("CONFIG", "SET", config_name(client, "bf-max-bytes-per-key"), 0)
        say("BF.INSERT e% EXPANSION 1 VALIDATESCALETO 1000000 ITEMS x", over)  # 100 at a time, ever tighter
        say("EXISTS e%", 0)


def test_bf_info():
    with Server() as server:
        say = Both(server)
        say("BF.RESERVE a% 0.01 1000000", "OK")
        say("BF.INFO a%", info(("Capacity", 1000000), ("Size", 1378568), ("Number of filters", 1),
                               ("Number of items inserted", 0), ("Expansion rate", 2)))
        for field, name, value in (("CAPACITY", "Capacity", 1000000), ("size", "Size", 1378568),
                                   ("Filters", "Number of filters", 1), ("ITEMS", "Number of items inserted", 0),
                                   ("EXPANSION", "Expansion rate", 2)):
            say(f"BF.INFO a% {field}", ([value], {name: value}))
        say("BF.INFO a% FOO", Error("Invalid information value"))
        say("BF.INFO none% FOO", FOUND)
        say("BF.INFO none%", FOUND)
        say("BF.INFO", arity("bf.info"))
        say("BF.INFO a% b c", arity("bf.info"))
        say("SET s% x", "OK")
        say("BF.INFO s%", WRONG)
        say("BF.DEBUG a%", [b"size:0", b"bytes:1378472 bits:11027776 hashes:8 hashwidth:64 capacity:1000000 size:0 "
                                       b"ratio:0.005"])
        say("BF.DEBUG none%", FOUND)
        say("BF.DEBUG s%", WRONG)
        say("BF.DEBUG", arity("bf.debug"))
        # What RedisBloom does not tell.
        three = server.client(3)
        three("BF.RESERVE", "m", "0.01", "100")
        three("BF.MADD", "m", *range(60))
        assert three("BF.INFO", "m", "ERROR") == {"Error rate": 0.01}
        assert three("BF.INFO", "m", "TIGHTENING") == {"Tightening ratio": 0.5}
        assert three("BF.INFO", "m", "HEADROOM") == {"Items before it grows": 40}
        assert 0 < three("BF.INFO", "m", "FPR")["False positive rate now"] < 0.001
        assert three("BF.INFO", "m", "MAXSCALEDCAPACITY")["Max scaled capacity"] > 10**9
        three("CONFIG", "SET", config_name(three, "bf-max-bytes-per-key"), 1000)
        assert three("BF.INFO", "m", "MAXSCALEDCAPACITY") == {"Max scaled capacity": 300}


def test_bf_dump():
    with Server() as server:
        say = Both(server)
        say("BF.INSERT a% CAPACITY 20 ITEMS " + " ".join(map(str, range(100))),
            truths(*server.client()("BF.INSERT", "probe", "CAPACITY", 20, "ITEMS", *range(100))))
        client = server.client()
        chunks = dump(client, "BF", "a2")
        assert [i for i, _ in chunks[:1]] == [1] and len(chunks[0][1]) == 20 + 53 * (len(chunks) - 1)
        assert len(chunks) == 4
        assert chunks[-1][0] == 1 + sum(len(d) for _, d in chunks[1:])
        for i, data in chunks:
            assert client("BF.LOADCHUNK", "copy", i, data) == "OK"
        assert dump(client, "BF", "copy") == chunks
        assert client("DEBUG", "DIGEST-VALUE", "copy") == client("DEBUG", "DIGEST-VALUE", "a2")
        assert all(client("BF.MEXISTS", "copy", *range(100)))
        # Out of order too, and from any byte on.
        client("BF.LOADCHUNK", "other", *chunks[0])
        for i, data in reversed(chunks[1:]):
            assert client("BF.LOADCHUNK", "other", i, data) == "OK"
        assert dump(client, "BF", "other") == chunks
        assert client("BF.SCANDUMP", "a2", 4) == [chunks[1][0], chunks[1][1][3:]]
        for iterator in (-1, chunks[-1][0], 10**9, 2**63 - 1):
            assert client("BF.SCANDUMP", "a2", iterator) == [0, b""], iterator
        say("BF.SCANDUMP a% x", Error("Second argument must be numeric"))
        say("BF.SCANDUMP none% x", FOUND)
        say("BF.SCANDUMP none% 0", FOUND)
        say("SET s% x", "OK")
        say("BF.SCANDUMP s% 0", WRONG)
        say("BF.SCANDUMP a%", arity("bf.scandump"))
        say("BF.LOADCHUNK a% 1", arity("bf.loadchunk"))
        say("BF.LOADCHUNK s% x y", Error("ERR Second argument must be numeric"))
        say("BF.LOADCHUNK s% 1 y", WRONG)
        say("BF.LOADCHUNK none% 2 y", FOUND)
        say("BF.LOADCHUNK none% 0 y", FOUND)
        say("BF.LOADCHUNK none% 1 y", BAD)
        say("BF.LOADCHUNK a% 0 y", BAD)
        say("BF.LOADCHUNK a% -5 y", BAD)
        say("BF.LOADCHUNK a% 1 yyy", BAD)
        say("BF.LOADCHUNK a% 1", BAD, chunks[0][1])
        say("BF.LOADCHUNK a% 1000000 y", Error("ERR invalid offset - no link found"))
        say("BF.LOADCHUNK a% 3 yyy", Error("ERR invalid offset - no link found"))
        long = b"x" * (len(chunks[1][1]) + 1)
        say(f"BF.LOADCHUNK a% {len(long) + 1}", Error("ERR invalid chunk - Too big for current filter"), long)
        # Chunks of 16 MiB.
        assert client("BF.RESERVE", "big", "0.01", "30000000") == "OK"
        sizes = [len(d) for _, d in dump(client, "BF", "big")]
        assert sizes[1:3] == [1 << 24, 1 << 24] and len(sizes) == 4, sizes


def test_bf_merge():
    with Server() as server:
        say = Both(server)
        for key in ("a%", "b%"):
            say(f"BF.RESERVE {key} 0.01 1000", "OK")
        say("BF.MADD a% 1 2 3", truths(1, 1, 1))
        say("BF.MADD b% 3 4", truths(1, 1))
        say("BF.MERGE u% 2 a% b%", "OK")
        say("BF.MEXISTS u% 1 2 3 4 5", truths(1, 1, 1, 1, 0))
        say("BF.CARD u%", 4)
        say("BF.MERGE a% 1 b%", "OK")
        say("BF.MEXISTS a% 1 2 3 4 5", truths(1, 1, 1, 1, 0))
        say("BF.MERGE a% 2 a% none%", "OK")
        say("BF.CARD a%", 4)
        say("BF.RESERVE c% 0.01 1001", "OK")
        say("BF.RESERVE d% 0.02 1000", "OK")
        say("BF.RESERVE e% 0.01 1000 NONSCALING", "OK")
        say("BF.RESERVE f% 0.01 1000 EXPANSION 4", "OK")
        say("BF.MERGE a% 1 c%", Error("ERR filters differ in capacity"))
        say("BF.MERGE a% 1 d%", Error("ERR filters differ in error rate"))
        say("BF.MERGE a% 1 e%", Error("ERR filters differ in options"))
        say("BF.MERGE a% 1 f%", Error("ERR filters differ in expansion"))
        say("BF.MERGE v% 2 a% f%", Error("ERR filters differ in expansion"))
        say("EXISTS v%", 0)
        say("SET s% x", "OK")
        say("BF.MERGE s% 1 a%", WRONG)
        say("BF.MERGE a% 1 s%", WRONG)
        say("BF.MERGE v% 1 none%", FOUND)
        say("BF.MERGE v% 0 a%", Error("ERR bad number of keys"))
        say("BF.MERGE v% x a%", Error("ERR bad number of keys"))
        say("BF.MERGE v% 3 a% b%", Error("ERR bad number of keys"))
        say("BF.MERGE v% 1 a% b%", Error("ERR syntax error"))
        say("BF.MERGE v% 1", arity("bf.merge"))


def test_cf_reserve():
    with Server() as server:
        say = Both(server)
        say("CF.RESERVE a% 1000", "OK")
        say("CF.RESERVE a% 1000", EXISTS)
        say("CF.INFO a%", info(("Size", 1080), ("Number of buckets", 512), ("Number of filters", 1),
                               ("Number of items inserted", 0), ("Number of items deleted", 0), ("Bucket size", 2),
                               ("Expansion rate", 1), ("Max iterations", 20)))
        say("cf.reserve b% 1000 expansion 3 bucketsize 4 maxiterations 7", "OK")
        say("CF.INFO b%", info(("Size", 1080), ("Number of buckets", 256), ("Number of filters", 1),
                               ("Number of items inserted", 0), ("Number of items deleted", 0), ("Bucket size", 4),
                               ("Expansion rate", 4), ("Max iterations", 7)))
        say("CF.DEBUG b%", b"bktsize:4 buckets:256 items:0 deletes:0 filters:1 max_iterations:7 expansion:4")
        for words in ("", "k", "k 10 BUCKETSIZE"):
            say("CF.RESERVE " + words, arity("cf.reserve"))
        say("CF.RESERVE c% x MAXITERATIONS x", Error("Bad capacity"))
        for option, least, most in (("MAXITERATIONS", 1, 65535), ("BUCKETSIZE", 1, 255), ("EXPANSION", 0, 32768)):
            say(f"CF.RESERVE c% 1000 {option} x", Error(f"Couldn't parse {option}"))
            for value in (least - 1, most + 1):
                say(f"CF.RESERVE c% 1000 {option} {value}",
                    Error(f"{option}: value must be in the range [{least}, {most}]"))
        say("CF.RESERVE c% 1000 EXPANSION x BUCKETSIZE x MAXITERATIONS x", Error("Couldn't parse MAXITERATIONS"))
        say("CF.RESERVE c% 10 1000 MAXITERATIONS", Error("Couldn't parse MAXITERATIONS"))  # no value
        say("CF.RESERVE m% 64 FOO BUCKETSIZE 4 BAR", "OK")  # words that are not known shift the others
        say("CF.DEBUG m%", b"bktsize:4 buckets:16 items:0 deletes:0 filters:1 max_iterations:20 expansion:1")
        say("CF.RESERVE n% 64 BUCKETSIZE 4 BUCKETSIZE 8", "OK")  # the first counts
        say("CF.DEBUG n%", b"bktsize:4 buckets:16 items:0 deletes:0 filters:1 max_iterations:20 expansion:1")
        say("CF.RESERVE c% 1000 EXPANSION x BUCKETSIZE 0", Error("BUCKETSIZE: value must be in the range [1, 255]"))
        for words in ("3", "0", "-1", "1073741825", "7 BUCKETSIZE 4"):
            say(f"CF.RESERVE c% {words}", Error("Capacity must be in the range [2 * BUCKETSIZE, 1073741824]"))
        say("CF.RESERVE c% 1000 FOO BAR", "OK")
        assert server.client()("CF.RESERVE", "BUCKETSIZE", "1000") == "OK"
        say("SET s% x", "OK")
        say("CF.RESERVE s% 1000", WRONG)
        say("BF.ADD t% x", YES)
        say("CF.RESERVE t% 1000", WRONG)
        say("CF.INFO none%", FOUND)
        say("CF.INFO s%", WRONG)
        say("CF.INFO", arity("cf.info"))
        say("CF.DEBUG none%", FOUND)


def test_cf_add_and_exists():
    with Server() as server:
        say = Both(server)
        say("CF.ADD a% x", YES)
        say("CF.ADD a% x", YES)
        say("CF.COUNT a% x", 2)
        say("CF.ADDNX a% x", NO)
        say("CF.ADDNX a% y", YES)
        say("CF.EXISTS a% x", YES)
        say("CF.EXISTS a% q", NO)
        say("CF.MEXISTS a% x y q", truths(1, 1, 0))
        say("CF.DEL a% x", YES)
        say("CF.DEL a% x", YES)
        say("CF.DEL a% x", NO)
        say("CF.EXISTS a% x", NO)
        say("CF.DEL none% x", Error("Not found"))
        say("CF.EXISTS none% x", NO)
        say("CF.MEXISTS none% x y", truths(0, 0))
        say("CF.COUNT none% x", 0)
        say("SET s% x", "OK")
        say("CF.ADD s% x", WRONG)
        say("CF.ADDNX s% x", WRONG)
        say("CF.DEL s% x", Error("Not found"))
        say("CF.EXISTS s% x", NO)
        say("CF.COUNT s% x", 0)
        say("CF.COMPACT a%", "OK")
        say("CF.COMPACT none%", Error("Cuckoo filter was not found"))
        say("CF.COMPACT s%", Error("Cuckoo filter was not found"))
        for command in ("add", "addnx", "exists", "count", "del"):
            for words in ("", "k", "k x y"):
                say(f"CF.{command} {words}", arity(f"cf.{command}"))
        say("CF.MEXISTS k", arity("cf.mexists"))
        say("CF.COMPACT", arity("cf.compact"))


def test_cf_insert():
    with Server() as server:
        say = Both(server)
        say("CF.INSERT a% ITEMS x x y", truths(1, 1, 1))
        say("CF.INSERTNX a% ITEMS x z z", [0, 1, 0])
        say("CF.INSERT b% CAPACITY 64 ITEMS x", truths(1))
        say("CF.INFO b%", info(("Size", 120), ("Number of buckets", 32), ("Number of filters", 1),
                               ("Number of items inserted", 1), ("Number of items deleted", 0), ("Bucket size", 2),
                               ("Expansion rate", 1), ("Max iterations", 20)))
        say("CF.INSERT n% NOCREATE ITEMS x", FOUND)
        say("CF.INSERTNX n% NOCREATE ITEMS x", FOUND)
        say("CF.INSERT c% CAPACITY x ITEMS x", Error("Bad capacity"))
        for value in ("3", "0", "-1", "1073741825"):
            say(f"CF.INSERT c% CAPACITY {value} ITEMS x",
                Error("Capacity must be in the range [cf-bucket-size * 2, 1073741824]"))
        say("CF.INSERT c% FOO x", Error("Unknown argument received"))
        for words in ("", "k", "k ITEMS", "k NOCREATE ITEMS", "k NOCREATE CAPACITY"):
            say("CF.INSERT " + words, arity("cf.insert"))
            say("CF.INSERTNX " + words, arity("cf.insertnx"))
        # Full: all items are answered.
        say("CF.RESERVE f% 4 EXPANSION 0", "OK")
        say("CF.INSERT f% ITEMS a a a c", ([1, 1, -1, 1], [True, True, False, True]))
        say("CF.ADD f% a", Error("Filter is full"))
        say("CF.INSERT f% ITEMS c", truths(1))
        say("CF.INSERTNX f% ITEMS a none c", [0, -1, 0])
        say("CF.ADDNX f% a", NO)


def test_cf_most_expansions():
    with Server(module_args=("CF_MAX_EXPANSIONS", "4")) as server:
        say = Both(server)
        say("CF.RESERVE a% 4", "OK")
        say("CF.INSERT a% ITEMS " + " ".join("x" * 40), truths(*[1] * 40))
        assert server.client()("CF.INFO", "a2")[5] == 10  # one command may exceed it
        say("CF.ADD a% x", Error("Maximum expansions reached"))
        say("CF.ADDNX a% x", Error("Maximum expansions reached"))
        say("CF.INSERT a% ITEMS x", Error("Maximum expansions reached"))


def test_cf_dump():
    with Server() as server:
        say = Both(server)
        client = server.client()
        client("CF.RESERVE", "a", 64)
        client("CF.INSERT", "a", "ITEMS", *range(300))
        chunks = dump(client, "CF", "a")
        assert chunks[0][0] == 1 and len(chunks[0][1]) == 38
        for i, data in chunks:
            assert client("CF.LOADCHUNK", "copy", i, data) == "OK"
        assert dump(client, "CF", "copy") == chunks
        assert client("CF.SCANDUMP", "a", chunks[-1][0]) == [0, None]
        assert all(client("CF.MEXISTS", "copy", *range(300)))
        assert client("CF.SCANDUMP", "a", 4) == [chunks[1][0], chunks[1][1][3:]]
        say("CF.RESERVE e% 64", "OK")
        say("CF.SCANDUMP e% 0", [0, None])
        say("CF.SCANDUMP none% x", POSITION)
        say("CF.SCANDUMP none% -1", POSITION)
        say("CF.SCANDUMP none% 0", FOUND)
        say("SET s% x", "OK")
        say("CF.SCANDUMP s% 0", WRONG)
        say("CF.SCANDUMP a", arity("cf.scandump"))
        say("CF.LOADCHUNK none% x y", POSITION)
        say("CF.LOADCHUNK none% 0 y", POSITION)
        say("CF.LOADCHUNK none% 2 y", FOUND)
        say("CF.LOADCHUNK none% 1 y", Error("Invalid header"))
        say("CF.LOADCHUNK none% 1", Error("Couldn't create filter!"), b"\xff" * 38)
        say("CF.LOADCHUNK e% 1", EXISTS, chunks[0][1])
        say("CF.LOADCHUNK s% 1", WRONG, chunks[0][1])
        say("CF.LOADCHUNK e% 2 yyy", CHUNK)
        say("CF.LOADCHUNK e% -2 yyy", CHUNK)
        say("CF.LOADCHUNK e% 1000000 y", CHUNK)
        say("CF.LOADCHUNK e% 66", CHUNK, "x" * 65)


def test_settings():
    with Server(module_args=("ERROR_RATE", "0.02", "INITIAL_SIZE", "400")) as server:
        client = server.client()

        def name(of):
            return config_name(client, of)

        client("BF.ADD", "a", "x")
        assert client("BF.INFO", "a", "CAPACITY") == [400]
        assert client("BF.DEBUG", "a")[1].endswith(b"ratio:0.01")
        assert client("CONFIG", "GET", name("bf-error-rate")) == [name("bf-error-rate").encode(), b"0.02"]

        def refused(setting, value, why):
            answer = client("CONFIG", "SET", name(setting), value)
            assert isinstance(answer, Error) and answer.endswith(why), answer

        for setting, least, most in (("bf-initial-size", 1, 1 << 30), ("bf-expansion-factor", 0, 32768),
                                     ("cf-bucket-size", 1, 255), ("cf-initial-size", 4, 1 << 30),
                                     ("cf-max-iterations", 1, 65535), ("cf-expansion-factor", 0, 32768),
                                     ("cf-max-expansions", 1, 65536)):
            refused(setting, "x", f"Invalid value for `{setting}`")
            for value in (least - 1, most + 1):
                refused(setting, value, f"Value for `{setting}` must be in the range [{least}, {most}]")
        refused("bf-error-rate", "x", "Invalid value for `bf-error-rate`")
        refused("bf-error-rate", "1", "must be in the range (0.000000, 1.000000)")
        assert client("CONFIG", "SET", name("bf-error-rate"), "0.5") == "OK"
        assert client("CONFIG", "GET", name("bf-error-rate"))[1] == b"0.25"
        assert client("CONFIG", "SET", name("bf-expansion-factor"), "0") == "OK"
        client("BF.ADD", "fixed", "x")
        assert client("BF.INFO", "fixed", "EXPANSION") == [None]
        assert client("CONFIG", "SET", name("cf-initial-size"), "8", name("cf-max-iterations"), "5") == "OK"
        refused("cf-bucket-size", "5", "must be in the range [1, 4]")
        assert client("CONFIG", "SET", name("cf-bucket-size"), "4") == "OK"
        refused("cf-initial-size", "7", "must be in the range [8, 1073741824]")
        client("CF.ADD", "c", "x")
        assert client("CF.DEBUG", "c").startswith(b"bktsize:4 buckets:2 items:1 deletes:0 filters:1 max_iterations:5")
        # Hidden, but there.
        assert client("CONFIG", "GET", name("bf-error-rate")[:3] + "pref*") == []
        assert client("CONFIG", "SET", name("bf-prefetch"), "no") == "OK"
    for wrong in (("FOO", "1"), ("ERROR_RATE",), ("ERROR_RATE", "2"), ("INITIAL_SIZE", "0")):
        try:
            with Server(module_args=wrong):
                raise AssertionError(f"loaded with {wrong}")
        except RuntimeError:
            pass


def test_limit_of_bytes():
    with Server("--maxmemory", "1gb") as server:
        say = Both(server)
        over = Error("ERR operation exceeds bloom object memory limit")
        client = server.client()
        before = client("INFO", "memory")
        say("BF.RESERVE x% 1e-12 1073741824", over)
        say("BF.INSERT x% ERROR 1e-12 CAPACITY 1073741824 ITEMS x", over)
        say("CF.RESERVE x% 1073741824 BUCKETSIZE 255", over)
        say("EXISTS x%", 0)
        used = [int(text.split(b"used_memory:")[1].split()[0]) for text in (before, client("INFO", "memory"))]
        assert used[1] - used[0] < 10_000_000, used
        client("CONFIG", "SET", config_name(client, "bf-max-bytes-per-key"), "2000")
        say("BF.RESERVE y% 0.01 10000", over)
        say("BF.RESERVE y% 0.01 100", "OK")
        answers = client("BF.MADD", "y2", *range(3000))
        assert answers[0] == 1 and answers.count(over) > 1000
        assert client("BF.INFO", "y2", "SIZE")[0] <= 2000
        # What is inside stays, and what was there answers.
        assert client("BF.ADD", "y2", 0) == 0
        assert client("BF.ADD", "y2", "another") == over
        # COPY and RESTORE make new keys, which the limit holds for. Keys that are loaded were accepted before.
        client("CONFIG", "SET", config_name(client, "bf-max-bytes-per-key"), "0")
        client("BF.RESERVE", "z", "0.01", "10000")
        data = client("DUMP", "z")
        client("CONFIG", "SET", config_name(client, "bf-max-bytes-per-key"), "100")
        assert client("RESTORE", "z9", 0, data) == Error("ERR Bad data format")
        assert client("COPY", "z", "z9") == Error("ERR module key failed to copy")
        assert client("EXISTS", "z9") == 0
        assert client("DEBUG", "RELOAD") == "OK"
        assert client("BF.INFO", "z", "CAPACITY") == [10000]


def test_what_the_server_knows():
    with Server("--notify-keyspace-events", "KEA") as server:
        client = server.client()
        listener = server.client()
        listener("PSUBSCRIBE", "__keyspace*__:*")
        client("BF.RESERVE", "b", "0.01", "1000")
        client("BF.ADD", "b", "x")
        client("BF.ADD", "b", "x")
        client("CF.ADD", "c", "x")
        client("CF.DEL", "c", "x")
        events = [listener.read()[3] for _ in range(5)]
        assert events == [b"bloom.reserve", b"bloom.add", b"cuckoo.reserve", b"cuckoo.add", b"cuckoo.del"], events
        assert client("TYPE", "b") == "MBbloom--" and client("TYPE", "c") == "MBbloomCF"
        assert client("OBJECT", "ENCODING", "b") == b"raw"
        assert client("MEMORY", "USAGE", "b") > client("BF.INFO", "b", "SIZE")[0]
        assert client("COPY", "b", "b2") == 1
        assert client("DEBUG", "DIGEST-VALUE", "b") == client("DEBUG", "DIGEST-VALUE", "b2")
        client("BF.ADD", "b2", "y")
        assert client("DEBUG", "DIGEST-VALUE", "b") != client("DEBUG", "DIGEST-VALUE", "b2")
        assert client("BF.EXISTS", "b", "y") == 0
        info = client("INFO", "bf_bloom").decode()
        assert "bf_bloom_objects:2" in info and "bf_bloom_items:3" in info, info
        client("BF.RESERVE", "large", "0.01", "3000000")
        client("UNLINK", "large")
        assert harness.wait_for(lambda: b"lazyfreed_objects:1" in client("INFO", "memory"))
        client("FLUSHALL", "SYNC")
        info = client("INFO", "bf_bloom").decode()
        assert "bf_bloom_objects:0" in info and "bf_bloom_bytes:0\r" in info, info
        arities = {"BF.RESERVE": -4, "BF.ADD": 3, "BF.MADD": -3, "BF.INSERT": -4, "BF.EXISTS": 3, "BF.MEXISTS": -3,
                   "BF.INFO": -2, "BF.CARD": 2, "BF.DEBUG": 2, "BF.SCANDUMP": 3, "BF.LOADCHUNK": 4, "CF.RESERVE": -3,
                   "CF.ADD": 3, "CF.ADDNX": 3, "CF.INSERT": -4, "CF.INSERTNX": -4, "CF.EXISTS": 3, "CF.MEXISTS": -3,
                   "CF.COUNT": 3, "CF.DEL": 3, "CF.INFO": 2, "CF.DEBUG": 2, "CF.SCANDUMP": 3, "CF.LOADCHUNK": 4}
        for name, answer in zip(arities, client("COMMAND", "INFO", *arities)):
            assert answer[1] == arities[name], answer
            reads = name.split(".")[1] in ("EXISTS", "MEXISTS", "INFO", "CARD", "DEBUG", "SCANDUMP", "COUNT")
            assert ("readonly" in answer[2]) == reads and ("write" in answer[2]) != reads, answer
            assert answer[3:6] == [1, 1, 1]
            assert (answer[7] == [b"dont_cache"]) == (name.split(".")[1] in ("INFO", "DEBUG", "SCANDUMP")), answer
        assert client("COMMAND", "GETKEYS", "BF.MERGE", "d", 2, "a", "b", "x") == [b"d", b"a", b"b"]
        assert client("COMMAND", "GETKEYS", "BF.INSERT", "k", "ITEMS", "x") == [b"k"]
        # Fast is what takes the same time whatever the filter and however many the items.
        names = [c[0].decode() for c in client("COMMAND") if c[0][:3] in (b"bf.", b"cf.")]
        fast = {name for name, c in zip(names, client("COMMAND", "INFO", *names)) if "fast" in c[2]}
        assert fast == {"bf.advance", "bf.card", "bf.exists", "bf.reserve", "cf.count", "cf.exists", "cf.info",
                        "cf.reserve"}, fast


def test_command_docs():
    with Server() as server:
        client = server.client()

        def table(pairs):
            return dict(zip(map(bytes.decode, pairs[::2]), pairs[1::2]))

        def names(arguments):
            """Every name on every level: alternatives in brackets."""
            found = []
            for argument in map(table, arguments):
                found.append(argument["name"].decode())
                if "arguments" in argument:
                    found.append(names(argument["arguments"]))
            return found

        docs = {name.decode(): table(doc) for name, doc in zip(*[iter(client("COMMAND", "DOCS"))] * 2)
                if name[:3] in (b"bf.", b"cf.")}
        assert len(docs) == 28
        assert docs["bf.card"]["since"] == b"2.4.4"
        expected = {
            "bf.add": ["key", "item"], "bf.card": ["key"], "bf.loadchunk": ["key", "iterator", "data"],
            "bf.merge": ["destination", "numkeys", "source"],
            "bf.info": ["key", "single_value", ["capacity", "size", "filters", "items", "expansion", "error",
                                                "tightening", "maxscaledcapacity", "fpr", "headroom"]],
            "bf.insert": ["key", "capacity", "error", "expansion", "nocreate", "nonscaling", ["nonscaling", "scale_to"],
                          "items", "item"],
            "bf.reserve": ["key", "error_rate", "capacity", "expansion", "nonscaling",
                           ["nonscaling", "layout", ["layout", "line"], "layout", ["layout", "growing"], "window",
                            ["window", "seconds"]]],
            "cf.insertnx": ["key", "capacity", "nocreate", "items", "item"],
            "cf.reserve": ["key", "capacity", "bucketsize", "maxiterations", "expansion"],
        }
        for name, arguments in expected.items():
            assert names(docs[name]["arguments"]) == arguments, (name, names(docs[name]["arguments"]))
        for name, doc in docs.items():
            assert doc["summary"] and doc["complexity"] and doc["group"] == b"module", name
            top = [table(a)["name"] for a in doc["arguments"]]
            assert len(top) == len(set(top)), (name, top)  # no name twice
            assert table(doc["arguments"][0])["type"] == b"key" and table(doc["arguments"][0])["key_spec_index"] == 0


def test_metrics():
    """INFO bf: what is there, what grew, what was refused, and how often filters answer wrongly."""
    with Server() as server:
        client = server.client()

        def info():
            pairs = [line.split(":") for line in client("INFO", "bf").decode().split("\r\n") if ":" in line]
            return {name: float(value) for name, value in pairs}

        assert not any(info().values())
        client("BF.RESERVE", "b", "0.01", 1000)
        client("BF.MADD", "b", *range(1000))
        full = info()["bf_bloom_false_positive_rate"]
        # By the number of items, within a 64th of the fill of what the bits say.
        assert abs(full - float(client("BF.INFO", "b", "FPR")[0])) < 0.0015, full
        client("BF.MADD", "b", *range(1000, 2500))
        client("BF.RESERVE", "l", "0.01", 1000, "LAYOUT", "LINE")
        client("BF.MADD", "l", *range(1000))
        client("BF.RESERVE", "w", "0.01", 1000, "WINDOW", 1000)
        client("BF.MADD", "w", *range(1000))
        client("BF.RESERVE", "g", "0.01", 1000, "LAYOUT", "GROWING")
        client.many([("BF.ADD", "g", i) for i in range(1000)])
        grown = info()["bf_growing_growths"]
        assert 60 < grown < 90, grown  # 16 for each doubling, from 31 items on
        client("DEL", "g")
        client("BF.RESERVE", "g", "0.01", 2000, "LAYOUT", "GROWING")
        client("BF.MADD", "g", *range(1500))
        assert info()["bf_growing_growths"] == grown
        client("CF.RESERVE", "c", 1000)
        client("CF.INSERT", "c", "ITEMS", *range(1500))
        found = info()
        found["bf_growing_growths"] -= grown
        for kind, key in (("bloom", "b"), ("line", "l"), ("window", "w"), ("growing", "g"), ("cuckoo", "c")):
            family = "CF" if kind == "cuckoo" else "BF"
            assert found[f"bf_{kind}_objects"] == 1 and found[f"bf_{kind}_items"] > 990, (kind, found)
            values = client(f"{family}.INFO", key)
            assert found[f"bf_{kind}_bytes"] == values[values.index("Size") + 1], (kind, found)
            assert found[f"bf_{kind}_filters"] == values[values.index("Number of filters") + 1], (kind, found)
            assert found[f"bf_{kind}_growths"] == found[f"bf_{kind}_filters"] - 1, (kind, found)
            strangers = sum(client(f"{family}.MEXISTS", key, *[f"none:{i}" for i in range(20_000)]))
            # Of 20000, 5 sigma.
            expected = 20_000 * found[f"bf_{kind}_false_positive_rate"]
            assert abs(strangers - expected) < 5 * expected ** 0.5 + 0.2 * expected, (kind, strangers, expected)
        assert found["bf_refused_over_limit"] == 0
        client("BF.RESERVE", "x", "0.01", 2, "NONSCALING")
        client("BF.MADD", "x", 1, 2, 3, 4)
        client("CF.RESERVE", "y", 2, "BUCKETSIZE", 1, "EXPANSION", 0)
        client("CF.INSERT", "y", "ITEMS", 1, 1, 1, 1)
        client("BF.LOADCHUNK", "z", 1, "x")
        client("CF.LOADCHUNK", "z", 1, "x")
        client("RESTORE", "z", 0, client("DUMP", "b")[:-10] + b"0123456789")  # refused by the server, not by us
        client("CONFIG", "SET", config_name(client, "bf-max-bytes-per-key"), 100)
        client("BF.RESERVE", "z", "0.01", 10_000)
        client("COPY", "b", "z")
        found = info()
        assert found["bf_refused_full"] == 3 and found["bf_refused_bad_data"] == 2, found
        assert found["bf_refused_over_limit"] == 2 and found["bf_refused_no_memory"] == 0, found
        client("FLUSHALL", "SYNC")
        found = info()
        assert not any(value for name, value in found.items() if "refused" not in name and "growths" not in name), found


def page(name):
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "doc", name)) as file:
        return file.read()


def test_documented_names():
    """Every setting and every metric is documented, and nothing else is."""
    with Server() as server:
        client = server.client()
        rows = page("redis.md").split("## Settings")[1].split("## How")[0].split("\n| ")[2:]
        settings = {name for row in rows for name in row.split(" |")[0].split(", ")}
        found = {name.decode() for name in client("CONFIG", "GET", "bf*")[::2]}
        if config_name(client, "bf-error-rate") == "bf.error-rate":
            settings = {s if s.startswith("bf.") else "bf." + s.removeprefix("bf-") for s in settings}
        else:
            found |= {name.decode() for name in client("CONFIG", "GET", "cf-*")[::2]}
        assert settings == found, settings ^ found
        rows = page("redis-operators.md").split("## Metrics")[1].split("## Blocking")[0].split("\n| ")[2:]
        fields = {name for row in rows for name in row.split(" |")[0].split(", ")}
        metrics = {field.replace("*kind*", kind) for field in fields
                   for kind in ("bloom", "cuckoo", "line", "window", "growing", "valkey")}
        found = {line.split(":")[0] for line in client("INFO", "bf").decode().split("\r\n") if ":" in line}
        assert metrics == found, metrics ^ found


def test_access_control():
    """What the operators' page says: on Redis 7.0 categories do not hold for modules, key patterns do."""
    with Server() as server:
        client = server.client()
        categories = not isinstance(client("ACL", "CAT", "bloom"), Error)

        def allowed(rules, *command):
            client("ACL", "SETUSER", "u", "reset", "on", ">p", *rules.split())
            user = server.client()
            assert user("AUTH", "u", "p") == "OK"
            reply = user(*command)
            user.close()
            return not (isinstance(reply, Error) and reply.startswith("NOPERM"))

        assert allowed("~* +@read", "BF.EXISTS", "k", "x") == categories
        assert allowed("~* +@all -@write", "BF.ADD", "k", "x") != categories
        assert allowed("~seen:* +bf.add", "BF.ADD", "seen:1", "x")
        assert not allowed("~seen:* +bf.add", "BF.ADD", "other", "x")
        assert allowed("%R~* +bf.exists", "BF.EXISTS", "k", "x")
        assert not allowed("%R~* +bf.add", "BF.ADD", "k", "x")


def test_many_items():
    """Batches answer as single commands do, also where tables are touched ahead."""
    with Server() as server:
        client = server.client()
        for family in ("BF", "CF"):
            client("BF.RESERVE", "BF", "0.01", 30_000_000)  # 41 MB
            client("CF.RESERVE", "CF", 30_000_000)
            items = [f"item:{i}" for i in range(10_000)]
            if family == "BF":
                added = client("BF.MADD", "BF", *items)
            else:
                added = client("CF.INSERT", "CF", "ITEMS", *items)
            assert sum(added) >= 9_990
            asked = items[:500] + [f"none:{i}" for i in range(500)]
            together = client(f"{family}.MEXISTS", family, *asked)
            alone = client.many([(f"{family}.EXISTS", family, item) for item in asked])
            assert together == alone and all(together[:500]) and sum(together[500:]) < 5


if __name__ == "__main__":
    harness.run(globals())
