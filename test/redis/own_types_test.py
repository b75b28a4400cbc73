#!/usr/bin/env python3
"""Promises: LAYOUT LINE behaves as every other Bloom filter does, only in other bytes; a window never answers no for an
item inside it, forgets items outside, reads the clock only on a primary, and replicates and logs when it did; a growing
filter keeps its items and its rate while it grows, asks for memory before it does, and stays whole if it gets none.
Would notice: an item inside the window that is gone, one outside that stays, a replica that differs; a rate or a size
that is left behind while a filter grows, a limit that it exceeds."""
import time

import harness
from harness import Clock, Error, Server
from persistence_test import caught_up, replicate


def test_line():
    with Server() as server:
        for protocol in (2, 3):
            client = server.client(protocol)
            key = f"line{protocol}"
            assert client("BF.RESERVE", key, "0.01", "1000", "LAYOUT", "LINE") == "OK"
            assert client("BF.RESERVE", key, "0.01", "1000", "layout", "line") == Error("ERR item exists")
            assert client("TYPE", key) == "perhapsLB"
            assert client("BF.ADD", key, "x") == 1 and client("BF.ADD", key, "x") == 0
            assert client("BF.MADD", key, "x", "y", "y") == [0, 1, 0]
            assert client("BF.MEXISTS", key, "x", "y", "z") == [1, 1, 0]
            assert client("BF.EXISTS", key, "y") == 1
            assert client("BF.CARD", key) == 2
            assert client("BF.INSERT", key, "NOCREATE", "ITEMS", "z") == [1]
            answers = client("BF.MADD", key, *range(5000))
            assert sum(answers) > 4900
            assert all(client("BF.MEXISTS", key, *range(5000)))
            strangers = sum(client("BF.MEXISTS", key, *[f"none:{i}" for i in range(20000)]))
            # At most 1 % asked for over all links: 200 of 20000, 5 sigma = 71.
            assert strangers < 271, strangers
            assert client("BF.INFO", key, "FILTERS") in ([3], {"Number of filters": 3})
        client = server.client()
        chunks, iterator = [], 0
        while True:
            iterator, data = client("BF.SCANDUMP", "line2", iterator)
            if iterator == 0:
                break
            chunks.append((iterator, data))
            assert client("BF.LOADCHUNK", "copy", iterator, data) == "OK"
        assert client("DEBUG", "DIGEST-VALUE", "copy") == client("DEBUG", "DIGEST-VALUE", "line2")
        assert client("COPY", "line2", "line9") == 1
        assert client("BF.MERGE", "line9", 1, "line2") == "OK"
        assert client("BF.MERGE", "union", 2, "line2", "none") == "OK"
        assert all(client("BF.MEXISTS", "union", *range(5000)))
        client("BF.ADD", "plain", "x")
        assert client("BF.MERGE", "line9", 1, "plain").startswith("WRONGTYPE")
        assert client("BF.RESERVE", "a", "0.01", "3", "NONSCALING", "LAYOUT", "LINE") == "OK"
        assert client("BF.MADD", "a", 1, 2, 3, 4, 5)[3:] == [Error("ERR non scaling filter is full")]
        for words in (("LAYOUT",), ("LAYOUT", "BLOCK")):
            assert client("BF.RESERVE", "b", "0.01", "3", *words) == Error("ERR layout must be LINE or GROWING")


