"""Promise: files of other systems are built, recognised, queried, inspected and converted by the same commands as ours.

    format_test.py PERHAPS CLI_PEER [unittest arguments]

Would notice: a format that one command knows and another does not, a general option that does not reach the parameter
of a format, a refusal that does not name file, format and fact, a half-written file.
"""
import gzip
import json
import os
import random
import re
import shutil
import signal
import struct
import subprocess
import sys
import time
import unittest

from cli_test import PERHAPS, SEED, Case, len32, lines

GOLDEN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "golden", "formats")


def formats():
    return json.loads(subprocess.run([PERHAPS, "formats", "--json"], capture_output=True, check=True).stdout)


class FormatCase(Case):
    def setUp(self):
        super().setUp()
        self.keys = [b"key-%d" % i for i in range(2000)]
        self.write("keys.txt", lines(self.keys))
        self.write("absent.txt", lines(b"absent-%d" % i for i in range(2000)))

    def build(self, name, *args):
        self.ok("build", "--format", name, "-o", name, *args, "keys.txt")
        return name


class EveryFormat(FormatCase):
    """query, verify and info read what build --format writes."""

    def test_build_query_verify_info(self):
        for codec in formats():
            name = codec["name"]
            if not codec["writes"]:
                self.refused("build", "--format", name, "-o", "x", "keys.txt", says=[name, "not written"])
                continue
            with self.subTest(name):
                self.build(name)
                how = ["--format", name, name]
                self.assertEqual(self.ok("query", *how, "keys.txt"), lines(self.keys))
                d = self.json("verify", *how, "--keys", "keys.txt", "--absent-count", "100k")
                self.assertEqual((d["keys"], d["false_negatives"]), (2000, 0))
                self.assertTrue(d["model_agrees"], d)
                d = self.info(*how)
                self.assertEqual((d["format"], d["system"]), (name, codec["summary"]))
                self.assertGreater(d["fpr"], 0)
                self.assertLess(d["fpr"], 0.5 if name == "leveldb-filterblock" else 0.2)  # all windows at once
                self.assertGreaterEqual(len(d["entries"]), 1)
                for entry in d["entries"]:
                    self.assertLessEqual(entry["offset"] + entry["size"], len(self.read(name)))
                text = self.ok("info", *how).decode()
                for part in [name + ": ", "family", "fill", "fpr"]:
                    self.assertIn(part, text)

    def test_keys_arrive_in_any_way(self):
        for codec in formats():
            if not codec["writes"]:
                continue
            name = codec["name"]
            with self.subTest(name):
                want = self.read(self.build(name))
                self.write("keys.gz", gzip.compress(lines(self.keys)))
                self.write("keys.len32", len32(self.keys))
                self.write("keys.csv", lines(b"x," + key for key in self.keys))
                for args in [["keys.gz"], ["--keys-as", "len32", "keys.len32"], ["-"],
                             ["--field", "2", "--delimiter", ",", "keys.csv"]]:
                    self.ok("build", "--format", name, "-o", "other", *args, stdin=lines(self.keys))
                    self.assertEqual(self.read("other"), want, args)

    def test_recognised(self):
        """Without --format a file is recognised, or the message says to use it."""
        for codec in formats():
            if not codec["writes"]:
                continue
            name = codec["name"]
            with self.subTest(name):
                self.build(name)
                done = self.run_perhaps("info", "--json", name)
                if done.returncode == 0:
                    self.assertEqual(json.loads(done.stdout)[0]["format"], name)
                else:
                    self.assertEqual(done.returncode, 2)
                    self.assertRegex(done.stderr.decode(),
                                     r"%s: (no known filter format|could be .*) \(--format\)" % name)


