"""The promises of the command line, kept by the real binary.

    cli_test.py PERHAPS CLI_PEER [unittest arguments]

Every class begins with its promise. Files are in a folder that is removed afterwards; the seed is fixed.
"""
import gzip
import json
import os
import pty
import random
import re
import resource
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest

PERHAPS = os.path.abspath(sys.argv[1]) if len(sys.argv) > 1 else ""
PEER = os.path.abspath(sys.argv[2]) if len(sys.argv) > 2 else ""
SEED = 20260101
os.environ["SOURCE_DATE_EPOCH"] = "0"  # the time in a file is the same, so that files can be compared
EXACT = ["--fpr", "1e-9"]  # so few false positives that a small test never meets one


def families():
    """Every family, by what the tool says of it. extending_test compares it with declaration and documents."""
    done = subprocess.run([PERHAPS, "size", "--keys", "1M", "--json"], check=True, capture_output=True)
    return {row["family"]: row for row in json.loads(done.stdout)}


FAMILIES = families() if PERHAPS else {}


UNGUARDED = {"growing"}  # what it removes has no guard bits


def able(chosen):
    names = [name for name, about in FAMILIES.items() if chosen(about)]
    assert names, "no family can do this: nothing would be tested"
    return names


def zst(data):
    """A zstd file with uncompressed blocks (RFC 8878)."""
    out = struct.pack("<IBI", 0xFD2FB528, 0xA0, len(data))
    pieces = [data[i : i + 100_000] for i in range(0, len(data), 100_000)] or [b""]
    for i, piece in enumerate(pieces):
        header = len(piece) << 3 | (i + 1 == len(pieces))
        out += struct.pack("<I", header)[:3] + piece
    return out


def len32(keys):
    return b"".join(struct.pack("<I", len(k)) + k for k in keys)


def lines(keys):
    return b"".join(k + b"\n" for k in keys)


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="perhaps-cli-")
        self.addCleanup(shutil.rmtree, self.folder)

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, data):
        with open(self.path(name), "wb") as file:
            file.write(data)
        return name

    def read(self, name):
        with open(self.path(name), "rb") as file:
            return file.read()

    def filter_in(self, name):
        """A file of ours without what it says about itself (doc/container.md)."""
        data = self.read(name)
        params, sections = struct.unpack_from("<II", data, 56)
        table = 72 + 8 * params
        parts = []
        for at in range(table, table + 32 * sections, 32):
            kind, _, offset, size = struct.unpack_from("<IIQQ", data, at)
            if kind != 2:
                parts.append(data[offset : offset + size])
        return data[16:48], data[72:table], parts

    def run_perhaps(self, *args, stdin=b"", env=None):
        return subprocess.run([PERHAPS, *args], input=stdin, capture_output=True, cwd=self.folder, timeout=120,
                              env={**os.environ, **(env or {})})

    def ok(self, *args, stdin=b"", code=0):
        done = self.run_perhaps(*args, stdin=stdin)
        self.assertEqual(done.returncode, code, (args, done.stdout, done.stderr))
        return done.stdout

    def text(self, *args, stdin=b"", code=0):
        return self.ok(*args, stdin=stdin, code=code).decode()

    def json(self, *args, stdin=b"", code=0):
        return json.loads(self.ok(*args, "--json", stdin=stdin, code=code))

    def info(self, *args):
        """Of one file; info prints a list, however many files are named."""
        (one,) = self.json("info", *args)
        return one

    def refused(self, *args, says, stdin=b""):
        """Exit code 2, a message that names the thing, nothing on standard output, and no new file."""
        before = sorted(os.listdir(self.folder))
        done = self.run_perhaps(*args, stdin=stdin)
        self.assertEqual(done.returncode, 2, (args, done.stdout, done.stderr))
        for part in [says] if isinstance(says, str) else says:
            self.assertIn(part, done.stderr.decode())
        self.assertEqual(done.stdout, b"")
        self.assertEqual(sorted(os.listdir(self.folder)), before)
        return done.stderr.decode()


