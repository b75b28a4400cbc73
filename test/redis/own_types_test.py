#!/usr/bin/env python3
"""Promises: LAYOUT LINE behaves as every Bloom filter of the surface does, only in other bytes; a window never answers
no for what lies inside it, forgets what lies outside, reads a clock only on a primary, and tells replicas and the log
when it does. Would notice: an item inside the window that is gone, one outside that stays, a replica that differs."""
import time

import harness
from harness import Error, Server, wait_for
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
        assert client("BF.MERGE", "w", 1, "w").startswith("WRONGTYPE")
        assert client("BF.ADVANCE", "w", 5) == "OK"


def test_window_by_time():
    """The clock is the server's, and seconds are the least there is: this waits for it, and asserts no duration."""
    with Server() as primary, Server() as replica:
        client = primary.client()
        behind = replicate(primary, replica)
        assert client("BF.RESERVE", "w", "0.001", "1000", "WINDOW", "2", "SECONDS") == "OK"
        start = time.monotonic()
        client("BF.MADD", "w", *range(100))
        while time.monotonic() - start < 1.8:
            answer = client("BF.MEXISTS", "w", *range(100))
            assert all(answer) or time.monotonic() - start >= 2, "gone inside the window"
            client("BF.ADD", "w", f"busy {time.monotonic()}")
        assert caught_up(client, behind)
        assert behind("DEBUG", "DIGEST-VALUE", "w") == client("DEBUG", "DIGEST-VALUE", "w")
        # Asked, it forgets without being written to; the replica when it is told.
        assert wait_for(lambda: not any(client("BF.MEXISTS", "w", *range(100))), 10)
        assert time.monotonic() - start >= 2
        assert caught_up(client, behind)
        assert behind("DEBUG", "DIGEST-VALUE", "w") == client("DEBUG", "DIGEST-VALUE", "w")
        client("BF.ADD", "w", "again")
        assert caught_up(client, behind)
        assert sum(behind("BF.MEXISTS", "w", *range(100))) == 0 and behind("BF.EXISTS", "w", "again") == 1
        assert behind("DEBUG", "DIGEST-VALUE", "w") == client("DEBUG", "DIGEST-VALUE", "w")
        # Nobody sends a primary into the future.
        assert client("BF.ADVANCE", "w", 2**62) == "OK"
        assert client("BF.EXISTS", "w", "again") == 1
        # Saved and loaded, the times are still there.
        assert client("DEBUG", "RELOAD") == "OK"
        assert client("BF.EXISTS", "w", "again") == 1
        assert wait_for(lambda: client("BF.EXISTS", "w", "again") == 0, 10)


if __name__ == "__main__":
    harness.run(globals())