class Parameters(FormatCase):
    """--set reaches the parameters of a format by their names, the general options by their meaning."""

    def test_meanings(self):
        for codec in formats():
            if not codec["writes"]:
                continue
            name = codec["name"]
            own = {param["option"]: param for param in codec["params"] if param["option"]}
            for option, value in [("--fpr", "0.002"), ("--bits-per-key", "13"), ("--keys-expected", "5000")]:
                with self.subTest(name + " " + option):
                    if option not in own:
                        self.refused("build", "--format", name, option, value, "-o", "x", "keys.txt",
                                     says=[option + ": " + name + " is sized by"] + [p["name"] for p in own.values()])
                        continue
                    param = own[option]["name"]
                    self.ok("build", "--format", name, option, value, "-o", "a", "keys.txt")
                    self.ok("build", "--format", name, "--set", param + "=" + value, "-o", "b", "keys.txt")
                    self.assertEqual(self.read("a"), self.read("b"))
                    self.refused("build", "--format", name, option, value, "--set", param + "=" + value, "-o", "x",
                                 "keys.txt", says=[option, param, "the same"])

    def test_refusals(self):
        build = ["build", "-o", "x", "keys.txt"]
        self.refused(*build, "--format", "nonesuch", says=["'nonesuch' is not a format", "lab", "nori"])
        self.refused(*build, "--set", "fpr=0.1", says="--format")
        lab = [*build, "--format", "lab"]
        self.refused(*lab, "--set", "fpp=0.1", says=["lab: fpp", "n, fpr"])
        self.refused(*lab, "--set", "fpr", says="--set fpr: must be name=value")
        self.refused(*lab, "--set", "fpr=x", says=["lab: fpr=x", "number"])
        self.refused(*lab, "--set", "fpr=2", says=["lab: fpr=2", "at most"])
        self.refused(*lab, "--set", "fpr=0.1", "--set", "fpr=0.2", says="set twice")
        self.refused(*lab, "--set", "n=1.5", says=["lab: n=1.5", "whole number"])
        self.refused(*build, "--format", "nori", "--bits-per-key", "9.5", says=["nori", "bits_per_key", "whole"])
        for option in [["--filter", "block"], ["--max-bytes", "1M"], ["--seed", "1"], ["--on-disk"]]:
            self.refused(*lab, *option, says=[option[0], "--format"])
        self.refused("build", "--format", "lab", "-o", "keys.txt", "keys.txt", says="overwritten")
        self.refused("build", "--format", "lab", "-o", "none/x", "keys.txt", says="none/")

    def test_numbers_are_their_bytes(self):
        numbers = struct.pack("<3Q", 1, 2, 2**63)
        self.write("numbers", numbers)
        self.ok("build", "--format", "lab", "--keys-as", "u64", "-o", "a", "numbers")
        self.ok("build", "--format", "lab", "--keys-as", "len32", "-o", "b", "-",
                stdin=len32([numbers[0:8], numbers[8:16], numbers[16:]]))
        self.assertEqual(self.read("a"), self.read("b"))
        self.assertEqual(self.ok("query", "--format", "lab", "-c", "--keys-as", "u64", "a", "numbers"), b"3\n")

    def test_list(self):
        text = self.ok("formats").decode()
        for codec in formats():
            self.assertRegex(text, r"(?m)^%s +read" % re.escape(codec["name"]))
            about = self.ok("formats", codec["name"]).decode()
            for param in codec["params"]:
                self.assertRegex(about, r"(?m)^  %s " % re.escape(param["name"]))
        self.refused("formats", "nonesuch", says="'nonesuch' is not a format")


