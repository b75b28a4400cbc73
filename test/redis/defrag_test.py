#!/usr/bin/env python3
"""Promises: active defragmentation moves tables, lists and values of every type while they are queried and changed, and
nothing of them changes. Would notice: a digest that differs, an item that is gone, nothing moved. Needs a server with
an allocator that can tell (make test-defrag)."""
import harness
from harness import Error, Server, wait_for

KINDS = (("BF.RESERVE", "0.01", "600"), ("BF.RESERVE", "0.01", "600", "LAYOUT", "LINE"),
         ("BF.RESERVE", "0.01", "600", "WINDOW", "600"), ("CF.RESERVE", "600"),
         ("BF.RESERVE", "0.01", "2000", "LAYOUT", "GROWING"))


def test_defrag():
    with Server() as server:
        client = server.client()
        for i in range(8000):
            command, *words = KINDS[i % 5]
            client.socket.sendall(client.pack([command, f"k{i}", *words]))
            add = ("CF.INSERT", f"k{i}", "ITEMS") if i % 5 == 3 else ("BF.MADD", f"k{i}")
            client.socket.sendall(client.pack([*add, *range(20)]))
            client.read(), client.read()
        client("BF.RESERVE", "grown", "0.01", "10")
        client("BF.MADD", "grown", *range(3000))
        kept = [i for i in range(8000) if i // 5 % 4 == 0]
        client("DEL", *[f"k{i}" for i in range(8000) if i // 5 % 4 != 0])
        before = [client("DEBUG", "DIGEST-VALUE", f"k{i}") for i in kept]
        for name, value in (("active-defrag-ignore-bytes", "1"), ("active-defrag-threshold-lower", "1"),
                            ("active-defrag-cycle-min", "60"), ("active-defrag-cycle-max", "75"),
                            ("activedefrag", "yes")):
            answer = client("CONFIG", "SET", name, value)
            assert not isinstance(answer, Error), f"{name}: {answer}: this server cannot defragment"

        def moved(section):
            text = client("INFO", "bf_" + section).decode()
            return int(text.split(f"bf_{section}_defrag_moved:")[1].split()[0])

        for section in ("bloom", "line", "window", "cuckoo", "growing"):
            assert wait_for(lambda: moved(section) > 100, 60), section
        assert [client("DEBUG", "DIGEST-VALUE", f"k{i}") for i in kept] == before
        for i in kept[:200]:
            assert all(client("CF.MEXISTS" if i % 5 == 3 else "BF.MEXISTS", f"k{i}", *range(20)))
        assert all(client("BF.MEXISTS", "grown", *range(3000)))


if __name__ == "__main__":
    harness.run(globals())