class Build(Case):
    """However they arrive, the same keys make the same file, byte for byte."""

    def setUp(self):
        super().setUp()
        self.keys = [b"key-%d" % i for i in range(5000)]
        self.write("keys.txt", lines(self.keys))
        self.ok("build", "-o", "want", "keys.txt")
        self.want = self.filter_in("want")

    def same(self, *args, stdin=b""):
        self.ok("build", "-o", "got", *args, stdin=stdin)
        self.assertEqual(self.filter_in("got"), self.want, args)

    def test_sources(self):
        text = lines(self.keys)
        self.write("half1", lines(self.keys[:2500]))
        self.write("half2", lines(self.keys[2500:]))
        self.write("keys.gz", gzip.compress(text))
        self.write("two.gz", gzip.compress(text[:20000]) + gzip.compress(text[20000:]) + bytes(512))
        self.write("keys.zst", zst(text))
        self.write("two.zst", zst(text[:20000]) + zst(text[20000:]))
        self.write("unended", text[:-1])
        self.same("half1", "half2")
        self.same("-", stdin=text)
        self.same(stdin=text)
        self.same("half1", "-", stdin=lines(self.keys[2500:]))
        self.same("-", stdin=gzip.compress(text))
        self.same("-", stdin=zst(text))
        for name in ["keys.gz", "two.gz", "keys.zst", "two.zst", "unended"]:
            self.same(name)
        with open(self.path("keys.txt"), "rb") as file:  # standard input is a file, not at its start
            file.seek(len(lines(self.keys[:10])))
            subprocess.run([PERHAPS, "build", "-o", self.path("rest"), "-"], stdin=file, check=True,
                           capture_output=True)
        self.assertEqual(self.info("rest")["keys"], 4990)

    def test_literals(self):
        self.ok("build", "-o", "a", "-e", "one", "-e", "-two", "-e", "[x,y]", "-e", "")
        self.write("three", b"one\n-two\n[x,y]\n\n")
        self.ok("build", "-o", "b", "three")
        self.assertEqual(self.read("a"), self.read("b"))

    def test_formats(self):
        self.same("--keys-as", "nul", "-", stdin=b"\0".join(self.keys) + b"\0")
        self.same("-0", "-", stdin=b"\0".join(self.keys))
        self.same("--keys-as", "hex", "-", stdin=lines(k.hex().encode() for k in self.keys))
        self.same("--keys-as", "hex", "-", stdin=lines(k.hex().upper().encode() for k in self.keys))
        self.same("--keys-as", "len32", self.write("l", len32(self.keys)))
        self.same("--keys-as", "len32", "-", stdin=len32(self.keys))
        self.same("--field", "2", "-", stdin=lines(b"x\t" + k + b"\ty" for k in self.keys))
        self.same("--field", "3", "--delimiter", ",", self.write("c", lines(b",x," + k for k in self.keys)))
        self.same("--lower", "-", stdin=lines(k.upper() for k in self.keys))
        self.same("--trim", "-", stdin=b"".join(b" \t" + k + b" \r\n" for k in self.keys))
        self.same("--field", "1", "--delimiter", ";", "--trim", "--lower", "-",
                  stdin=lines(b" " + k.upper() + b" ;x" for k in self.keys))

    def test_threads_make_no_difference(self):
        for threads in ["1", "2", "3", "8"]:
            self.same("--threads", threads, "keys.txt")
            self.same("--threads", threads, "-", stdin=lines(self.keys))

    def test_many_blocks(self):
        """Blocks are about a megabyte: records across their borders, and one larger than several blocks."""
        rng = random.Random(SEED)
        keys = [b"%x" % rng.getrandbits(8 * rng.randrange(1, 30)) for _ in range(150_000)]
        keys[70_000] = b"long" * 1_000_000
        self.write("keys", lines(keys))
        self.ok("build", "-o", "a", "--threads", "3", "keys")
        self.ok("build", "-o", "b", "-", stdin=lines(keys))
        self.ok("build", "-o", "c", "-", "--keys-as", "len32", stdin=len32(keys))
        self.ok("build", "-o", "d", "--threads", "3", "--keys-as", "len32", self.write("l", len32(keys)))
        for name in "bcd":
            self.assertEqual(self.filter_in("a"), self.filter_in(name))
        self.assertEqual(self.info("a")["keys"], 150_000)
        self.assertEqual(self.json("verify", "a", "--keys", "keys")["false_negatives"], 0)

    def test_agrees_with_the_library(self):
        for kind, as_, data in [
            ("numbers", "u64", b"".join(struct.pack("<Q", i) for i in range(5000))),
            ("text", "lines", lines(b"%d" % i for i in range(5000))),
        ]:
            subprocess.run([PEER, kind, self.path("peer"), "5000"], check=True)
            self.ok("build", "-o", "file", "--keys-as", as_, self.write("in", data))
            self.ok("build", "-o", "pipe", "--keys-as", as_, "-", stdin=data)
            self.assertEqual(self.filter_in("peer"), self.filter_in("file"))
            self.assertEqual(self.filter_in("peer"), self.filter_in("pipe"))
        self.ok("build", "-o", "numbers", "--keys-as", "u64", "-e", "42", "-e", "0x2b", "-e", "-1")
        self.assertEqual(self.ok("query", "numbers", "--keys-as", "u64", "-e", "43", "-e", "18446744073709551615"),
                         b"43\n18446744073709551615\n")
        self.ok("query", "numbers", "--recipe", "given", "-e", "42", code=1)  # the text is another key

    def test_empty_input(self):
        for args, stdin in [(["-"], b""), ([self.write("none", b"")], b""), (["-"], gzip.compress(b""))]:
            done = self.json("build", "-o", "empty", "--allow-empty", *args, stdin=stdin)
            self.assertEqual((done["keys"], done["fill"]), (0, 0))
            self.ok("query", "empty", "-e", "", code=1)
        self.ok("build", "-o", "one", "-", stdin=b"\n")  # an empty line is the empty key
        self.ok("query", "one", "-e", "")

    def test_shapes(self):
        for family in ["line", "block", "classic"]:
            d = self.json("build", "-o", family, "--filter", family, "--fpr", "2%", "keys.txt")
            self.assertEqual(d["family"], family)
            self.assertLess(d["fpr"], 0.025)
            d = self.json("build", "-o", family, "--filter", family, "--bits-per-key", "12", "keys.txt")
            self.assertAlmostEqual(d["bits_per_key"], 12, delta=0.2)
            d = self.json("build", "-o", family, "--filter", family, "--max-bytes", "8Ki", "keys.txt")
            self.assertLessEqual(d["bytes"], 8192)
            self.assertGreater(d["bytes"], 8100)
            self.assertEqual(self.json("verify", family, "--keys", "keys.txt")["false_negatives"], 0)

    def test_known_sizes(self):
        a = self.json("build", "-o", "a", "--keys-expected", "10k", "-", stdin=lines(self.keys))
        b = self.json("build", "-o", "b", "--keys-expected", "1e4", "keys.txt")
        self.assertEqual(self.read("a"), self.read("b"))
        self.assertEqual((a["keys"], b["keys"]), (5000, 5000))
        self.assertLess(a["fpr"], 0.001)
        self.assertEqual(self.info("a")["capacity"], 10_000)
        c = self.json("build", "-o", "c", "--max-bytes", "6250", "-", stdin=lines(self.keys))
        self.assertEqual((c["keys"], c["probes"]), (5000, 8))
        done = self.run_perhaps("build", "-o", "d", "--keys-expected", "100", "keys.txt")
        self.assertIn(b"5,000 keys came, 100 were expected", done.stderr)

    def test_on_disk(self):
        self.same("--on-disk", "keys.txt")
        self.same("--on-disk", "-", stdin=lines(self.keys))
        os.umask(0o077)
        self.write("secret", bytes(range(16)))
        for family in ["line", "block", "classic"]:
            for keyed in [[], ["--keyed", "secret"]]:
                shape = ["--filter", family, *keyed, "--keys-expected", "6000", "keys.txt"]
                memory = self.json("build", "-o", "memory", *shape)
                disk = self.json("build", "-o", "disk", "--on-disk", "--threads", "2", *shape)
                self.assertEqual(self.read("memory"), self.read("disk"))
                self.assertEqual((memory["fpr"], memory["keys"]), (disk["fpr"], disk["keys"]))
        self.refused("build", "-o", "x", "--on-disk", "--max-bytes", "1000T", "keys.txt", says="x: ")

    def test_seed_and_secret(self):
        self.ok("build", "-o", "a", "--seed", "7", "keys.txt")
        self.ok("build", "-o", "b", "--seed", "0x7", "keys.txt")
        self.assertEqual(self.read("a"), self.read("b"))
        self.assertNotEqual(self.filter_in("a"), self.want)
        self.assertEqual(self.info("a")["more"]["seed"], "7")
        os.umask(0o077)
        self.write("secret", bytes(range(16)))
        self.write("hex", bytes(range(16)).hex().encode() + b"\n")
        self.write("other", bytes(16))
        self.ok("build", "-o", "k1", "--keyed", "secret", "keys.txt")
        self.ok("build", "-o", "k2", "--keyed", "hex", "keys.txt")
        self.assertEqual(self.read("k1"), self.read("k2"))
        self.assertEqual(self.info("--keyed", "secret", "k1")["hash"], "siphash-1-3")
        self.assertEqual(self.json("verify", "k1", "--keyed", "hex", "--keys", "keys.txt")["false_negatives"], 0)
        for command in [["query", "k1", "-e", "x"], ["info", "k1"], ["add", "k1", "-e", "x"],
                        ["verify", "k1", "--keys", "keys.txt"], ["merge", "-o", "m", "k1", "k1"],
                        ["fold", "-o", "m", "k1"]]:
            self.refused(*command, says=["k1", "--keyed"])
            self.refused(*command, "--keyed", "other", says="k1")
        self.refused("query", "want", "-e", "x", "--keyed", "secret", says="want")
        self.refused("build", "-o", "x", "--keyed", self.write("s17", bytes(17)), "keys.txt", says=["s17", "17 bytes"])
        self.refused("build", "-o", "x", "--keyed", self.write("s32", b"g" * 32), "keys.txt",
                     says=["s32", "hex digits"])
        self.refused("build", "-o", "x", "--keyed", self.write("s0", b""), "keys.txt", says=["s0", "0 bytes"])
        self.refused("build", "-o", "x", "--keyed", "none", "keys.txt", says=["none", "No such file"])
        self.refused("build", "-o", "x", "--keyed", "secret", "--seed", "1", "keys.txt", says="--seed")
        os.chmod(self.path("secret"), 0o644)
        done = self.run_perhaps("info", "--keyed", "secret", "k1")
        self.assertIn(b"everybody can read", done.stderr)
        self.assertEqual(done.returncode, 0)

    def test_duplicates_are_counted_honestly(self):
        d = self.json("build", "-o", "d", "keys.txt", "keys.txt", "keys.txt")
        self.assertEqual(d["keys"], 15_000)
        self.assertAlmostEqual(d["keys_distinct"], 5000, delta=150)

    def test_warns_if_block_is_costly(self):
        done = self.run_perhaps("build", "-o", "b", "--filter", "block", "--fpr", "1e-5", "keys.txt")
        self.assertEqual(done.returncode, 0)
        self.assertRegex(done.stderr.decode(), r"warning: .*block filter takes \d\.\d\d times")
        self.assertEqual(self.run_perhaps("build", "-o", "b", "--filter", "block", "keys.txt").stderr, b"")

    def test_report(self):
        text = self.ok("build", "-o", "r", "keys.txt").decode()
        for part in ["r\n", "keys       5,000, about ", "from keys.txt", "filter     line, ", " probes, xxh3-64",
                     "bits per key", "keys/s"]:
            self.assertIn(part, text)
        d = self.json("build", "-o", "r", "keys.txt")
        for name in ["file", "family", "hash", "keys", "keys_distinct", "bits", "bytes", "probes", "bits_per_key",
                     "fill", "fpr", "threads", "seconds", "keys_per_second"]:
            self.assertIn(name, d)
        odd = os.fsdecode(b'q"\\\n\xff.perhaps')
        self.assertEqual(self.json("build", "-o", odd, "keys.txt")["file"], 'q"\\\n\ufffd.perhaps')


