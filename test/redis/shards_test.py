#!/usr/bin/env python3
"""Promises: a file of shards goes to the keys name:{i} of a cluster, and `perhaps query --redis` answers as `perhaps
query` does of the file, same lines and same exit code, also while slots move and after a master was killed; what is not
whole, or of another partition, is refused and never answered no. Would notice: a line that differs, a key on the wrong
shard, an answer where there is no filter. shards_test.py FOLDER: where the programs are."""
import os
import re
import signal
import subprocess
import sys
import tempfile

import harness
from cluster_test import NODE_TIMEOUT, Cluster, agreed, nodes, set_node_timeout, six_nodes, slot_of
from harness import Error, Server, wait_for

PROGRAMS = sys.argv.pop(1)
SHARDS = 8


class Tool:
    def __init__(self, folder):
        self.folder = folder

    def __call__(self, *words, stdin=b""):
        done = subprocess.run([os.path.join(PROGRAMS, "perhaps"), *words], capture_output=True, input=stdin,
                              cwd=self.folder, timeout=120)
        return done.returncode, done.stdout, done.stderr.decode()

    def ok(self, *words, stdin=b""):
        code, out, trouble = self(*words, stdin=stdin)
        assert code == 0 and not trouble, (words, code, trouble)
        return out

    def refuses(self, text, *words):
        code, out, trouble = self(*words)
        assert code == 2 and text in trouble and not out, (words, code, trouble)

    def write(self, name, keys):
        with open(os.path.join(self.folder, name), "w") as f:
            f.write("".join(f"{key}\n" for key in keys))


def tool_with_keys(folder):
    tool = Tool(folder)
    tool.write("keys", (f"item:{i}" for i in range(20000)))
    tool.write("mixed", (f"item:{i}" for i in range(15000, 60000)))
    tool.write("none", (f"other:{i}" for i in range(20)))
    return tool


def same_as_the_file(tool, file, url, *more):
    """Every way of asking, of the file and of the server."""
    for words in (("mixed",), ("-v", "mixed"), ("-c", "mixed"), ("-n", "keys", "mixed"), ("-m", "20000", "mixed"),
                  ("-q", "mixed"), ("-q", "none"), ("none",), ("-e", "item:7", "-e", "other:7"), ("--json", "mixed"),
                  ("--field", "2", "--delimiter", ":", "mixed")):
        here, there = tool("query", file, *words), tool("query", "--redis", url, *more, *words)
        assert here == there, (words, here[0], there[0], here[2], there[2], len(here[1]), len(there[1]))
    stdin = b"item:1\nother:1\nitem:19999"
    assert tool("query", file, stdin=stdin) == tool("query", "--redis", url, *more, stdin=stdin)


