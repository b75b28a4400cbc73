#!/usr/bin/env python3
"""Shards on the command line: a build in parts equals the build in one piece, and a file of shards is queried as one
filter. shard_test.py PERHAPS SHARDS_PEER"""
import os
import re
import subprocess
import sys
import unittest

from cli_test import PERHAPS, Case, lines

PEER = sys.argv[2]

KEYS = [b"key %d" % i for i in range(5000)]


class ShardCase(Case):
    def setUp(self):
        super().setUp()
        self.write("keys", lines(KEYS))
        self.write("strangers", lines(b"stranger %d" % i for i in range(20000)))


class Merge(ShardCase):
    """The union of the shards equals the direct build, byte for byte. Would notice: a shard that is sized for its own
    keys, a key in two shards or in none, a number in the header that differs."""

    def parts(self, count, *args, stdin=b""):
        names = []
        for i in range(count):
            names.append(f"part.{i}")
            self.ok("build", "--shard", f"{i}/{count}", "-o", names[-1], *args, stdin=stdin)
        return names

    def test_bytes_are_those_of_one_build(self):
        for family in ("line", "block", "classic", "counting", "quotient"):
            for sizing in ((), ("--keys-expected", "6000"), ("--bits-per-key", "12"), ("--max-bytes", "64Ki")):
                if family in ("counting", "quotient") and sizing[:1] != ("--keys-expected",):
                    continue
                args = ("--filter", family, *sizing, "keys")
                self.ok("build", "-o", "whole", *args)
                self.ok("merge", "-o", "union", *self.parts(3, *args))
                self.assertEqual(self.read("union"), self.read("whole"), args)

    def test_pipes_and_numbers(self):
        self.ok("build", "-o", "whole", "--keys-expected", "5000", stdin=lines(KEYS))
        self.ok("merge", "-o", "union", *self.parts(4, "--keys-expected", "5000", stdin=lines(KEYS)))
        self.assertEqual(self.read("union"), self.read("whole"))
        numbers = b"".join(i.to_bytes(8, "little") for i in range(3000))
        self.write("numbers", numbers)
        self.ok("build", "--keys-as", "u64", "-o", "whole", "numbers")
        self.ok("merge", "-o", "union", *self.parts(2, "--keys-as", "u64", "numbers"))
        self.assertEqual(self.read("union"), self.read("whole"))

    def test_refusals(self):
        for family in ("fuse", "ribbon", "cuckoo", "window", "scalable"):
            self.refused("build", "--filter", family, "--keys-expected", "5000", "--shard", "0/2", "-o", "x", "keys",
                         says="cannot be merged")
        self.refused("build", "--shard", "0/2", "-o", "x", stdin=lines(KEYS), says="--keys-expected")
        for shard in ("2/2", "0/0", "1", "x/2", "-1/2", "1/", "0/99999999"):
            self.refused("build", "--shard", shard, "-o", "x", "keys", says="--shard")
        self.refused("build", "--shard", "0/2", "--format", "guava", "-o", "x", "keys", says="--shard")