class Refusals(Case):
    """Bad input is exit code 2 and one clear sentence; nothing is written and nothing is lost."""

    def setUp(self):
        super().setUp()
        self.write("keys.txt", b"a\nb\nc\n")
        self.ok("build", "-o", "seen", "keys.txt")

    def test_arguments(self):
        for args, says in [
            (["frobnicate"], "'frobnicate' is not a command"),
            (["quary"], "did you mean query?"),
            (["--frob"], "--frob"),
            (["help", "nothing"], "'nothing' is not a command"),
            (["build", "keys.txt"], "--output is required"),
            (["build", "-o", "x", "--frob", "keys.txt"], "--frob"),
            (["build", "-o", "x", "--fpr", "0", "keys.txt"], "--fpr 0: must be between 0 and 1"),
            (["build", "-o", "x", "--fpr", "1", "keys.txt"], "--fpr 1"),
            (["build", "-o", "x", "--fpr", "nan", "keys.txt"], "--fpr nan"),
            (["build", "-o", "x", "--fpr", "-1", "keys.txt"], "--fpr -1"),
            (["build", "-o", "x", "--fpr", "0.1x", "keys.txt"], "--fpr 0.1x"),
            (["build", "-o", "x", "--bits-per-key", "0", "keys.txt"], "--bits-per-key 0"),
            (["build", "-o", "x", "--bits-per-key", "2000", "keys.txt"], "--bits-per-key 2000"),
            (["build", "-o", "x", "--max-bytes", "0", "keys.txt"], "--max-bytes 0: must be at least 1"),
            (["build", "-o", "x", "--max-bytes", "64Q", "keys.txt"], "--max-bytes 64Q: not a number"),
            (["build", "-o", "x", "--max-bytes", "-5", "keys.txt"], "--max-bytes -5"),
            (["build", "-o", "x", "--fpr", "0.1", "--max-bytes", "9", "keys.txt"], "excludes"),
            (["build", "-o", "x", "--filter", "cookoo", "keys.txt"],
             "--filter cookoo: must be one of line|block|classic"),
            (["build", "-o", "x", "--filter", "fuse", "--arity", "5", "keys.txt"], "--arity 5: must be one of 3|4"),
            (["build", "-o", "x", "--filter", "fuse", "--guard-bits", "5", "keys.txt"],
             "--guard-bits: a fuse filter does not erase"),
            (["build", "-o", "x", "--filter", "cuckoo", "--guard-bits", "17", "keys.txt"], "a number from 1 to 16"),
            (["build", "-o", "x", "--filter", "cuckoo", "--memory", "1M", "keys.txt"], "--memory: a cuckoo filter"),
            (["build", "-o", "x", "--filter", "ribbon", "--arity", "4", "keys.txt"], "--arity: a ribbon filter"),
            (["build", "-o", "x", "--filter", "ribbon", "--on-disk", "keys.txt"],
             "--on-disk: a ribbon filter is built in memory"),
            (["build", "-o", "x", "--filter", "scalable", "--max-bytes", "1M", "keys.txt"],
             "--filter scalable: its size"),
            (["build", "-o", "x", "--keys-as", "csv", "keys.txt"], "--keys-as csv: must be one of"),
            (["build", "-o", "x", "--threads", "0", "keys.txt"], "--threads 0"),
            (["build", "-o", "x", "--threads", "many", "keys.txt"], "--threads many"),
            (["build", "-o", "x", "--seed", "1.5", "keys.txt"], "--seed 1.5"),
            (["build", "-o", "x", "--field", "0", "keys.txt"], "--field 0"),
            (["build", "-o", "x", "--delimiter", "ab", "--field", "1", "keys.txt"], "--delimiter ab"),
            (["build", "-o", "x", "--keys-as", "u64", "--field", "1", "keys.txt"], "--field"),
            (["build", "-o", "x", "--keys-as", "u64", "--lower", "keys.txt"], "--lower"),
            (["build", "-o", "x", "--keys-as", "u64", "-e", "4x"], "-e 4x: not a 64-bit number"),
            (["build", "-o", "x", "--keys-as", "hex", "-e", "4"], "-e 4: an odd number of hex digits"),
            (["query"], "FILTER is required"),
            (["query", "seen", "-n", "--keys-as", "u64", "-e", "1"], "-n"),
            (["query", "seen", "-m", "x", "-e", "1"], "x: not a number"),
            (["verify", "seen"], "--keys is required"),
            (["size"], "--keys, --fpr, --max-bytes, --bits-per-key are needed"),
            (["size", "--keys", "0"], "--keys 0"),
            (["merge", "-o", "x"], "FILTER is required"), (["map"], "build|get is required"),
            (["query", "seen", "-l", "--json", "-e", "a"], "--files-with-matches excludes --json"),
            (["query", "seen", "-n", "--answers", "-e", "a"], "--line-number excludes --answers"),
            (["query", "seen", "--rest", "r", "-m", "1", "-e", "a"], "--max-count excludes --rest"),
            (["query", "seen", "--rest", "r", "-q", "-e", "a"], "--quiet excludes --rest"),
            (["bench", "--keys", "1k", "--frob", "1"], "--frob: there is no such option"),
            (["bench", "1"], "1: must be one of families|hash"),
            (["query", "seen", ""], "the name of a file is empty"),
            (["fold", "seen"], "--output is required"),
            (["fold", "-o", "x", "--times", "0", "seen"], "--times 0"),
            (["completion", "tcsh"], "tcsh"),
        ]:
            message = self.refused(*args, says=says)
            self.assertTrue(message.startswith("perhaps"), message)
            self.assertEqual(message.count("\n"), 1, message)

    def test_files(self):
        os.mkdir(self.path("folder"))
        for args, says in [
            (["build", "-o", "x", "none.txt"], "none.txt: No such file"),
            (["build", "-o", "x", "keys.txt", "none.txt"], "none.txt: No such file"),
            (["build", "-o", "x", "folder"], "folder: is a directory"),
            (["build", "-o", "folder", "keys.txt"], "folder: is a directory"),
            (["build", "-o", "nowhere/x", "keys.txt"], "nowhere/: No such file"),
            (["build", "-o", "keys.txt/x", "keys.txt"], "keys.txt/: "),
            (["build", "-o", "/proc/x", "keys.txt"], "/proc/"),
            (["build", "-o", "/dev/null", "keys.txt"], "/dev/null: is not a regular file"),
            (["query", "none", "-e", "a"], "none: "),
            (["query", "folder", "-e", "a"], "folder: "),
            (["query", "seen", "none.txt"], "none.txt: No such file"),
            (["query", "keys.txt", "-e", "a"], "keys.txt: "),
            (["query", "/dev/null", "-e", "a"], "/dev/null: "),
            (["add", "none", "-e", "a"], "none: "),
            (["add", "seen", "none.txt"], "none.txt: No such file"),
            (["info", "none"], "none: "),
            (["info", "keys.txt"], "keys.txt: "),
            (["verify", "seen", "--keys", "none.txt"], "none.txt: No such file"),
            (["verify", "seen", "--keys", "keys.txt", "--absent", "none.txt"], "none.txt: No such file"),
            (["merge", "-o", "x", "seen", "none"], "none: "),
            (["fold", "-o", "x", "none"], "none: "),
        ]:
            self.refused(*args, says=says)

    def test_records(self):
        u64 = struct.pack("<Q", 1)
        for as_, data, says in [
            ("u64", u64 + b"abc", "the last 3 bytes are not a whole 8-byte key"),
            ("u64", b"abc", "the last 3 bytes"),
            ("len32", len32([b"abc"])[:-1], "cut short"),
            ("len32", b"\1", "cut short"),
            ("len32", struct.pack("<I", 0x3FFFFFFF) + b"abc", "cut short"),  # and does not allocate 1 GiB
            ("len32", struct.pack("<I", 0xFFFFFFFF) + b"abc", "a record has 4294967295 bytes"),
            ("hex", b"00\nabc\n", ":2: an odd number of hex digits (3)"),
            ("hex", b"00\n0g\n", ":2: not a hex digit at column 2"),
        ]:
            self.refused("build", "-o", "x", "--keys-as", as_, self.write("in", data), says=["in", says])
            self.refused("build", "-o", "x", "--keys-as", as_, "-", stdin=data, says=["standard input", says])
            self.refused("add", "seen", "--recipe", "given", "--keys-as", as_, "in", says=says)
        data = b"a,b\n" * 100_000 + b"c\n" + b"a,b\n" * 100_000
        says = ":100001: there is 1 field, --field 2 needs more"
        self.refused("build", "-o", "x", "--field", "2", "--delimiter", ",", self.write("in", data), says="in" + says)
        self.refused("build", "-o", "x", "--field", "2", "--delimiter", ",", "-", stdin=data,
                     says="standard input" + says)

    def test_packed(self):
        text = lines(b"%d" % i for i in range(10_000))
        packed = gzip.compress(text)
        for data, says in [
            (packed[:-9], "gzip data is cut short"),
            (packed[:3000] + bytes(20) + packed[3020:], "damaged gzip data"),
            (packed + b"tail", "damaged gzip data"),
            (zst(text)[:-1], "zstd data is cut short"),
            (zst(text)[:9] + b"\7\0\0" + zst(text)[12:], "damaged zstd data"),
        ]:
            self.refused("build", "-o", "x", self.write("in", data), says=["in", says])
            self.refused("build", "-o", "x", "-", stdin=data, says=["standard input", says])

    def test_damage(self):
        """After a flipped bit, a truncation or an extension, every command gives an error, never an answer."""
        whole = self.read("seen")
        rng = random.Random(SEED)
        cases = {"empty": b"", "short": whole[:-1], "long": whole + b"\0", "magic": whole[:8]}
        for i in range(12):
            at = rng.randrange(len(whole))
            cases["bit at %d" % at] = whole[:at] + bytes([whole[at] ^ 1 << rng.randrange(8)]) + whole[at + 1 :]
        for name, data in cases.items():
            self.write("bad", data)
            self.refused("info", "bad", says="bad")
            self.refused("query", "bad", "-e", "a", says="bad")
            self.refused("add", "bad", "-e", "x", says="bad")
            self.refused("merge", "-o", "x", "seen", "bad", says="bad")
            self.assertEqual(self.read("bad"), data, name)
        # Without verification, damage to the table is not noticed, but reads still stay inside the file.
        table = struct.unpack_from("<I", whole, 12)[0]
        self.write("bad", whole[:table] + bytes([whole[table] ^ 1]) + whole[table + 1 :])
        self.assertEqual(self.info("--no-verify", "bad")["checksum"], "not checked")

    def test_more_than_the_machine(self):
        for family in ["line", "classic"]:
            self.refused("build", "-o", "x", "--filter", family, "--keys-expected", "1e15", "keys.txt",
                         says=["needs", "this machine has"])
            # Half of all 64-bit digests would be in it.
            self.refused("build", "-o", "x", "--filter", family, "--keys-expected", "9e18", "keys.txt",
                         says=[family + ": fpr: 1 % is out of reach for 9000000000000000000 keys"])
        self.refused("build", "-o", "x", "--max-bytes", "1000T", "keys.txt", says="this machine has")
        self.refused("bench", "--keys", "1e15", says="this machine has")

    def test_standard_input_twice(self):
        """It can be read only once: naming it twice is an error, instead of the second use reading nothing."""
        says = "standard input (-) is named twice"
        for args in [["build", "-o", "x", "-", "-"], ["query", "seen", "-", "-"], ["add", "seen", "-", "keys.txt", "-"],
                     ["verify", "seen", "--keys", "-", "--absent", "-"], ["verify", "seen", "--keys=-", "--keys=-"]]:
            self.refused(*args, says=says, stdin=b"a\n")

    def test_writers_always_check(self):
        """A damaged table never gets a fresh checksum: the commands that write have no --no-verify."""
        whole = self.read("seen")
        table = struct.unpack_from("<I", whole, 12)[0]
        self.write("bad", whole[:table] + bytes([whole[table] ^ 1]) + whole[table + 1 :])
        for args in [["add", "bad", "-e", "x"], ["merge", "-o", "x", "bad", "seen"], ["fold", "-o", "x", "bad"]]:
            self.refused(*args, "--no-verify", says="--no-verify")
            self.refused(*args, says="bad")

    def test_empty_secret_name(self):
        """An option that is given is not ignored, even if its value is empty, as from an unset variable in a script."""
        self.refused("build", "-o", "x", "--keyed", "", "keys.txt", says="--keyed")
        self.refused("query", "seen", "--keyed", "", "-e", "a", says="--keyed")

    def test_output_is_an_input(self):
        """A key file is not replaced by its filter, whatever name it is given by."""
        os.symlink("keys.txt", self.path("link"))
        self.refused("build", "-o", "keys.txt", "keys.txt", says="keys.txt: holds the keys")
        self.refused("build", "-o", "link", "seen", "./keys.txt", says="./keys.txt: holds the keys")
        with open(self.path("keys.txt"), "rb") as file:
            done = subprocess.run([PERHAPS, "build", "-o", self.path("keys.txt")], stdin=file, capture_output=True)
        self.assertEqual(done.returncode, 2)
        self.assertEqual(self.read("keys.txt"), b"a\nb\nc\n")
        for args in [["build", "keys.txt"], ["merge", "seen", "seen"], ["fold", "seen"]]:
            self.refused(*args, "-o", "-", says="-o -: a filter cannot be written to a pipe; name a file")

    def test_less_than_the_smallest(self):
        """--max-bytes is a limit: a family that cannot meet it is refused."""
        for family, least in [("line", 64), ("block", 32), ("classic", 1)]:
            args = ["build", "-o", "f", "--filter", family, "keys.txt", "--max-bytes"]
            self.assertEqual(self.json(*args, str(least))["bytes"], least)
            self.refused(*args, str(least - 1), says="--max-bytes %d" % (least - 1))
        fitting = [row["family"] for row in self.json("size", "--keys", "9", "--max-bytes", "32")]
        self.assertEqual(fitting[:2], ["block", "classic"])
        self.assertNotIn("line", fitting)
        for family in ["cuckoo", "quotient", "fuse"]:
            self.refused("build", "-o", "f", "--filter", family, "keys.txt", "--max-bytes", "8", says="--max-bytes 8")

    def test_bad_filter_before_the_keys(self):
        """A wrong name is reported at once, not at the end of the pipe: this pipe ends only after the report."""
        for args in [["query", "none"], ["verify", "none", "--keys", "-"]]:
            with subprocess.Popen([PERHAPS, *args], cwd=self.folder, stdin=subprocess.PIPE,
                                  stderr=subprocess.PIPE) as process:
                self.assertEqual(process.wait(timeout=60), 2, args)
                self.assertIn(b"none: ", process.stderr.read())

    def test_too_long_a_record(self):
        """A record of more than 1 GiB is an error that names its size, from an endless pipe as well as from a file."""
        with open("/dev/zero", "rb") as zeros:
            done = subprocess.run([PERHAPS, "build", "-o", self.path("x")], stdin=zeros, capture_output=True)
        self.assertEqual(done.returncode, 2)
        self.assertIn(b"standard input: a record has more than 1073741824 bytes", done.stderr)
        self.write("long", b"a\n")
        os.truncate(self.path("long"), 2**30 + 3)  # a sparse file
        self.refused("build", "-o", "x", "long", says="long: a record has 1073741825 bytes")
        self.refused("build", "-o", "x", "--keys-as", "len32", "-", stdin=struct.pack("<I", 2**30 + 1) + b"abc",
                     says="standard input: a record has 1073741825 bytes")

    def test_a_failed_command_keeps_the_old_file(self):
        before = self.read("seen")
        self.refused("build", "-o", "seen", "--keys-as", "u64", "keys.txt", says="keys.txt")
        self.refused("add", "seen", "--field", "2", "keys.txt", says="keys.txt:1")
        self.assertEqual(self.read("seen"), before)


