#!/usr/bin/env python3
"""Promises: through RDB files, append-only files with and without an RDB preamble, crashes, DUMP and RESTORE, full and
partial synchronisation with and without a disk, and on replicas with other settings, filters keep their digest;
replicas get what happened, and nothing if nothing did. Would notice: a digest that differs, an error on a replica, a
command too many in the stream."""
import os
import signal
import struct

import harness
from harness import Error, Server, wait_for
from hostile_test import crc64, type_id

KEYS = ("bf", "bf-fixed", "bf-empty", "bf-merged", "cf", "cf-grown", "cf-deleted", "cf-empty", "cf-full", "line",
        "line-fixed", "window", "window-by-time", "growing", "growing-empty", "growing-merged")


def fill(client, items=2000):
    client("BF.RESERVE", "bf", "0.01", "50")
    client("BF.RESERVE", "bf-fixed", "0.001", items, "NONSCALING")
    client("BF.RESERVE", "bf-empty", "1e-9", "10", "EXPANSION", "7")
    client("BF.MADD", "bf", *range(items))
    client("BF.MADD", "bf-fixed", *range(items + 100))
    client("BF.MERGE", "bf-merged", 2, "bf", "bf")
    client("BF.RESERVE", "line", "0.01", "50", "LAYOUT", "LINE")
    client("BF.RESERVE", "line-fixed", "0.001", items, "NONSCALING", "LAYOUT", "LINE")
    client("BF.MADD", "line", *range(items))
    client("BF.MADD", "line-fixed", *range(items + 100))
    client("BF.RESERVE", "window", "0.01", "300", "WINDOW", "300")
    client("BF.MADD", "window", *range(items))
    client("BF.RESERVE", "window-by-time", "0.01", "3000", "WINDOW", "1000", "SECONDS")
    client("BF.MADD", "window-by-time", *range(items))
    client("BF.RESERVE", "growing", "0.01", "50", "LAYOUT", "GROWING")
    client("BF.RESERVE", "growing-empty", "1e-9", "70000", "LAYOUT", "GROWING")
    client("BF.MADD", "growing", *range(items))
    client("BF.MADD", "growing", *range(30_000, 60_000))
    client("BF.RESERVE", "growing-merged", "0.001", "50", "LAYOUT", "GROWING")
    client("BF.MADD", "growing-merged", *range(items))
    client("BF.MERGE", "growing-merged", 1, "growing")
    client("CF.RESERVE", "cf-empty", 1000, "BUCKETSIZE", 3, "MAXITERATIONS", 9, "EXPANSION", 2)
    client("CF.ADD", "cf", "x")
    client("CF.RESERVE", "cf-grown", 100, "EXPANSION", 2)
    client("CF.INSERT", "cf-grown", "ITEMS", *range(items))
    client("CF.RESERVE", "cf-deleted", 100)
    client("CF.INSERT", "cf-deleted", "ITEMS", *range(600))
    client.many([("CF.DEL", "cf-deleted", i) for i in range(0, 600, 3)])
    client("CF.RESERVE", "cf-full", 64, "EXPANSION", 0)
    client("CF.INSERT", "cf-full", "ITEMS", *range(200))


def digests(client):
    return {key: client("DEBUG", "DIGEST-VALUE", key)[0] for key in KEYS}


def test_rdb():
    with Server() as server:
        client = server.client()
        fill(client)
        before = digests(client)
        assert len(set(before.values())) == len(KEYS) - 1  # the merged one is its source
        assert client("DEBUG", "RELOAD") == "OK"
        assert digests(client) == before
        client("CONFIG", "SET", "rdbcompression", "no")
        assert client("DEBUG", "RELOAD") == "OK"
        assert digests(client) == before
        assert all(client("BF.MEXISTS", "bf", *range(2000)))


def test_dump_and_restore():
    with Server() as server, Server() as other:
        client, elsewhere = server.client(), other.client()
        fill(client)
        for key in KEYS:
            data = client("DUMP", key)
            assert elsewhere("RESTORE", key, 0, data) == "OK"
            assert client("RESTORE", key + ":again", 0, data) == "OK"
        assert digests(elsewhere) == digests(client)
        # And they go on alike.
        for c in (client, elsewhere):
            c("BF.MADD", "bf", *range(5000, 6000))
            c("BF.MADD", "growing", *range(5000, 15_000))
            c("CF.INSERT", "cf-grown", "ITEMS", *range(5000, 6000))
            c.many([("CF.DEL", "cf-grown", i) for i in range(0, 2000, 2)])
        assert digests(elsewhere) == digests(client)