def test_window_by_items():
    with Server() as server:
        client = server.client()
        assert client("BF.RESERVE", "w", "0.001", "1000", "WINDOW", "1000") == "OK"
        assert client("TYPE", "w") == "perhapsWF"
        assert client("BF.ADD", "w", "x") == 1 and client("BF.ADD", "w", "x") == 0
        for first in range(0, 20000, 500):
            client("BF.MADD", "w", *range(first, first + 500))
            last = first + 500
            assert all(client("BF.MEXISTS", "w", *range(max(0, last - 1000), last))), "one inside the window is gone"
        # 8/7 of the window and no longer; at 0.1 % of 10000 strangers some 10, 5 sigma = 16.
        assert sum(client("BF.MEXISTS", "w", *range(0, 10000))) < 26
        info = client("BF.INFO", "w")
        assert info[:2] == ["Capacity", 1000] and info[-1] is None and info[4:6] == ["Number of filters", 1]
        assert 1000 <= client("BF.CARD", "w") <= 1150
        for words in (("WINDOW",), ("WINDOW", "x"), ("WINDOW", "0")):
            assert client("BF.RESERVE", "b", "0.01", "3", *words).startswith("ERR window must be in the range")
        for words in (("EXPANSION", "2"), ("NONSCALING",), ("LAYOUT", "LINE")):
            assert client("BF.RESERVE", "b", "0.01", "3", "WINDOW", "10", *words) == Error(
                "ERR a window takes no EXPANSION, NONSCALING or LAYOUT")
        # A word that nobody knows, where RedisBloom has none of them, is not passed over.
        for words in (("WINDOW", "10", "SECOND"), ("SECONDS", "WINDOW", "10"), ("LAYOUT", "LINE", "FOO")):
            assert client("BF.RESERVE", "b", "0.01", "3", *words) == Error("ERR syntax error")
        assert client("BF.RESERVE", "empty", "0.01", "3", "WINDOW", "10") == "OK"
        assert client("BF.INFO", "empty", "FPR") == [b"0"]
        assert client("BF.MERGE", "w", 1, "w").startswith("WRONGTYPE")
        assert client("BF.ADVANCE", "w", 5) == "OK"


def test_window_counts_each_item_once():
    """CARD and ITEMS count the items to which ADD replied 1 and that are still remembered."""
    with Server() as server:
        client = server.client()
        client("BF.RESERVE", "w", "0.0001", "7000", "WINDOW", "7000")  # eight generations of 1000 insertions
        assert client("BF.ADD", "w", "x") == 1 and client("BF.ADD", "w", "x") == 0
        assert client("BF.CARD", "w") == 1 and client("BF.INFO", "w", "ITEMS") == [1]
        assert sum(client("BF.MADD", "w", *range(100), *range(100))) == 100
        assert client("BF.CARD", "w") == 101
        # The same 100 items again and again, over many generations: none is lost, none is counted twice.
        for _ in range(300):
            assert not any(client("BF.MADD", "w", *range(100)))
        assert client("BF.CARD", "w") == 100  # x is forgotten
        # Others, until those have left, too. At 1e-4 a few strangers are taken for known.
        answered = 0
        for first in range(1000, 41_000, 1000):
            answered = sum(client("BF.MADD", "w", *range(first, first + 1000)))
            assert answered > 990
        assert 6_950 < client("BF.CARD", "w") <= 8_000
        assert client("DEBUG", "RELOAD") == "OK" and 6_950 < client("BF.CARD", "w") <= 8_000