class Scarcity(Case):
    """If the system lacks a resource, the work is slower or quieter, but never wrong, and nothing crashes."""

    def test_threads(self):
        """Stacks of 16 TiB do not fit next to each other, so most threads cannot be started."""
        def limit():
            hard = resource.getrlimit(resource.RLIMIT_STACK)[1]
            resource.setrlimit(resource.RLIMIT_STACK, (2**44, hard))

        self.write("wide", b"".join(b"%01000d\n" % i for i in range(20_000)))
        many = lines(b"%d" % (i % 1000) for i in range(2_200_000))
        for args, stdin, count in [(["wide"], b"", 20_000), (["-"], many, 2_200_000)]:
            done = subprocess.run([PERHAPS, "build", "-o", "f", "--threads", "16", "--json", *args], cwd=self.folder,
                                  input=stdin, capture_output=True, preexec_fn=limit)
            self.assertEqual(done.returncode, 0, done.stderr)
            d = json.loads(done.stdout)
            self.assertEqual(d["keys"], count)
            self.assertLess(d["threads"], 16)
            self.ok("build", "-o", "want", *args, stdin=stdin)
            self.assertEqual(self.read("f"), self.read("want"))

    def test_standard_error(self):
        """If it is closed or full, the warning is lost but the work is done; an error is still exit code 2."""
        self.write("keys", lines(b"%d" % i for i in range(100)))
        warns = [PERHAPS, "build", "--keys-expected", "10", "-o", "f", "keys"]
        for to in ["2>&-", "2>/dev/full", "<&- 2>&-"]:
            for args, code in [(warns, 0), ([PERHAPS, "info", "none"], 2)]:
                done = subprocess.run(["sh", "-c", '"$@" ' + to, "sh", *args], cwd=self.folder, capture_output=True)
                self.assertEqual((done.returncode, done.stderr), (code, b""), (args, to))
            self.ok("verify", "f", "--keys", "keys")
            os.unlink(self.path("f"))
        done = subprocess.run(["sh", "-c", '"$@" <&-', "sh", PERHAPS, "build", "-o", "f"], cwd=self.folder,
                              capture_output=True)
        self.assertEqual(done.returncode, 2)  # no input is not an empty input
        self.assertIn(b"standard input: Bad file descriptor", done.stderr)