def test_log():
    """With and without an RDB in front, rewritten and not, and after a crash."""
    for preamble in ("yes", "no"):
        server = Server("--appendonly", "yes", "--aof-use-rdb-preamble", preamble, "--appendfsync", "always",
                        "--auto-aof-rewrite-percentage", "0")
        with server:
            client = server.client()
            fill(client)
            before = digests(client)
            assert client("DEBUG", "LOADAOF") == "OK"
            assert digests(client) == before, "the log as it was written"
            client("BGREWRITEAOF")
            assert wait_for(lambda: b"aof_rewrite_in_progress:0" in client("INFO", "persistence")
                            and b"aof_rewrite_scheduled:0" in client("INFO", "persistence"))
            assert b"aof_last_bgrewrite_status:ok" in client("INFO", "persistence")
            assert client("DEBUG", "LOADAOF") == "OK"
            assert digests(client) == before, "the log rewritten, RDB in front: " + preamble
            client("BF.MADD", "bf", "after", "the", "rewrite")
            client("BF.MADD", "growing", *range(5000, 15_000))
            client("CF.ADD", "cf", "after")
            before = digests(client)
            client.close()
            server.stop(signal.SIGKILL)
            server.start()
            client = server.client()
            assert digests(client) == before, "after a crash"


def replicate(primary, replica):
    client = replica.client()
    client("REPLICAOF", "127.0.0.1", primary.port)
    assert wait_for(lambda: b"master_link_status:up" in client("INFO", "replication"))
    return client


def caught_up(primary, replica):
    def offset(client, name):
        text = client("INFO", "replication").decode()
        return int(text.split(name + ":")[1].split()[0])
    return wait_for(lambda: offset(primary, "master_repl_offset") == offset(replica, "slave_repl_offset"))


def test_replication():
    """A replica whose settings are all others, attached before and after the filters are there, with and without a
    disk; it must never answer its primary with an error."""
    other_settings = ("INITIAL_SIZE", "7", "ERROR_RATE", "0.2", "CF_MAX_EXPANSIONS", "1", "bf-expansion-factor", "5",
                      "cf-initial-size", "2000", "cf-max-iterations", "3", "bf-max-bytes-per-key", "10")
    for diskless in ("yes", "no"):
        with Server("--repl-diskless-sync", diskless) as primary, \
                Server("--repl-diskless-load", "swapdb" if diskless == "yes" else "disabled",
                       "--propagation-error-behavior", "panic-on-replicas", module_args=other_settings) as early, \
                Server(module_args=other_settings) as late:
            client = primary.client()
            first = replicate(primary, early)
            fill(client)
            client("BF.ADD", "made", "by default")
            client("BF.MADD", "made too", "a", "b")
            client("BF.INSERT", "made three", "CAPACITY", "5", "NONSCALING", "ITEMS", *range(10))
            client("BF.INSERT", "made four", "ERROR", "0.1", "ITEMS", "x")
            client("CF.ADD", "made five", "x")
            client("CF.INSERTNX", "made six", "ITEMS", "x", "y", "x")
            client("CF.COMPACT", "cf-grown")
            client("BF.LOADCHUNK", "loaded", 1, client("BF.SCANDUMP", "bf", 0)[1])
            iterator, data = client("BF.SCANDUMP", "bf", 1)
            client("BF.LOADCHUNK", "loaded", iterator, data)
            client("CF.LOADCHUNK", "loaded cf", 1, client("CF.SCANDUMP", "cf-grown", 0)[1])
            second = replicate(primary, late)
            client("BF.ADD", "made", "afterwards")
            assert caught_up(client, first) and caught_up(client, second)
            everything = client("DEBUG", "DIGEST")
            assert first("DEBUG", "DIGEST") == everything, diskless
            assert second("DEBUG", "DIGEST") == everything, diskless
            assert "CRITICAL" not in early.log() and "CRITICAL" not in late.log()
            assert isinstance(first("BF.ADD", "made", "x"), Error)  # READONLY


def test_partial_synchronisation():
    with Server("--repl-backlog-size", "10mb") as primary, Server() as replica:
        client = primary.client()
        behind = replicate(primary, replica)
        fill(client, 500)
        assert caught_up(client, behind)
        client("CLIENT", "KILL", "TYPE", "replica")
        client("BF.MADD", "bf", *range(9000, 9500))
        client("CF.INSERT", "cf", "ITEMS", *range(9000, 9500))
        assert wait_for(lambda: b"master_link_status:up" in behind("INFO", "replication"))
        assert caught_up(client, behind)
        assert behind("DEBUG", "DIGEST") == client("DEBUG", "DIGEST")
        assert b"sync_partial_ok:1" in client("INFO", "stats")