class Reports(FormatCase):
    """The same report for every kind of file; a refusal names file, format and fact, and exits with 2."""

    def test_the_same_fields(self):
        self.ok("build", "-o", "own", "--filter", "classic", "keys.txt")
        self.build("lab")
        own, lab = self.info("own"), self.info("--format", "lab", "lab")
        self.assertEqual(set(own) - {"checksum", "about"}, set(lab) - {"system"})
        self.assertEqual(len(own["entries"]), 1)
        for field in ["family", "hash", "bits", "probes", "fill", "fpr", "keys_distinct"]:
            self.assertEqual(lab["entries"][0][field], lab[field])
        self.assertAlmostEqual(lab["keys_distinct"], 2000, delta=100)

    def test_damage(self):
        self.build("lab")
        whole = self.read("lab")
        self.write("cut", whole[:-1])
        self.write("short", whole[:5])
        self.write("none", struct.pack("<IQ", 0, 64) + bytes(8))
        for command in [["info"], ["query", "-e", "x"], ["verify", "--keys", "keys.txt"],
                        ["convert", "--to", "lab", "-o", "x"]]:
            for name, fact in [("cut", "bits are"), ("short", "header of 12 bytes"), ("none", "0 probes")]:
                self.refused(*command, "--format", "lab", name, says=name + ": lab: ")
                self.assertIn(fact, self.refused(*command, "--format", "lab", name, says=""))
        self.refused("info", "keys.txt", says="keys.txt: no known filter format (--format)")
        self.refused("query", "keys.txt", "-e", "x", says="keys.txt: no known filter format")
        self.refused("info", "missing", says="missing")
        self.refused("query", "--format", "lab", "missing", "-e", "x", says="missing: cannot open: No such file")
        os.mkfifo(self.path("pipe"))
        self.refused("query", "--format", "lab", "pipe", "-e", "x", says="pipe: is not a regular file")
        self.refused("query", "--seek", "--format", "lab", "lab", "-e", "x", says="lab: has no prefix filter")
        self.write("secret", bytes(16))
        os.chmod(self.path("secret"), 0o600)
        self.refused("query", "--keyed", "secret", "--format", "lab", "lab", "-e", "x", says="no secret")

    def test_look_alikes(self):
        self.write("twin", struct.pack("<IQ", 3, 64) + bytes(8))
        self.refused("info", "twin", says=["twin: could be ", "lab", "nori", "--format"])
        self.assertEqual(self.info("--format", "nori", "twin")["format"], "nori")

    def test_trailing_data_is_noted(self):
        self.write("long", struct.pack("<IQ", 3, 64) + bytes(8) + b"more")
        self.assertIn("4 bytes after", " ".join(self.info("--format", "nori", "long")["notes"]))
        self.assertIn("note       4 bytes after", self.ok("info", "--format", "nori", "long").decode())

    def test_packed(self):
        """A gzipped file is unpacked; a truncated one is not mistaken for something else."""
        self.build("lab")
        packed = gzip.compress(self.read("lab"))
        self.write("lab.gz", packed)
        self.write("cut.gz", packed[:-20])
        self.assertEqual(self.ok("query", "--format", "lab", "lab.gz", "keys.txt"), lines(self.keys))
        self.assertIn("gzip", " ".join(self.info("lab.gz")["notes"]))
        self.refused("info", "cut.gz", says="cut.gz: no known filter format")

    def test_folders(self):
        os.makedirs(self.path("data/inner"))
        self.build("lab")
        self.ok("build", "-o", "data/own", "keys.txt")
        shutil.copy(self.path("lab"), self.path("data/inner/lab"))
        self.write("data/readme", b"nothing to see\n")
        found = self.json("info", "data")
        self.assertEqual([(d["file"], d["format"]) for d in found],
                         [("data/inner/lab", "lab"), ("data/own", "perhaps")])
        self.assertIn("data: 1 other file\n", self.ok("info", "data").decode())
        # a damaged file is named, and the others are still reported
        self.write("data/own", self.read("data/own")[:-1])
        done = self.run_perhaps("info", "data")
        self.assertEqual(done.returncode, 2)
        self.assertIn(b"data/own: ", done.stderr)
        self.assertIn(b"data/inner/lab", done.stdout)
        os.mkdir(self.path("empty"))
        self.assertEqual(self.json("info", "empty"), [])


class Convert(FormatCase):
    """Exactly, or not at all; a refusal shows the command that builds the filter from the keys."""

    def test_refusals(self):
        self.build("lab", "--fpr", "0.001")
        text = self.refused("convert", "--format", "lab", "--to", "nori", "-o", "x y", "lab", says="lab: lab to nori")
        command = re.search(r"^  (perhaps build --format nori .*)$", text, re.M).group(1)
        self.assertRegex(command, r"--bits-per-key 1[45] -o 'x y' KEYS$")
        # the command works unchanged
        env = {**os.environ, "PATH": os.path.dirname(PERHAPS) + ":" + os.environ["PATH"]}
        subprocess.run(["bash", "-c", command.replace("KEYS", "keys.txt")], cwd=self.folder, check=True, env=env,
                       capture_output=True)
        self.assertEqual(self.ok("query", "--format", "nori", "-c", "x y", "keys.txt"), b"2000\n")
        self.ok("build", "-o", "own", "keys.txt")
        self.refused("convert", "--to", "lab", "-o", "x", "own",
                     says=["own: perhaps to lab", "--format lab --keys-expected 2000 --fpr 0.0"])
        self.refused("convert", "--to", "nonesuch", "-o", "x", "own", says="not a format")
        self.refused("convert", "--format", "lab", "--to", "nori", "--entry", "7", "-o", "x", "lab",
                     says="no filter '7'")

    def test_exact(self):
        """Packed and unpacked again, it is the same file; both give the same answers."""
        self.build("fuse8")
        self.ok("convert", "--format", "fuse8", "--to", "fuse8", "--set", "packed=true", "-o", "packed", "fuse8")
        self.ok("build", "--format", "fuse8", "--set", "packed=true", "-o", "built", "keys.txt")
        self.assertEqual(self.read("packed"), self.read("built"))
        said = self.json("convert", "--format", "fuse8", "--format-set", "packed=true", "--to", "fuse8", "-o", "back",
                         "packed")
        self.assertEqual((said["from"], said["to"], said["bytes"]), ("fuse8", "fuse8", len(self.read("fuse8"))))
        self.assertTrue(said["changed"])
        self.assertEqual(self.read("back"), self.read("fuse8"))

    def test_cut_out(self):
        """One filter of a file that holds many, byte for byte; it can be queried by itself."""
        for name in sorted(os.listdir(os.path.join(GOLDEN, "parquet"))):
            path = os.path.join(GOLDEN, "parquet", name)
            if not name.endswith(".parquet"):
                continue
            entries = self.info(path)["entries"]
            for i, entry in enumerate(entries[:3]):
                self.ok("convert", "--to", "parquet", "--entry", str(i), "-o", "one", path)
                with open(path, "rb") as file:
                    file.seek(entry["offset"])
                    self.assertEqual(self.read("one"), file.read(entry["size"]))
            break