class Query(Case):
    """The habits of grep: what is printed, what the exit code is, and in which order."""

    def setUp(self):
        super().setUp()
        rng = random.Random(SEED)
        words = [b"%x" % rng.getrandbits(20) for _ in range(3000)] + [b"", b" lead", b"trail ", b"\xff\xfe", b"a\tb"]
        rng.shuffle(words)
        self.write("set", lines(words[:1500]))
        self.write("ask", lines(words[1000:2500]))
        self.write("ask2", lines(words[500:1200]))
        self.ok("build", "-o", "f", *EXACT, "set")

    def grep(self, *args, files=("ask",), h=True):
        return subprocess.run(["grep", "-a", *(["-h"] if h else []), "-Fx", "-f", "set", *args, *files],
                              cwd=self.folder, capture_output=True, env={**os.environ, "LC_ALL": "C"})

    def same(self, *args, files=("ask",), h=True):
        want = self.grep(*args, files=files, h=h)
        got = self.run_perhaps("query", "f", *args, *files)
        self.assertEqual((got.stdout, got.returncode), (want.stdout, want.returncode), args)
        return got.stdout

    def test_as_grep(self):
        self.assertGreater(len(self.same()), 1000)
        self.same("-v")
        self.same("-n")
        self.same("-vn")
        self.same("-c")
        self.same("-vc")
        self.same("-q")
        self.same("-m", "7")
        self.same("-m7")
        self.same("-m0")
        self.same("-cm", "9")
        for way in ["--answers", "--json"]:
            answers = self.ok("query", "f", way, "-m", "2", "set").splitlines()
            self.assertEqual(len(answers), 2, way)
        self.same("-v", "--max-count=3")
        self.same("-m", "100000")
        self.same(files=("ask", "ask2"))
        self.same("-n", files=("ask", "ask2"), h=False)
        self.same(files=("/dev/null",))
        self.same("-c", files=("/dev/null",))

    def test_exit_codes(self):
        self.ok("query", "-q", "f", "ask")
        self.ok("query", "f", "-e", "not there", code=1)
        self.ok("query", "-v", "f", "-e", "not there")
        self.ok("query", "-v", "f", "set", code=1)
        self.ok("query", "-q", "f", "-", stdin=b"", code=1)

    def test_standard_input(self):
        for data in [self.read("ask"), gzip.compress(self.read("ask"))]:
            self.assertEqual(self.ok("query", "f", stdin=data), self.grep().stdout)
            self.assertEqual(self.ok("query", "-v", "f", "-", stdin=data), self.grep("-v").stdout)

    def test_records_come_out_as_they_came(self):
        keys = [b"a\nb", b"", b"c\0d", b"plain", b"x" * 70_000]
        out = [b"no", b"neither"]
        self.ok("build", "-o", "b", *EXACT, "--keys-as", "len32", "-", stdin=len32(keys))
        mixed = len32([keys[0], out[0], *keys[1:], out[1]])
        self.assertEqual(self.ok("query", "b", "--keys-as", "len32", "-", stdin=mixed), len32(keys))
        self.assertEqual(self.ok("query", "-v", "b", "--keys-as", "len32", self.write("m", mixed)), len32(out))
        self.assertEqual(self.ok("query", "b", "-0", "-", stdin=b"a\nb\0no\0plain"), b"a\nb\0plain\0")
        self.assertEqual(self.ok("query", "b", "-0n", "-", stdin=b"a\nb\0no\0plain"), b"1:a\nb\0" + b"3:plain\0")
        self.assertEqual(self.ok("query", "b", "-0", "-e", "plain", "-e", "a\nb"), b"plain\0a\nb\0")
        self.assertEqual(self.ok("query", "b", "--recipe", "given", "--keys-as", "hex", "-",
                                 stdin=b"630064\n00\n706C61696e\n"), b"630064\n706C61696e\n")
        numbers = [1, 2, 3, 2**64 - 1]
        self.ok("build", "-o", "n", *EXACT, "--keys-as", "u64", "-", stdin=struct.pack("<4Q", *numbers))
        self.assertEqual(self.ok("query", "n", "--keys-as", "u64", "-", stdin=struct.pack("<3Q", 9, 3, 2**64 - 1)),
                         struct.pack("<2Q", 3, 2**64 - 1))

    def test_fields_print_the_whole_record(self):
        self.ok("build", "-o", "m", *EXACT, "-e", "ann@example.org")
        csv = b"1,Ann@Example.org ,x\r\n2,bob@example.org,y\n"
        self.assertEqual(self.ok("query", "m", "--recipe", "given", "--field", "2", "--delimiter", ",", "--lower",
                                 "--trim", "-", stdin=csv), b"1,Ann@Example.org ,x\r\n")

    def test_json(self):
        d = self.json("query", "-c", "f", "ask")[0]
        self.assertEqual(d["keys"], 1500)
        self.assertEqual(d["selected"], int(self.grep("-c").stdout))

    def test_answers_before_the_input_ends(self):
        """A user who types, or tails a log, sees each answer at once: the pipe stays open here."""
        self.ok("build", "-o", "h", *EXACT, "-e", "hello")
        with subprocess.Popen([PERHAPS, "query", self.path("h"), "-"], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE) as p:
            p.stdin.write(b"hello\nnobody\nhel")
            p.stdin.flush()
            self.assertEqual(p.stdout.readline(), b"hello\n")
            p.stdin.write(b"lo\n")
            p.stdin.flush()
            self.assertEqual(p.stdout.readline(), b"hello\n")
            p.stdin.close()
            self.assertEqual(p.wait(), 0)

    def test_a_closed_pipe_is_no_error(self):
        self.write("big", b"hello\n" * 500_000)
        self.ok("build", "-o", "h", "-e", "hello")
        for restore in [True, False]:  # SIGPIPE as a shell leaves it, and ignored
            with subprocess.Popen([PERHAPS, "query", self.path("h"), self.path("big")], stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, restore_signals=restore) as p:
                self.assertEqual(p.stdout.readline(), b"hello\n")
                p.stdout.close()
                self.assertEqual(p.stderr.read(), b"")
                self.assertNotIn(p.wait(), (0, 2))

    def test_a_full_disk_is_an_error(self):
        with open("/dev/full", "wb") as full:
            done = subprocess.run([PERHAPS, "query", self.path("f"), self.path("ask")], stdout=full,
                                  stderr=subprocess.PIPE)
        self.assertEqual(done.returncode, 2)
        self.assertIn(b"standard output: No space left", done.stderr)