def test_cluster():
    with six_nodes() as servers, tempfile.TemporaryDirectory() as folder:
        tool = tool_with_keys(folder)
        ports = list(servers)
        cluster = Cluster(ports)
        url = f"redis-cluster://127.0.0.1:{ports[0]}/seen"
        tool.ok("build", "--format", "redisbloom-bf", "--shards", str(SHARDS), "-o", "seen.shards", "keys")

        # Half of it is not it.
        for i in range(SHARDS):
            tool.ok("build", "--format", "redisbloom-bf", "--shards", str(SHARDS), "--only", str(i), "-o", f"part.{i}",
                    "keys")
        tool.ok("push", "part.0", url)
        tool.refuses("seen:{1}: no such key", "query", "--redis", url, "-e", "item:1")
        tool.refuses("seen:{1}: no such key", "pull", url, "-o", "part.shards")
        assert not os.path.exists(os.path.join(folder, "part.shards"))
        for i in range(1, SHARDS):
            tool.ok("push", "--shards", str(SHARDS), f"part.{i}", url)
        same_as_the_file(tool, "seen.shards", url)
        keys = [f"seen:{{{i}}}" for i in range(SHARDS)]
        assert len({slot_of(k) for k in keys}) == SHARDS
        assert sum(cluster("BF.CARD", k) for k in keys) > 19900
        numbers = [cluster("BF.INFO", k) for k in keys]
        # Whole, in the place of the parts.
        tool.refuses("exists (--replace", "push", "seen.shards", url)
        tool.ok("push", "--replace", "seen.shards", url)
        assert [cluster("BF.INFO", k) for k in keys] == numbers
        same_as_the_file(tool, "seen.shards", url, "--shards", str(SHARDS))
        # Every node leads there, and one that is named plainly too.
        for port in ports:
            code, out, _ = tool("query", "-c", "--redis", f"redis-cluster://127.0.0.1:{port}/seen", "keys")
            assert (code, out) == (0, b"20000\n")
        assert tool.ok("query", "-c", "--redis", f"redis://127.0.0.1:{ports[1]}/seen", "keys") == b"20000\n"
        # Another partition under this name would answer no for keys that are there.
        tool.ok("build", "--format", "redisbloom-bf", "--shards", "4", "-o", "four", "keys")
        tool.refuses("is in 8 shards", "push", "--replace", "four", url)
        tool.refuses("says that there are 8", "query", "--redis", url, "--shards", "4", "-e", "item:1")
        tool.refuses("--shards 4", "push", "--shards", "4", "seen.shards", url)
        tool.ok("build", "--format", "redisbloom-bf", "-o", "plain", "keys")
        tool.refuses("a filter cannot be split", "push", "--shards", "4", "plain", url)
        tool.refuses("is in 8 shards", "push", "--replace", "plain", url)
        # All of them back in one file, as it was.
        tool.ok("pull", url, "-o", "back.shards")
        with open(os.path.join(folder, "back.shards"), "rb") as a, open(os.path.join(folder, "seen.shards"), "rb") as b:
            assert a.read() == b.read()
        # One shard is a filter like any other.
        tool.ok("pull", url + ":{3}", "-o", "three")
        tool.ok("convert", "--entry", "shard 3", "--to", "redisbloom-bf", "--set", "form=stream", "-o", "entry",
                "seen.shards")
        with open(os.path.join(folder, "three"), "rb") as a, open(os.path.join(folder, "entry"), "rb") as b:
            assert a.read() == b.read()
        # Cuckoo filters and one key alone.
        tool.ok("build", "--format", "redisbloom-cf", "--shards", "3", "-o", "cf.shards", "keys")
        tool.ok("push", "cf.shards", url + "-cf")
        same_as_the_file(tool, "cf.shards", url + "-cf")
        tool.ok("push", "plain", url + "-one")
        same_as_the_file(tool, "plain", url + "-one")
        # The page's way to build and push one shard a job.
        page = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "doc", "redis.md")
        with open(page) as file:
            command = re.search(r"^    (perhaps split .*\n *seq .* parallel '.*\n.*')$", file.read(), re.MULTILINE)[1]
        command = command.replace("redis-cluster://localhost:7000/seen", url + "-page").replace("keys.txt", "keys")
        path = PROGRAMS + ":" + os.environ["PATH"]
        done = subprocess.run(["bash", "-o", "pipefail", "-c", command], cwd=folder, capture_output=True,
                              env={**os.environ, "PATH": path})
        assert done.returncode == 0, done.stderr
        assert tool.ok("query", "-c", "--redis", url + "-page", "keys") == b"20000\n"

        # A slot on its way: first with its key at home, then with the key at its new place, then done.
        assert wait_for(lambda: agreed(servers), 60)
        table = {i: n for i, n in nodes(cluster.at(ports[0])).items() if "master" in n[1]}
        slot = slot_of(keys[0])
        owner = next(i for i, n in table.items() if any(
            int(s.split("-")[0]) <= slot <= int(s.split("-")[-1]) for s in n[3] if not s.startswith("[")))
        target = next(i for i in table if i != owner)
        a, b = table[owner][0], table[target][0]
        assert cluster.at(b)("CLUSTER", "SETSLOT", slot, "IMPORTING", owner) == "OK"
        assert cluster.at(a)("CLUSTER", "SETSLOT", slot, "MIGRATING", target) == "OK"
        same_as_the_file(tool, "seen.shards", url)
        moving = cluster.at(a)("CLUSTER", "GETKEYSINSLOT", slot, 10)
        assert keys[0].encode() in moving
        assert cluster.at(a)("MIGRATE", "127.0.0.1", b, "", 0, 10000, "KEYS", *moving) == "OK"
        same_as_the_file(tool, "seen.shards", url)
        tool.ok("push", "--replace", "seen.shards", url)
        same_as_the_file(tool, "seen.shards", url)
        for port in (b, a):
            assert cluster.at(port)("CLUSTER", "SETSLOT", slot, "NODE", target) == "OK"
        same_as_the_file(tool, "seen.shards", url)

        # A master dies: its replica is waited for.
        for _, n in table.items():
            assert cluster.at(n[0])("WAIT", 1, 10000) >= 1
        alive = next(p for p in ports if p != b)
        assert wait_for(lambda: agreed(servers), 60)
        set_node_timeout(servers, NODE_TIMEOUT)
        servers[b].stop(signal.SIGKILL)
        url = url.replace(str(ports[0]), str(alive))
        here = tool("query", "seen.shards", "mixed")
        assert tool("query", "--redis", url, "mixed") == here
        # What is gone is not answered no.
        cluster.drop(b)
        assert cluster("DEL", keys[1]) == 1
        tool.refuses("seen:{1}: no such key", "query", "--redis", url, "-e", "item:1")
        tool.refuses("seen:{1}: no such key", "pull", url, "-o", "part.shards")
        assert not os.path.exists(os.path.join(folder, "part.shards"))