def test_window_by_time():
    """The test sets the primary's clock. The replica's is 30 years ahead, and must not matter."""
    start = int(time.time()) * 1000
    ours, theirs = Clock(start), Clock(start + 10**12)
    with Server(clock=ours) as primary, Server(clock=theirs) as replica:
        client = primary.client()
        behind = replicate(primary, replica)
        set_time = ours.set

        def same():
            assert caught_up(client, behind)
            return behind("DEBUG", "DIGEST-VALUE", "w") == client("DEBUG", "DIGEST-VALUE", "w")

        assert client("TIME")[0] == str(start // 1000).encode() and behind("TIME")[0] > client("TIME")[0]
        assert isinstance(client("CONFIG", "SET", "bf.clock", start), Error)  # no such setting in what we ship
        assert client("BF.RESERVE", "w", "0.001", "1000", "WINDOW", "2", "SECONDS") == "OK"
        client("BF.MADD", "w", *range(100))
        # Written to all the while, as long as the window is.
        for milliseconds in range(0, 2001, 100):
            set_time(start + milliseconds)
            assert all(client("BF.MEXISTS", "w", *range(100))), f"gone after {milliseconds} of 2000 ms"
            client("BF.ADD", "w", f"busy {milliseconds}")
            assert same() and all(behind("BF.MEXISTS", "w", *range(100)))
        # 8/7 of the window at most. Asked, it forgets without being written to; the replica when it is told.
        set_time(start + 2000 * 8 // 7 + 1)
        assert not any(client("BF.MEXISTS", "w", *range(100)))
        assert client("BF.EXISTS", "w", "busy 2000") == 1
        assert same() and all(behind("BF.MEXISTS", "w", *range(100)))
        client("BF.ADD", "w", "again")
        assert same() and not any(behind("BF.MEXISTS", "w", *range(100))) and behind("BF.EXISTS", "w", "again") == 1
        # Nobody sends a primary into the future, and time does not go back.
        assert client("BF.ADVANCE", "w", 2**62) == "OK"
        assert client("BF.EXISTS", "w", "again") == 1
        set_time(start)
        assert client("BF.EXISTS", "w", "again") == 1 and client("BF.ADD", "w", "again") == 0
        # Saved and loaded, the times are still there.
        assert client("DEBUG", "RELOAD") == "OK"
        set_time(start + 4000)
        assert client("BF.EXISTS", "w", "again") == 1
        set_time(start + 8000)
        assert client("BF.EXISTS", "w", "again") == 0
        # By the real clock, an hour later.
        set_time(start + 3_600_000)
        client("BF.ADD", "w", "now")
        assert client("BF.MEXISTS", "w", "now", "again") == [1, 0] and same()


def strangers(client, key, count=20_000):
    return sum(client("BF.MEXISTS", key, *[f"none:{i}" for i in range(count)]))


def field(client, key, name):
    return client("BF.INFO", key, name)[0]


def test_growing():
    """Grown from nothing to 300 times the capacity of its command. Every answer, every number, at many sizes."""
    with Server() as server:
        client = server.client()
        assert client("BF.RESERVE", "g", "0.01", "1000", "LAYOUT", "GROWING") == "OK"
        assert client("BF.RESERVE", "g", "0.01", "1000", "layout", "growing") == Error("ERR item exists")
        assert client("TYPE", "g") == "perhapsGF"
        assert client("BF.EXISTS", "g", "x") == 0 and client("BF.CARD", "g") == 0
        assert client("BF.ADD", "g", "x") == 1 and client("BF.ADD", "g", "x") == 0
        assert client("BF.MADD", "g", "x", "y", "y") == [0, 1, 0] and client("BF.CARD", "g") == 2
        assert client("BF.INSERT", "g", "NOCREATE", "ITEMS", "z", "y") == [1, 0]
        added, steps = 3, 0
        for last in (100, 1000, 3000, 10_000, 30_000, 100_000, 300_000):
            capacity = field(client, "g", "CAPACITY")
            for first in range(last // 10 if last > 100 else 0, last, 10_000):
                added += sum(client("BF.MADD", "g", *range(first, min(first + 10_000, last))))
            # An item may be taken for one that is there: at most 1 %, as the filter promises for absent ones.
            assert client("BF.CARD", "g") == added and last * 0.98 < added <= last + 3, (last, added)
            assert all(all(client("BF.MEXISTS", "g", *range(first, min(first + 10_000, last))))
                       for first in range(0, last, 10_000)), f"an item is gone at {last}"
            # 200 of 20000, 5 sigma = 71; and FPR counts the fingerprints.
            assert strangers(client, "g") < 271
            assert float(field(client, "g", "FPR")) < 0.01
            assert field(client, "g", "CAPACITY") > capacity or last == 100
            assert field(client, "g", "CAPACITY") >= added and field(client, "g", "HEADROOM") > 0
            if last >= 3000:
                most = 18.2 if last >= 10_000 else 23
                assert 8 * field(client, "g", "SIZE") < most * added, (last, field(client, "g", "SIZE"))
            steps += 1
        assert field(client, "g", "FILTERS") == 1 and field(client, "g", "EXPANSION") is None
        assert field(client, "g", "ERROR") == b"0.01"
        assert field(client, "g", "MAXSCALEDCAPACITY") > 10 * added
        assert client("BF.DEBUG", "g")[0].startswith(f"items:{added} bytes:".encode())
        growths = int(client("INFO", "bf_growing").split(b"bf_growing_growths:")[1].split()[0])
        assert growths >= steps - 1, growths
        # Made for as many as are said, if that is more than nothing.
        assert client("BF.RESERVE", "made", "0.001", "50000", "LAYOUT", "GROWING") == "OK"
        assert field(client, "made", "CAPACITY") >= 50_000 and field(client, "made", "ERROR") == b"0.001"
        for words in (("EXPANSION", "2"), ("NONSCALING",)):
            assert client("BF.RESERVE", "b", "0.01", "3", "LAYOUT", "GROWING", *words) == Error(
                "ERR a growing filter takes no EXPANSION or NONSCALING")
        for words in (("LAYOUT", "GROWING", "FOO"), ("LAYOUT", "GROWING", "LAYOUT", "LINE")):
            assert client("BF.RESERVE", "b", "0.01", "3", *words) == Error("ERR syntax error")
        assert client("BF.RESERVE", "b", "0.01", "3", "WINDOW", "10", "LAYOUT", "GROWING").startswith("ERR a window")
        assert client("BF.RESERVE", "b", "1e-13", "3", "LAYOUT", "GROWING") == Error(
            "ERR error rate of a growing filter must be at least 1e-12")
        assert client("EXISTS", "b") == 0


def dumped(client, key, into):
    """By SCANDUMP and LOADCHUNK."""
    iterator = 0
    while True:
        iterator, data = client("BF.SCANDUMP", key, iterator)
        if iterator == 0:
            return client("DEBUG", "DIGEST-VALUE", into) == client("DEBUG", "DIGEST-VALUE", key)
        assert client("BF.LOADCHUNK", into, iterator, data) == "OK"


def test_growing_travels():
    """In the middle of a step, when some of its parts have been moved and others wait."""
    with Server() as primary, Server() as replica:
        client, behind = primary.client(), replicate(primary, replica)
        client("BF.RESERVE", "g", "0.01", "1000", "LAYOUT", "GROWING")
        waited = 0
        for first in range(0, 160_000, 4000):
            client("BF.MADD", "g", *range(first, first + 4000))
            waiting = int(client("BF.DEBUG", "g")[0].split(b"waiting:")[1].split()[0])
            waited += waiting != 0
            if waiting == 0 and first % 40_000 != 0:
                continue
            client("DEL", "copy", "chunks")
            assert client("COPY", "g", "copy") == 1 and dumped(client, "g", "chunks")
            assert client("RESTORE", "copy", 0, client("DUMP", "g"), "REPLACE") == "OK"
            client("BF.MADD", "g", "more", first), client("BF.MADD", "copy", "more", first)
            client("BF.MADD", "chunks", "more", first)
            assert len({client("DEBUG", "DIGEST-VALUE", key)[0] for key in ("g", "copy", "chunks")}) == 1
            assert caught_up(client, behind)
            assert behind("DEBUG", "DIGEST-VALUE", "g") == client("DEBUG", "DIGEST-VALUE", "g")
        assert waited >= 5, waited
        assert client("BF.CARD", "chunks") == client("BF.CARD", "copy")
        assert all(behind("BF.MEXISTS", "g", *range(160_000)))


def test_growing_merges():
    with Server() as server:
        client = server.client()
        for key, first, count in (("a", 0, 30_000), ("b", 20_000, 3000), ("c", 50_000, 500)):
            client("BF.RESERVE", key, "0.01", "1000", "LAYOUT", "GROWING")
            client("BF.MADD", key, *range(first, first + count))
        cards = {key: client("BF.CARD", key) for key in "abc"}
        assert client("BF.MERGE", "union", 4, "a", "b", "none", "c") == "OK"
        assert client("TYPE", "union") == "perhapsGF"
        assert client("BF.CARD", "union") == sum(cards.values())
        items = [*range(30_000), *range(50_000, 50_500)]
        assert all(client("BF.MEXISTS", "union", *items))
        # The rates of three add up: 600 of 20000, 5 sigma = 121.
        assert strangers(client, "union") < 721
        assert client("BF.MADD", "union", *range(60_000, 90_000)).count(1) > 28_000
        assert all(client("BF.MEXISTS", "union", *items, *range(60_000, 90_000)))
        # Into one that is there; into itself; nothing at all.
        assert client("BF.MERGE", "b", 2, "b", "c") == "OK"
        assert client("BF.CARD", "b") == cards["b"] + cards["c"]
        assert all(client("BF.MEXISTS", "b", *range(20_000, 23_000), *range(50_000, 50_500)))
        before = client("DEBUG", "DIGEST-VALUE", "b")
        assert client("BF.MERGE", "b", 1, "b") == "OK" and client("DEBUG", "DIGEST-VALUE", "b") == before
        # Others are refused, and leave the destination as it was.
        client("BF.ADD", "plain", "x")
        for command in (("b", 2, "a", "plain"), ("plain", 1, "a"), ("new", 2, "a", "plain"), ("new", 2, "plain", "a")):
            assert client("BF.MERGE", *command).startswith("WRONGTYPE"), command
        client("CONFIG", "SET", "bf.max-bytes-per-key", 60_000)
        assert client("BF.MERGE", "b", 1, "a") == Error("ERR operation exceeds bloom object memory limit")
        assert client("DEBUG", "DIGEST-VALUE", "b") == before and client("EXISTS", "new") == 0


def test_growing_within_its_limit():
    """Under bf-max-bytes-per-key it grows up to the limit and not beyond, keeps what it has, and goes on if the limit
    is raised. Only the difference is charged for a block that takes the place of another."""
    with Server() as primary, Server() as replica:
        client, behind = primary.client(), replicate(primary, replica)
        limit = 200_000
        client("CONFIG", "SET", "bf.max-bytes-per-key", limit)
        client("BF.RESERVE", "g", "0.01", "1000", "LAYOUT", "GROWING")
        refused = Error("ERR operation exceeds bloom object memory limit")
        replies = []
        for first in range(0, 150_000, 5000):
            replies += client("BF.MADD", "g", *range(first, first + 5000))
        assert refused in replies
        last = replies.index(refused)
        size = field(client, "g", "SIZE")
        assert 0.9 * limit < size <= limit, size
        assert field(client, "g", "MAXSCALEDCAPACITY") < 1.05 * field(client, "g", "CAPACITY")
        assert all(client("BF.MEXISTS", "g", *range(last)))
        # What was refused is not there, but for wrong answers: 1 % of 10000, 5 sigma = 50.
        assert sum(client("BF.MEXISTS", "g", *range(last + 100, last + 10_100))) < 150 + 50
        assert caught_up(client, behind) and behind("BF.CARD", "g") == client("BF.CARD", "g")
        client("CONFIG", "SET", "bf.max-bytes-per-key", 0)
        more = range(100_000, 110_000)
        assert refused not in client("BF.MADD", "g", *more)
        assert field(client, "g", "SIZE") > limit and all(client("BF.MEXISTS", "g", *range(last), *more))
        assert caught_up(client, behind) and all(behind("BF.MEXISTS", "g", *range(last), *more))


if __name__ == "__main__":
    harness.run(globals())