class Families(Case):
    """Every family does on the command line what it says it can, and refuses what it cannot."""

    def setUp(self):
        super().setUp()
        self.keys = [b"key %d" % i for i in range(3000)]
        self.more = [b"more %d" % i for i in range(1000)]
        self.write("keys", lines(self.keys))
        self.write("more", lines(self.more))

    def test_build_query_info_verify(self):
        for family in [*FAMILIES, "smallest"]:
            with self.subTest(family):
                d = self.json("build", "-o", "f", "--filter", family, "--fpr", "0.001", "keys")
                self.assertEqual((d["family"], d["keys"]), (family.replace("smallest", "ribbon"), 3000))
                self.assertLess(d["fpr"], 0.0015)  # of 3000 keys, by chance
                self.assertEqual(self.ok("query", "f", "keys"), lines(self.keys))
                v = self.json("verify", "f", "--keys", "keys")
                self.assertEqual((v["false_negatives"], v["model_agrees"]), (0, True))
                self.assertEqual(self.info("f")["family"], d["family"])
                # The same keys from a pipe.
                pipe = [] if family != "window" else ["--keys-expected", "3000"]
                self.ok("build", "-o", "g", "--filter", family, "--fpr", "0.001", *pipe, stdin=lines(self.keys))
                self.assertEqual(self.read("f"), self.read("g"))

    def test_repeated_keys_are_there_once(self):
        for family in able(lambda about: about["remove"] or not about["add"]):
            self.ok("build", "-o", "f", "--filter", family, "keys")
            self.ok("build", "-o", "g", "--filter", family, *["keys"] * 20)
            f, g = self.info("f"), self.info("g")
            self.assertEqual((f["bytes"], f["fpr"]), (g["bytes"], g["fpr"]), family)

    def test_remove(self):
        for family in able(lambda about: about["remove"]):
            with self.subTest(family):
                self.ok("build", "-o", "f", "--filter", family, "--fpr", "1e-4", "--keys-expected", "4000", "keys")
                self.ok("add", "f", "more")
                d = self.json("remove", "f", "more")
                self.assertEqual((d["given"], d["removed"] + d["kept"], d["absent"], d["keys"]), (1000, 1000, 0, 3000))
                self.assertEqual(self.ok("query", "f", "keys"), lines(self.keys))
                self.assertLess(len(self.run_perhaps("query", "f", "more").stdout.splitlines()), 10)
                done = self.run_perhaps("remove", "--partial", "f", "more")
                self.assertIn(b"were never added, or removed before", done.stderr)
        for family in able(lambda about: not about["remove"]):
            self.ok("build", "-o", "f", "--filter", family, "keys")
            before = self.read("f")
            self.refused("remove", "f", "more", says="a %s filter cannot forget a key" % family)
            self.assertEqual(self.read("f"), before)

    def test_guards(self):
        """Removing absent keys succeeds as often as info and remove say: 3000 keys, 2000 absent ones, 5 sigma; at most
        at the rate / 2^guards."""
        self.write("strangers", lines(b"stranger %d" % i for i in range(2000)))
        for family in able(lambda about: about["remove"]):
            if family in UNGUARDED:
                self.refused("build", "-o", "f", "--filter", family, "--guard-bits", "3", "keys",
                             says="--guard-bits: a %s filter has none" % family)
            for guards in [0] if family in UNGUARDED else [0, 3]:
                with self.subTest((family, guards)):
                    option = ["--guard-bits", str(guards)] if guards else []
                    self.ok("build", "-o", "f", "--filter", family, "--fpr", "0.02", *option, "keys")
                    d = self.info("f")
                    self.assertLessEqual(d["wrong_remove"], 0.02 / 2**guards * 1.01)
                    self.assertFalse(d["needs_rebuild"])
                    done = self.run_perhaps("remove", "--partial", "f", "strangers", "--json")
                    expected = 2000 * d["wrong_remove"]
                    self.assertLess(abs(json.loads(done.stdout)["removed"] - expected), 5 * expected**0.5 + 1)
                    said = int(done.stderr.split(b"one in ")[1].split()[0].replace(b",", b""))
                    self.assertAlmostEqual(said * d["wrong_remove"], 1, delta=0.5 / said + 0.01)

    def test_unreachable_requests_are_refused(self):
        for family in ["fuse", "ribbon", "quotient", "window"]:
            self.refused("build", "-o", "f", "--filter", family, "--fpr", "1e-15", "keys",
                         says="--fpr 1e-15: out of reach; the lowest rate is 1 in 1 trillion")
        for family in ["fuse", "ribbon"]:
            self.refused("build", "-o", "f", "--filter", family, "--fpr", "1e-11", "keys",
                         says=family + ": fpr: 1 in 100000000000 is out of reach")
        guarded = ["build", "-o", "f", "--guard-bits", "16", "keys"]
        self.refused(*guarded, "--filter", "quotient", "--fpr", "1e-12", says="1 in 1000000000000 is out of reach")
        done = self.run_perhaps(*guarded, "--filter", "counting", "--fpr", "1e-9")
        self.assertIn(b"--guard-bits 16 are out of reach", done.stderr)
        for family in FAMILIES:
            self.assertEqual(self.run_perhaps("build", "-o", "f", "--filter", family, "keys").stderr, b"", family)

    def test_scalable_says_its_limit(self):
        self.ok("build", "-o", "f", "--filter", "scalable", "--fpr", "2e-8", "keys")
        self.assertEqual(self.info("f")["more"]["fpr limit"], "2e-08")

    def test_no_keys(self):
        self.write("none", b"")
        for family in FAMILIES:
            self.ok("build", "-o", "f", "--filter", family, "--allow-empty", "none")
            self.assertEqual(self.info("f")["keys"], 0, family)
            self.ok("build", "-o", "f", "--filter", family, "keys")
            self.ok("build", "-o", "g", "--filter", family, "none", "keys", "none")
            self.assertEqual(self.read("f"), self.read("g"), family)
        self.ok("build", "-o", "f", "/proc/self/status")  # has no size either
        self.assertGreater(self.info("f")["keys"], 10)

    def test_add(self):
        for family in able(lambda about: about["add"]):
            self.ok("build", "-o", "f", "--filter", family, "--keys-expected", "4000", "keys")
            self.ok("add", "f", "more")
            self.assertEqual(self.ok("query", "f", "keys", "more"), lines(self.keys + self.more), family)
        for family in able(lambda about: not about["add"]):
            self.ok("build", "-o", "f", "--filter", family, "keys")
            self.refused("add", "f", "more", says="a %s filter takes no more keys" % family)

    def test_full(self):
        self.ok("build", "-o", "f", "--filter", "cuckoo", "keys")
        before = self.read("f")
        self.refused("add", "f", "more", says="f: full after")
        self.assertEqual(self.read("f"), before)

    def test_quotient_grows(self):
        """A full quotient filter grows for more keys and says so; its rate grows with them."""
        self.ok("build", "-o", "f", "--filter", "quotient", "keys")
        before = self.info("f")
        self.assertIn(b"it has grown, for ", self.ok("add", "f", "more"))
        self.assertEqual(self.ok("query", "f", "keys", "more"), lines(self.keys + self.more))
        after = self.info("f")
        self.assertGreaterEqual(after["capacity"], after["keys"])
        self.assertGreater(after["fpr"], before["fpr"])
        self.assertLessEqual(after["fpr"], after["fpr_at_capacity"])
        self.ok("remove", "f", "more")
        self.assertEqual(self.ok("query", "f", "keys"), lines(self.keys))
        self.assertFalse(self.json("add", "f", "more")["grown"])

    def test_a_limit_on_file_sizes(self):
        """A write beyond the limit is an error with a message; it does not kill the process."""
        self.write("many", lines(b"%d" % i for i in range(600_000)))
        done = subprocess.run(["sh", "-c", 'ulimit -f 100 && exec "$@"', "sh", PERHAPS, "build", "--filter", "fuse",
                               "--memory", "1M", "-o", self.path("f"), self.path("many")], capture_output=True)
        self.assertEqual(done.returncode, 2)
        self.assertIn(b"File too large", done.stderr)

    def test_merge(self):
        for family in ["counting", "quotient", "scalable"]:
            with self.subTest(family):
                self.ok("build", "-o", "a", "--filter", family, "--keys-expected", "3000", "keys")
                self.ok("build", "-o", "b", "--filter", family, "--keys-expected", "3000", "more")
                self.ok("merge", "-o", "c", "a", "b")
                self.assertEqual(self.ok("query", "c", "keys", "more"), lines(self.keys + self.more))
                if family == "quotient":  # it has grown: its present capacity
                    d = self.info("c")
                    self.assertGreaterEqual(d["capacity"], 6000)
                    self.assertLessEqual(d["fpr"], d["fpr_at_capacity"])
        self.ok("build", "-o", "a", "--filter", "cuckoo", "keys")
        self.refused("merge", "-o", "d", "a", "a", says="cannot be merged")

    def test_spill(self):
        self.write("many", lines(b"%d" % i for i in range(400_000)))
        for family in ["fuse", "ribbon"]:
            self.ok("build", "-o", "f", "--filter", family, "many")
            self.ok("build", "-o", "g", "--filter", family, "--memory", "1M", "--threads", "1", "many")
            self.assertEqual(self.read("f"), self.read("g"))
            done = self.run_perhaps("build", "-o", "g", "--filter", family, "--memory", "1M", "many",
                                    env={"TMPDIR": self.path("nowhere")})
            self.assertEqual(done.returncode, 2)
            self.assertIn(b"nowhere cannot be made: No such file", done.stderr)
            self.assertEqual(self.read("f"), self.read("g"))