class Shards(ShardCase):
    """A file of shards answers as its filters do, each for its own keys; joined parts are the file made at once. Would
    notice: a key that is looked up in another shard, shards of two partitions in one file, a changed byte."""

    def test_is_queried_as_one_filter(self):
        for name in ("redisbloom-bf", "redisbloom-cf", "guava"):
            self.ok("build", "--format", name, "--shards", "8", "-o", "s", "keys")
            self.assertEqual(self.text("query", "s", "keys"), lines(KEYS).decode())
            found = int(self.text("query", "-c", "s", "strangers", code=0))
            # At most 3 % of 20000, plus 5 sigma.
            self.assertLess(found, 720, name)
            info = self.text("info", "s")
            self.assertIn("shard 7", info)
            self.ok("verify", "s", "--keys", "keys")
        self.ok("convert", "--entry", "shard 3", "--to", "guava", "-o", "one", "s")
        self.assertLess(int(self.text("query", "-c", "one", "keys")), 1000)

    def test_parts_joined_are_the_whole(self):
        args = ("--format", "redisbloom-bf", "--fpr", "0.001", "--shards", "5")
        self.ok("build", *args, "-o", "whole", "keys")
        self.ok("build", *args, "-o", "piped", stdin=lines(KEYS))
        self.assertEqual(self.read("piped"), self.read("whole"))
        names = [f"part.{i}" for i in (3, 1, 0, 4, 2)]
        for i in range(5):
            self.ok("build", *args, "--only", str(i), "-o", f"part.{i}", "keys")
        self.assertIn("5 of 5 shards", self.text("merge", "-o", "joined", *names))
        self.assertEqual(self.read("joined"), self.read("whole"))
        # Keys of a missing shard are answered perhaps.
        self.ok("merge", "-o", "some", *names[:3])
        self.assertEqual(self.text("query", "some", "keys"), lines(KEYS).decode())
        self.assertIn("3 of 5 shards", self.text("info", "some"))
        self.refused("merge", "-o", "x", "joined", "part.2", says="in two of these files")
        self.ok("build", "--format", "redisbloom-bf", "--shards", "6", "--only", "5", "-o", "other", "keys")
        self.refused("merge", "-o", "x", *names, "other", says="5 and 6 shards")
        self.ok("build", "-o", "plain", "keys")
        self.refused("merge", "-o", "x", "joined", "plain", says="not a file of shards")

    def test_room_is_shared_out(self):
        args = ("--format", "redisbloom-bf", "--shards", "4", "--keys-expected", "40000")
        self.assertEqual(self.json("build", *args, "-o", "s", "keys")["keys"], 5000)
        # Room for n / N keys and 4 standard deviations each.
        self.assertEqual(self.info("s")["capacity"], 4 * (10000 + 400))

    def test_refusals(self):
        self.refused("build", "--format", "redisbloom-bf", "--shards", "64", "-o", "x", "-e", "one", says="has no keys")
        self.refused("build", "--format", "redisbloom-bf", "--shards", "4", "--only", "4", "-o", "x", "keys",
                     says="--only")
        self.refused("build", "--shards", "4", "-o", "x", "keys", says="--format")
        self.refused("build", "--only", "4", "-o", "x", "keys", says="--shards")
        self.ok("build", "--format", "redisbloom-bf", "--shards", "2", "-o", "s", "keys")
        good = self.read("s")
        self.write("cut", good[:-1])
        self.refused("query", "cut", "-e", "x", says="truncated")
        self.write("flipped", good[:-5] + bytes([good[-5] ^ 1]) + good[-4:])
        self.refused("query", "flipped", "-e", "x", says="checksum")