def test_what_is_replicated():
    with Server() as primary:
        client = primary.client()
        follower = primary.client()
        follower.socket.sendall(b"SYNC\r\n")
        line = follower.file.readline()
        while line == b"\n":
            line = follower.file.readline()
        if line.startswith(b"$EOF:"):  # without a disk
            mark, data = line[5:].strip(), b""
            while not data.endswith(mark):
                data += follower.file.read(1)
        else:
            follower.file.read(int(line[1:]))

        def told():
            """Commands since last asked, up to a mark."""
            client("PUBLISH", "mark", "here")
            commands = []
            while True:
                command = follower.read()
                if command[0] in (b"PUBLISH", b"publish"):
                    return commands
                if command[0].upper() not in (b"SELECT", b"PING", b"MULTI", b"EXEC"):
                    commands.append(command)

        told()
        client("BF.ADD", "a", "x")
        assert told() == [[b"BF.INSERT", b"a", b"CAPACITY", b"100", b"ERROR", b"0.01", b"EXPANSION", b"2", b"ITEMS",
                           b"x"]]
        client("BF.ADD", "a", "x")
        client("BF.MADD", "a", "x", "x")
        client("CF.ADD", "c", "x")
        client("CF.ADDNX", "c", "x")
        client("CF.DEL", "c", "none")
        assert told() == [[b"CF.RESERVE", b"c", b"1024", b"BUCKETSIZE", b"2", b"MAXITERATIONS", b"20", b"EXPANSION",
                           b"1"], [b"CF.ADD", b"c", b"x"]]
        client("BF.MADD", "a", "x", "y", "z", "y")
        assert told() == [[b"BF.MADD", b"a", b"y", b"z"]]
        client("BF.RESERVE", "f", "0.9", "2", "NONSCALING")
        assert [c[:3] for c in told()] == [[b"BF.LOADCHUNK", b"f", b"1"]]
        assert len(client("BF.MADD", "f", 1, 2, 3, 4)) == 3
        assert told() == [[b"BF.MADD", b"f", b"1", b"2"]]
        client("BF.ADD", "f", 9)
        client("BF.RESERVE", "f", "0.1", "2")
        client("BF.EXISTS", "f", 1)
        client("CF.COMPACT", "c")
        assert told() == []
        client("CF.RESERVE", "two", 4, "EXPANSION", 1)
        client("CF.INSERT", "two", "ITEMS", *"xxxxxxxxxx")
        client("BF.MERGE", "merged", 1, "a")
        assert [c[0] for c in told()] == [b"CF.RESERVE", b"CF.INSERT", b"BF.MERGE"]
        assert client("CF.COMPACT", "two") == "OK" and client("BF.MERGE", "merged", 2, "a", "merged") == "OK"
        assert told() == []
        client("BF.RESERVE", "g", "0.01", "10")
        assert told() == [[b"BF.RESERVE", b"g", b"0.01", b"10", b"EXPANSION", b"2"]]
        # Inside a transaction and a script too.
        client("MULTI")
        client("BF.ADD", "g", "1")
        client("BF.ADD", "g", "1")
        client("EXEC")
        client("EVAL", "return redis.call('BF.ADD', KEYS[1], 'lua')", 1, "g")
        assert told() == [[b"BF.ADD", b"g", b"1"], [b"BF.ADD", b"g", b"lua"]]


def test_expiry_and_rename():
    with Server() as server:
        client = server.client()
        fill(client, 100)
        client("RENAME", "bf", "moved")
        assert all(client("BF.MEXISTS", "moved", *range(100)))
        client("PEXPIRE", "moved", 1)
        assert wait_for(lambda: client("EXISTS", "moved") == 0)
        client("BF.ADD", "moved", "x")
        assert client("BF.CARD", "moved") == 1


def test_keys_of_other_modules_stop_the_start():
    """As the operators' page says, with the words of the log."""
    data = b"REDIS0009\xfe\x00\x07\x03top" + type_id("TopK-TYPE", 0)[1:] + b"\x00\xff"
    server = Server()
    with open(os.path.join(server.folder, "dump.rdb"), "wb") as file:
        file.write(data + struct.pack("<Q", crc64(data)))
    try:
        with server:
            raise AssertionError("it started")
    except RuntimeError as error:
        assert "contains module data I can't load: no matching module type 'TopK-TYPE'" in str(error)


if __name__ == "__main__":
    harness.run(globals())