class Add(Case):
    """Afterwards every key, old or new, is found, and the figures are right."""

    def setUp(self):
        super().setUp()
        self.old = lines(b"old %d" % i for i in range(1000))
        self.new = lines(b"new %d" % i for i in range(500))
        self.write("old", self.old)
        self.write("new", self.new)
        self.ok("build", "-o", "f", "--keys-expected", "1500", "--fpr", "1e-6", "old")

    def test_add(self):
        d = self.json("add", "f", "new", "new", "old", "-e", "one more", "-e", "one more")
        self.assertEqual((d["given"], d["added"], d["present"], d["keys"]), (2002, 501, 1501, 3002))
        self.ok("build", "-o", "want", "--keys-expected", "1500", "--fpr", "1e-6", "old", "new", "new", "old",
                "-e", "one more", "-e", "one more")
        self.assertEqual(self.read("f"), self.read("want"))
        text = self.ok("add", "f", "new").decode()
        self.assertRegex(text, r"^f: 0 added, 500 looked present; about 1,[45]\d\d keys now, fpr ")

    def test_nothing(self):
        before = self.read("f")
        self.assertEqual(self.json("add", "f", "-", stdin=b"")["given"], 0)
        self.assertEqual(self.read("f"), before)

    def test_saturation(self):
        done = self.run_perhaps("add", "f", "-", stdin=lines(b"%d" % i for i in range(9000)))
        self.assertEqual(done.returncode, 0)
        self.assertIn("saturated", done.stderr.decode())
        self.assertIn("made for 1,500", done.stderr.decode())
        self.assertIn("none: saturated", self.ok("info", "f").decode())

    def test_numbers(self):
        self.ok("build", "-o", "n", "--keys-expected", "10", "--keys-as", "u64", "-e", "1")
        self.ok("add", "n", "--keys-as", "u64", "-e", "2")
        self.ok("query", "n", "--keys-as", "u64", "-e", "2")

    def test_two_at_once(self):
        """If two commands add to one file, the second starts from what the first wrote: no key is lost. The first has
        certainly read the file once it has consumed more than a pipe holds, and ends after the second has started."""
        args = {"cwd": self.folder, "stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
        with subprocess.Popen([PERHAPS, "add", "f", "-"], stdin=subprocess.PIPE, **args) as first:
            first.stdin.write(b"first\n" * 200_000)
            first.stdin.flush()
            with subprocess.Popen([PERHAPS, "add", "f", "-e", "second"], stdin=subprocess.DEVNULL, **args) as second:
                self.assertIn(b"f: waiting for another perhaps", second.stderr.readline())
                first.stdin.close()
                self.assertEqual((first.wait(timeout=60), second.wait(timeout=60)), (0, 0))
        self.assertEqual(self.ok("query", "f", "-e", "first", "-e", "second"), b"first\nsecond\n")
        self.assertEqual(self.info("f")["keys"], 201_001)

    def test_read_only(self):
        """A read-only file is not replaced. Root may write to every file, so root changes to another user."""
        who = {"user": 65534, "group": 65534, "extra_groups": []} if os.geteuid() == 0 else {}
        shutil.copy(PERHAPS, self.path("perhaps"))
        os.chmod(self.folder, 0o777)
        os.chmod(self.path("f"), 0o444)
        before = self.read("f")
        done = subprocess.run([self.path("perhaps"), "add", "f", "new"], cwd=self.folder, capture_output=True, **who)
        self.assertEqual(done.returncode, 2, done.stdout)
        self.assertIn(b"f: cannot be written to: Permission denied", done.stderr)
        self.assertEqual(self.read("f"), before)

    def test_mode_and_links_stay(self):
        os.chmod(self.path("f"), 0o640)
        os.symlink("f", self.path("link"))
        self.ok("add", "link", "new")
        self.assertTrue(os.path.islink(self.path("link")))
        self.assertEqual(os.stat(self.path("f")).st_mode & 0o777, 0o640)
        self.assertEqual(self.info("f")["keys"], 1500)


class Combine(Case):
    """merge and fold make exactly the filter that building from the keys would have made, or say why they cannot."""

    def setUp(self):
        super().setUp()
        self.write("a", lines(b"%d" % i for i in range(0, 3000)))
        self.write("b", lines(b"%d" % i for i in range(2000, 5000)))
        for name in "ab":
            self.ok("build", "-o", "f" + name, "--keys-expected", "6000", "--max-bytes", "8Ki", name)

    def table(self, name):
        return self.read(name)[-8192:]

    def test_union(self):
        d = self.json("merge", "-o", "u", "fa", "fb")
        self.ok("build", "-o", "want", "--keys-expected", "6000", "--max-bytes", "8Ki", "a", "b")
        self.assertEqual(self.read("u"), self.read("want"))
        self.assertEqual(d["keys"], 6000)
        self.assertAlmostEqual(d["keys_distinct"], 5000, delta=200)
        self.ok("merge", "-o", "fa", "fa", "fb")  # onto one of its inputs
        self.assertEqual(self.read("fa"), self.read("want"))
        self.ok("merge", "-o", "three", "fa", "fb", "u")
        self.ok("merge", "-o", "one", "fb")
        self.assertEqual(self.read("one"), self.read("fb"))

    def test_intersection(self):
        d = self.json("merge", "--intersect", "-o", "i", "fa", "fb")
        self.write("both", lines(b"%d" % i for i in range(2000, 3000)))
        self.assertEqual(self.json("verify", "i", "--keys", "both")["false_negatives"], 0)
        self.assertEqual(d["keys"], round(d["keys_distinct"]))
        self.assertLess(d["fill"], self.info("fa")["fill"])

    def test_figures_of_full_filters(self):
        """A full filter says nothing about its keys (the estimate is infinite), but there are at most as many as were
        inserted."""
        for name, count in [("x", 5000), ("y", 4000)]:
            keys = lines(b"%d" % i for i in range(count))
            self.ok("build", "-o", name, "--keys-expected", "10", "--max-bytes", "64", "-", stdin=keys)
        self.assertEqual(self.info("x")["fill"], 1)
        self.assertIn("5,000, about 5,000 distinct", self.ok("info", "x").decode())
        text = self.ok("merge", "--intersect", "-o", "i", "x", "y").decode()
        self.assertIn("about 4,000 distinct keys", text)
        self.assertEqual(self.info("i")["keys"], 4000)
        self.assertEqual(self.json("merge", "-o", "u", "x", "y")["keys_distinct"], 9000)
        for i in range(1, 40):  # estimates of small filters are sometimes off by one
            d = self.json("build", "-o", "z", "--max-bytes", "64", "-", stdin=lines(b"%d" % j for j in range(i)))
            self.assertLessEqual(d["keys_distinct"], i)

    def test_fold(self):
        self.ok("fold", "-o", "half", "fa")
        self.ok("build", "-o", "want", "--keys-expected", "3000", "--max-bytes", "4Ki", "a")
        self.assertEqual(self.filter_in("half")[2], self.filter_in("want")[2])
        self.assertEqual(self.info("half")["capacity"], 3000)
        d = self.json("fold", "-o", "eighth", "--times", "3", "fa")
        self.assertEqual(d["bytes"], 1024)
        self.assertEqual(self.json("verify", "eighth", "--keys", "a")["false_negatives"], 0)

    def test_refusals(self):
        self.ok("build", "-o", "small", "--max-bytes", "4Ki", "b")
        self.ok("build", "-o", "block", "--filter", "block", "--max-bytes", "8Ki", "b")
        self.ok("build", "-o", "seed", "--keys-expected", "6000", "--max-bytes", "8Ki", "--seed", "1", "b")
        self.refused("merge", "-o", "x", "fa", "small", says=["fa and small cannot be merged", "lines"])
        self.refused("merge", "-o", "x", "fa", "block", says=["cannot be merged", "line", "block"])
        self.refused("merge", "-o", "x", "fa", "seed", says=["cannot be merged", "seed"])
        self.refused("fold", "-o", "x", "--times", "8", "fa", says=["cannot be folded 8 times", "halved"])


class Verify(Case):
    """A missing key is found and shown; the measured rate comes with an interval that contains the model."""

    FIELDS = ["keys", "false_negatives", "absent", "false_positives", "fpr", "fpr_low", "fpr_high", "fpr_model"]

    def setUp(self):
        super().setUp()
        self.write("keys", lines(b"key %d" % i for i in range(20_000)))
        self.write("absent", lines(b"absent %d" % i for i in range(50_000)))
        self.ok("build", "-o", "f", "keys")

    def check(self, d):
        self.assertEqual(list(d)[:8], self.FIELDS)
        self.assertEqual((d["keys"], d["false_negatives"]), (20_000, 0))
        self.assertLessEqual(d["fpr_low"], d["fpr"])
        self.assertLessEqual(d["fpr"], d["fpr_high"])
        self.assertEqual(d["fpr"], d["false_positives"] / d["absent"])
        sigma = (d["fpr_model"] / d["absent"]) ** 0.5  # n = absent, z = 5
        self.assertLess(abs(d["fpr"] - d["fpr_model"]), 5 * sigma)
        self.assertTrue(d["model_agrees"])

    def test_rates(self):
        self.check(self.json("verify", "f", "--keys", "keys"))
        self.check(self.json("verify", "f", "--keys", "keys", "--absent", "absent"))
        d = self.json("verify", "f", "--keys", "keys", "--absent-count", "200k", "--absent-seed", "5")
        self.check(d)
        self.assertEqual(d["absent"], 200_000)
        self.assertEqual(d, self.json("verify", "f", "--keys", "-", "--absent-count", "2e5", "--absent-seed", "5",
                                      stdin=self.read("keys")))
        self.assertIn("none missing", self.ok("verify", "f", "--keys", "keys").decode())
        d = self.json("verify", "f", "--keys", "keys", "--absent", "/dev/null")
        self.assertEqual((d["absent"], d["fpr"], d["fpr_low"], d["fpr_high"]), (0, 0, 0, 1))

    def test_missing(self):
        self.write("more", self.read("keys") + lines(b"stranger %d" % i for i in range(1000)))
        done = self.run_perhaps("verify", "f", "--keys", "more")
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"MISSING", done.stdout)
        self.assertEqual(done.stderr.count(b"missing: stranger"), 5)
        self.assertRegex(done.stderr.decode(), r"missing: and 9\d\d more")
        d = self.json("verify", "f", "--keys", "more", code=1)
        self.assertGreater(d["false_negatives"], 900)
        self.assertEqual(d["keys"], 21_000)

    def test_numbers(self):
        data = b"".join(struct.pack("<Q", i << 20) for i in range(10_000))
        self.ok("build", "-o", "n", "--keys-as", "u64", "-", stdin=data)
        d = self.json("verify", "n", "--keys-as", "u64", "--keys", self.write("u", data))
        self.assertEqual((d["keys"], d["false_negatives"], d["model_agrees"]), (10_000, 0, True))