class Atomic(FormatCase):
    """A file of another system is written like our own: completely or not at all, and nothing is left behind."""

    def test_kill_9(self):
        rng = random.Random(SEED)
        self.write("new.txt", lines(b"%x" % rng.getrandbits(64) for _ in range(100_000)))
        args = ["build", "--format", "lab", "--keys-expected", "4M", "-o", "out", "new.txt"]
        self.build("lab")
        old = self.read("lab")
        begin = time.monotonic()
        self.ok(*args)
        seconds = time.monotonic() - begin
        new = self.read("out")
        for kind in [signal.SIGKILL, signal.SIGINT]:
            for _ in range(12):
                shutil.copy(self.path("lab"), self.path("out"))
                process = subprocess.Popen([PERHAPS, *args], cwd=self.folder, stdout=subprocess.DEVNULL)
                try:
                    process.wait(timeout=rng.random() * 1.2 * seconds)
                except subprocess.TimeoutExpired:
                    process.send_signal(kind)
                    process.wait()
                self.assertIn(self.read("out"), (old, new))
                litter = set(os.listdir(self.folder)) - {"keys.txt", "absent.txt", "new.txt", "lab", "out"}
                if kind == signal.SIGINT:
                    self.assertEqual(litter, set())
                for temp in litter:
                    self.assertRegex(temp, r"^\.perhaps-.*\.tmp$")
                    os.unlink(self.path(temp))

    def test_links_and_modes_stay(self):
        self.build("lab")
        os.chmod(self.path("lab"), 0o640)
        os.symlink("lab", self.path("link"))
        self.ok("build", "--format", "lab", "-o", "link", "absent.txt")
        self.assertTrue(os.path.islink(self.path("link")))
        self.assertEqual(os.stat(self.path("lab")).st_mode & 0o777, 0o640)
        self.assertEqual(self.ok("query", "--format", "lab", "-c", "lab", "absent.txt"), b"2000\n")

    def test_a_failed_build_keeps_the_old_file(self):
        self.build("lab")
        old = self.read("lab")
        self.refused("build", "--format", "lab", "-o", "lab", "keys.txt", "missing.txt", says="missing.txt")
        with open(PERHAPS, "rb") as program:
            sanitized = b"__asan_init" in program.read()
        if not sanitized:  # AddressSanitizer aborts on such a large allocation instead of refusing it
            self.refused("build", "--format", "lab", "--set", "n=1e12", "--set", "fpr=1e-12", "-o", "lab", "keys.txt",
                         says=["lab: ", "memory"])
        self.assertEqual(self.read("lab"), old)


class Goldens(Case):
    """Files that the systems themselves wrote: info recognises each, alone and with all others of its folder."""

    def test_info(self):
        self.assertTrue(os.path.isdir(GOLDEN))
        for system in sorted(os.listdir(GOLDEN)):
            folder = os.path.join(GOLDEN, system)
            if not os.path.isdir(folder) or system == "keys":
                continue
            with self.subTest(system):
                names = sorted(n for n in os.listdir(folder) if not n.endswith(".ans"))[:12]
                for name in names:
                    done = self.run_perhaps("info", "--json", os.path.join(folder, name))
                    self.assertIn(done.returncode, (0, 2), (name, done.stderr))
                    if done.returncode == 0:
                        self.assertTrue(json.loads(done.stdout)[0]["entries"] is not None)
                    else:
                        self.assertIn(name + ": ", done.stderr.decode())


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]] + sys.argv[3:])