class Split(ShardCase):
    """A part has the records of its shard, all of them, in the order of the input and as they were written. The filter
    of a part equals the one that --shard or --only chooses from all keys. Would notice: a record in two parts or in
    none, another hash than that of build, an order that depends on threads, a file left by a run that failed."""

    def parts(self, count=3, name="part"):
        return [self.read(f"{name}.{i}") for i in range(count)]

    def split(self, *args, count=3, **more):
        return self.json("split", "--shards", str(count), "-o", "part.%d", *args, **more)

    def check_records(self, records):
        """Records that end in a newline, each in one part, in order."""
        parts = [part.splitlines(keepends=True) for part in self.parts()]
        self.assertEqual(sorted(sum(parts, [])), sorted(records))
        place = {record: i for i, record in enumerate(records)}
        for part in parts:
            places = [place[record] for record in part]
            self.assertEqual(places, sorted(places))
            self.assertGreater(len(part), 0)

    def test_parts_are_those_of_build(self):
        said = self.split("keys")
        self.check_records([key + b"\n" for key in KEYS])
        for i, part in enumerate(self.parts()):
            self.assertEqual(said[i], {"file": f"part.{i}", "shard": i, "shards": 3, "records": part.count(b"\n"),
                                       "bytes": len(part)})
            size = ("--keys-expected", "5000")
            self.ok("build", *size, "-o", "own", f"part.{i}")
            self.ok("build", *size, "--shard", f"{i}/3", "-o", "chosen", "keys")
            self.assertEqual(self.read("own"), self.read("chosen"))
            form = ("--format", "redisbloom-cf", "--shards", "3", "--only", str(i))
            self.ok("build", *form, "-o", "own", f"part.{i}")
            self.ok("build", *form, "-o", "chosen", "keys")
            self.assertEqual(self.read("own"), self.read("chosen"))

    def test_threads_keep_the_order(self):
        many = [b"a longer key, number %d, so that there are some blocks" % i for i in range(150_000)]
        self.write("many", lines(many))
        self.split("--threads", "4", "many", "keys")
        self.check_records([key + b"\n" for key in many + KEYS])
        first = self.parts()
        self.split("--threads", "1", "many", "keys")
        self.assertEqual(self.parts(), first)
        self.split("-", "keys", stdin=lines(many))
        self.assertEqual(self.parts(), first)
        self.split("--threads", "4", "many", "keys", count=1)
        self.assertEqual(self.read("part.0"), lines(many + KEYS))

    def test_recipes(self):
        mails = [b"%d,User%d@Example.org,x\n" % (i, i) for i in range(1000)]
        self.write("table.csv", b"id,mail,note\n" + b"".join(mails))
        self.write("plain", lines(b"user%d@example.org" % i for i in range(1000)))
        self.split("plain")
        plain = [set(part.split()) for part in self.parts()]
        args = ("--csv", "--field", "mail", "--lower")
        for inputs, stdin in [(["table.csv"], b""), (["-"], self.read("table.csv"))]:
            self.split(*args, *inputs, stdin=stdin)
            for part, keys in zip(self.parts(), plain):
                self.assertTrue(part.startswith(b"id,mail,note\n"))
                records = part.splitlines()[1:]
                self.assertEqual({r.split(b",")[1].lower() for r in records}, keys)
        self.write("other.csv", b"mail,id\nx,1\n")
        self.refused("split", "--shards", "3", "-o", "x.%d", *args, "table.csv", "other.csv", says="other.csv: its col")

    def test_frames(self):
        keys = [b"k%d" % i for i in range(100)]
        self.write("nul", b"\0".join(keys))  # the last one lacks its end
        self.split("-0", "nul")
        self.assertEqual(sorted(b"".join(self.parts()).split(b"\0")[:-1]), sorted(keys))
        framed = [len(k).to_bytes(4, "little") + k for k in keys]
        self.write("framed", b"".join(framed))
        self.split("--keys-as", "len32", "framed")
        self.assertEqual(sorted(re.findall(rb".\0\0\0k\d+", b"".join(self.parts()), re.DOTALL)), sorted(framed))
        numbers = [i.to_bytes(8, "little") for i in range(1000)]
        self.write("numbers", b"".join(numbers))
        self.split("--keys-as", "u64", "numbers")
        parts = self.parts()
        self.assertEqual(sorted(p[i:i + 8] for p in parts for i in range(0, len(p), 8)), sorted(numbers))
        self.ok("build", "--keys-as", "u64", "--keys-expected", "1000", "-o", "own", "part.1")
        self.ok("build", "--keys-as", "u64", "--keys-expected", "1000", "--shard", "1/3", "-o", "chosen", "numbers")
        self.assertEqual(self.read("own"), self.read("chosen"))

    def test_refusals(self):
        for pattern in ("part", "part.%d.%d", "%s"):
            self.refused("split", "--shards", "2", "-o", pattern, "keys", says="%d must stand once")
        self.refused("split", "--shards", "2000000", "-o", "p.%d", "keys", says="--shards 2000000: at most 1048576")
        self.refused("split", "--shards", "2", "-o", "p.%d", stdin=b"", says="no keys came from standard input")
        self.refused("split", "--shards", "2", "-o", "nowhere/p.%d", "keys", says="nowhere")
        self.write("p.1", b"old\n")
        self.refused("split", "--shards", "2", "-o", "p.%d", "keys", "p.1", says="p.1: holds the keys")
        # A bad record at the end: no part appears, and the old one stays.
        self.write("bad", lines(b"%d\tx" % i for i in range(1000)) + b"short\n")
        self.refused("split", "--shards", "2", "-o", "p.%d", "--field", "2", "bad", says="bad:1001")
        self.assertEqual(self.read("p.1"), b"old\n")

    def test_more_shards_than_descriptors(self):
        done = subprocess.run(["bash", "-c", f"ulimit -Sn 256; exec {PERHAPS} split --shards 700 -o p.%d keys"],
                              cwd=self.folder, capture_output=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(len([n for n in os.listdir(self.folder) if n.startswith("p.")]), 700)
        done = subprocess.run(["bash", "-c", f"ulimit -n 256; exec {PERHAPS} split --shards 700 -o q.%d keys"],
                              cwd=self.folder, capture_output=True)
        self.assertEqual(done.returncode, 2)
        self.assertIn(b"--shards 700: needs 1464 open files, and 256 are allowed", done.stderr)


class Recipes(ShardCase):
    """One recipe makes the keys of all shards. Would notice: a shard that is asked by the recipe of another one, which
    would deny what it holds."""

    def test_shards_that_contradict(self):
        self.ok("build", "-o", "given", "keys")
        self.ok("build", "-o", "lower", "--lower", "keys")
        self.ok("build", "-o", "again", "--lower", "--note", "other words", "keys")
        for parts, wrong in [(["given", "lower"], 1), (["lower", "again", "given"], 2), (["lower", "again"], None)]:
            subprocess.run([PEER, self.path("crafted"), *map(self.path, parts)], check=True)
            for command in [["query", "-c", "crafted", "keys"], ["info", "crafted"],
                            ["verify", "crafted", "--keys", "keys", "--absent-count", "10"]]:
                if wrong is None:
                    self.ok(*command)
                else:
                    self.refused(*command, says=f"crafted: shard {wrong} has another recipe than the one before it")

    def test_merging_shards_that_contradict(self):
        self.ok("build", "-o", "given", "keys")
        self.ok("build", "-o", "lower", "--lower", "keys")
        for name, parts in [("first", ["given", "-"]), ("second", ["-", "lower"]), ("fitting", ["-", "given"])]:
            parts = [part if part == "-" else self.path(part) for part in parts]
            subprocess.run([PEER, self.path(name), *parts], check=True)
        self.refused("merge", "first", "second", "-o", "both", says="first and second cannot be merged: their keys "
                     "were made by the recipes 'lines' and 'lines lower'")
        self.assertFalse(os.path.exists(self.path("both")))
        self.ok("merge", "first", "fitting", "-o", "both")
        self.ok("verify", "both", "--keys", "keys", "--absent-count", "10")


class Documentation(ShardCase):
    """The commands of doc/shards.md do what it says, unchanged except for the numbers of keys and shards. Would notice:
    an option that has another name now, parts that do not make the whole."""

    def test_commands(self):
        self.write("keys.txt", lines(KEYS))
        page = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "doc", "shards.md")
        with open(page) as file:
            commands = re.findall(r"^    ((?:seq|perhaps) .*)$", file.read(), re.MULTILINE)
        self.assertEqual(len([c for c in commands if "parallel" in c]), 4)
        self.ok("build", "--keys-expected", "5000", "-o", "one.perhaps", "keys")
        self.ok("build", "--format", "redisbloom-bf", "--shards", "16", "-o", "one.shards", "keys")
        merged = 0
        for command in commands:
            command = command.replace("1e9", "5000").replace("64", "16").replace("63", "15")
            done = subprocess.run(["bash", "-o", "pipefail", "-c", command], cwd=self.folder, capture_output=True,
                                  env={**os.environ, "PATH": os.path.dirname(PERHAPS) + ":" + os.environ["PATH"]})
            self.assertEqual(done.returncode, 0, (command, done.stderr))
            if output := re.match(r"perhaps merge -o seen\.(\w+)", command):
                self.assertEqual(self.read("seen." + output[1]), self.read("one." + output[1]), command)
                os.remove(self.path("seen." + output[1]))
                merged += 1
        self.assertEqual(merged, 4)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