class Info(Case):
    """Every figure of a file, for people and for programs."""

    FIELDS = ["format", "family", "hash", "keys", "bits", "bytes", "bits_per_key", "probes", "fill", "fpr", "checksum"]

    def test_info(self):
        self.write("keys", lines(b"%d" % i for i in range(1000)))
        for family in ["line", "block", "classic"]:
            self.ok("build", "-o", family, "--filter", family, "--keys-expected", "2000", "keys")
            d = self.info(family)
            for name in self.FIELDS:
                self.assertIn(name, d)
            self.assertEqual((d["format"], d["family"], d["keys"], d["capacity"], d["checksum"]),
                             ("perhaps", family, 1000, 2000, "ok"))
            self.assertEqual(d["bits_per_key"], d["bits"] / 1000)
            self.assertAlmostEqual(d["keys_distinct"], 1000, delta=60)
            text = self.ok("info", family).decode()
            for part in [family, "1,000, about", "fill       [####", " %", "headroom", "more keys until",
                         "checksum   ok"]:
                self.assertIn(part, text)
            self.assertLessEqual(max(map(len, text.splitlines())), 80)
        for family in ["growing", "scalable"]:
            self.ok("build", "-o", family, "--filter", family, "keys")
            self.assertRegex(self.text("info", family), r"headroom +it grows\n")
        many = json.loads(self.ok("info", "--json", "line", "block"))
        self.assertEqual([d["file"] for d in many], ["line", "block"])
        self.assertEqual(self.ok("info", "line", "block").decode().count("format"), 2)
        # one bad file among several: the report of the files before it is printed
        done = self.run_perhaps("info", "line", "none")
        self.assertEqual(done.returncode, 2)
        self.assertIn(b"family     line", done.stdout)


class Terminal(Case):
    """Colour and progress on a terminal only."""

    def on_terminal(self, args, env=None, stdin=subprocess.DEVNULL):
        leader, follower = pty.openpty()
        process = subprocess.Popen([PERHAPS, *args], stdin=stdin, stdout=follower, stderr=follower, cwd=self.folder,
                                   env={**{k: v for k, v in os.environ.items() if k != "NO_COLOR"}, **(env or {})})
        os.close(follower)
        self.addCleanup(os.close, leader)
        return process, leader

    def rest(self, process, leader):
        text = b""
        while True:
            try:
                part = os.read(leader, 65536)
            except OSError:  # the other end is closed
                part = b""
            if not part:
                break
            text += part
        process.wait()
        return text

    def test_colour(self):
        self.ok("build", "-o", "f", "-e", "x")
        self.assertIn(b"\x1b[1mf", self.rest(*self.on_terminal(["info", "f"])))
        self.assertNotIn(b"\x1b", self.rest(*self.on_terminal(["info", "f"], {"NO_COLOR": "1"})))
        for args in [["info", "f"], ["--help"], ["size", "--keys", "1k"]]:
            done = self.run_perhaps(*args)
            self.assertNotIn(b"\x1b", done.stdout + done.stderr)

    def feed(self, process, seen, limit):
        """Writes lines into a slow pipe until `seen()`."""
        for i in range(limit):
            process.stdin.write(lines(b"%d.%d" % (i, j) for j in range(100)))
            process.stdin.flush()
            if seen():
                return True
        return False

    def test_progress(self):
        process, leader = self.on_terminal(["build", "-o", "f", "-"], stdin=subprocess.PIPE)
        text = b""

        def seen():
            nonlocal text
            if select.select([leader], [], [], 0.05)[0]:
                text += os.read(leader, 65536)
            return b"keys/s" in text

        self.assertTrue(self.feed(process, seen, 400), text)
        process.stdin.close()
        text += self.rest(process, leader)
        self.assertEqual(process.returncode, 0)
        self.assertIn(b"\r\x1b[K", text)  # and it is gone afterwards
        for line in re.split(rb"[\r\n]+", re.sub(rb"\x1b\[\d*[mK]", b"", text)):
            self.assertLess(len(line), 80)

    def test_no_progress_in_a_pipe(self):
        done = self.run_perhaps("build", "-o", "f", "-", stdin=lines(b"%d" % i for i in range(300_000)))
        self.assertEqual(done.stderr, b"")


class Interruption(Case):
    """A command that is stopped, however abruptly, leaves the old file or the new one, complete."""

    def setUp(self):
        super().setUp()
        rng = random.Random(SEED)
        self.write("old.txt", lines(b"%x" % rng.getrandbits(64) for _ in range(30_000)))
        self.write("new.txt", lines(b"%x" % rng.getrandbits(64) for _ in range(30_000)))
        size = ["--keys-expected", "4M"]
        self.ok("build", "-o", "a", *size, "old.txt")
        self.ok("build", "-o", "b", *size, "new.txt")
        self.commands = {
            "build": ["build", "-o", "out", *size, "new.txt"],
            "add": ["add", "out", "new.txt"],
            "merge": ["merge", "-o", "out", "a", "b"],
        }

    def whole_run(self, args):
        """The bytes that an undisturbed run makes, and how long it takes here, to choose when to disturb it."""
        shutil.copy(self.path("a"), self.path("out"))
        begin = time.monotonic()
        self.ok(*args)
        return self.read("out"), time.monotonic() - begin

    def litter(self):
        return [name for name in os.listdir(self.folder) if name not in {"old.txt", "new.txt", "a", "b", "out"}]

    def test_kill_9(self):
        """Killed at seeded moments from before the start to after the end. Filters are made the same way each time, so
        complete means: the bytes of the old file, or those of the new one."""
        print("seed", SEED, file=sys.stderr)
        rng = random.Random(SEED)
        old = self.read("a")
        for name, args in self.commands.items():
            new, seconds = self.whole_run(args)
            self.assertNotEqual(old, new)
            ends = {"old": 0, "new": 0}
            for _ in range(25):
                shutil.copy(self.path("a"), self.path("out"))
                process = subprocess.Popen([PERHAPS, *args], cwd=self.folder, stdout=subprocess.DEVNULL)
                try:
                    process.wait(timeout=rng.random() * 1.2 * seconds)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()
                now = self.read("out")
                self.assertIn(now, (old, new), name)
                ends["old" if now == old else "new"] += 1
                self.ok("info", "out")
                keys = "old.txt" if name != "build" or now == old else "new.txt"
                d = self.json("verify", "out", "--keys", keys, "--absent-count", "0")
                self.assertEqual(d["false_negatives"], 0)
                for temp in self.litter():
                    self.assertRegex(temp, r"^\.perhaps-.*\.tmp$")
                    os.unlink(self.path(temp))
            print(name, ends, file=sys.stderr)
            self.assertGreater(ends["old"], 0)

    def test_interrupt(self):
        """Ctrl-C or SIGTERM while keys arrive: the exit code says so, and nothing has changed."""
        shutil.copy(self.path("a"), self.path("out"))
        old = self.read("out")
        for args in [["build", "-o", "out", "-"], ["add", "out", "-"],
                     ["build", "-o", "out", "--max-bytes", "1M", "-"]]:
            for number, code in [(signal.SIGINT, 130), (signal.SIGTERM, 143)]:
                with subprocess.Popen([PERHAPS, *args], cwd=self.folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                      stderr=subprocess.PIPE) as process:
                    process.stdin.write(b"key\n" * 500_000)  # more than a pipe holds, so the command is reading
                    process.stdin.flush()
                    process.send_signal(number)
                    self.assertEqual(process.wait(timeout=60), code)
                self.assertEqual(self.read("out"), old)
                self.assertEqual(self.litter(), [])

    def test_interrupt_anywhere(self):
        rng = random.Random(SEED)
        old = self.read("a")
        for name, args in self.commands.items():
            new, seconds = self.whole_run(args)
            for _ in range(10):
                shutil.copy(self.path("a"), self.path("out"))
                process = subprocess.Popen([PERHAPS, *args], cwd=self.folder, stdout=subprocess.DEVNULL)
                try:
                    process.wait(timeout=rng.random() * 1.2 * seconds)
                except subprocess.TimeoutExpired:
                    process.send_signal(signal.SIGINT)
                    process.wait()
                self.assertIn(process.returncode, (0, 130, -signal.SIGINT))  # the last: before main
                self.assertIn(self.read("out"), (old, new), name)
                self.assertEqual(self.litter(), [])

    def test_a_file_that_shrinks(self):
        """A key file that is truncated while it is mapped is an error, not a crash."""
        self.write("long", b"0123456789abcdef\n" * 4_000_000)
        with subprocess.Popen([PERHAPS, "query", self.path("a"), self.path("long"), "-v"], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE) as process:
            self.assertEqual(process.stdout.readline(), b"0123456789abcdef\n")  # at work, and blocked by the full pipe
            os.truncate(self.path("long"), 4096)
            process.stdout.read()
            self.assertEqual(process.wait(), 2)
            self.assertIn(b"became shorter", process.stderr.read())


if __name__ == "__main__":
    if not (os.access(PERHAPS, os.X_OK) and os.access(PEER, os.X_OK)):
        sys.exit("usage: cli_test.py PERHAPS CLI_PEER")
    os.environ["LC_ALL"] = "C.UTF-8"
    program = unittest.main(argv=[sys.argv[0], *sys.argv[3:]], exit=False)
    count = program.result.testsRun
    print(f"{count} tests ran", file=sys.stderr)
    sys.exit(not program.result.wasSuccessful() or count == 0 or bool(program.result.skipped))