def test_one_server():
    with Server() as server, tempfile.TemporaryDirectory() as folder:
        client = server.client()
        tool = tool_with_keys(folder)
        url = f"redis://127.0.0.1:{server.port}/"
        for family in ("bf", "cf"):
            tool.ok("build", "--format", "redisbloom-" + family, "-o", family, "keys")
            tool.ok("push", family, url + family)
            same_as_the_file(tool, family, url + family)
        tool.ok("build", "--format", "redisbloom-bf", "--shards", "2", "-o", "two", "keys")
        tool.ok("push", "two", url + "two")
        same_as_the_file(tool, "two", url + "two")
        # Made by hand, without a number: --shards says it.
        client("DEL", "two:shards")
        tool.refuses("no such key", "query", "--redis", url + "two", "-e", "item:1")
        same_as_the_file(tool, "two", url + "two", "--shards", "2")
        client("SET", "two:shards", "many")
        tool.refuses("'many' is not a number of shards", "query", "--redis", url + "two", "-e", "item:1")
        client("SET", "text", "x")
        tool.refuses("of type string, not a filter", "query", "--redis", url + "text", "-e", "x")
        tool.refuses("no such key", "query", "--redis", url + "nothing", "-e", "x")
        tool.refuses("names no key", "query", "--redis", url, "-e", "x")
        tool.refuses("redis:// if it is not a cluster", "query", "--redis", url.replace("redis", "redis-cluster") + "x",
                     "-e", "x")
        tool.refuses("127.0.0.1:1: ", "query", "--redis", "redis://127.0.0.1:1/x", "-e", "x")
        tool.refuses("excludes", "query", "--redis", url + "bf", "--seek", "-e", "x")
        # A window, as it is now.
        client("BF.RESERVE", "window", "0.01", "1000", "WINDOW", "1000")
        client("BF.MADD", "window", "a", "b")
        assert tool("query", "--redis", url + "window", "-e", "a", "-e", "c") == (0, b"a\n", "")
        # A secret.
        client("CONFIG", "SET", "requirepass", "secret")
        tool.refuses("NOAUTH", "query", "--redis", url + "bf", "-e", "item:1")
        tool.refuses("WRONGPASS", "query", "--redis", url.replace("//", "//:wrong@") + "bf", "-e", "item:1")
        assert tool.ok("query", "--redis", url.replace("//", "//:secret@") + "bf", "-e", "item:1") == b"item:1\n"


if __name__ == "__main__":
    harness.run(globals())
