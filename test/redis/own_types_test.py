#!/usr/bin/env python3
"""Promises: LAYOUT LINE behaves as every other Bloom filter does, only in other bytes; a window never answers no for an
item inside it, forgets items outside, reads the clock only on a primary, and replicates and logs when it did.
Would notice: an item inside the window that is gone, one outside that stays, a replica that differs."""
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
            assert client("BF.RESERVE", "b", "0.01", "3", *words) == Error("ERR layout must be LINE")


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


if __name__ == "__main__":
    harness.run(globals())
