"""Numbers that people can read, calculate with, and check again.

    numbers_test.py PERHAPS [unittest arguments]
"""
import hashlib
import json
import math
import os
import re
import shutil
import sys
import unittest
import xml.etree.ElementTree

from cli_test import FAMILIES, Case, lines

EXPONENT = r"\d[eE][-+]?\d"


class Plain(Case):
    """No text has a number with an exponent, and what is only estimated says so. Would notice: another formatting
    function, an interval around a number that was not sampled."""

    def test_expected_numbers(self):
        many = lines(b"%d" % i for i in range(100_000))
        self.ok("build", "-o", "f", "-e", "x")
        self.write("keys", lines(b"k%d" % i for i in range(1000)))
        for args, stdin in [
            (["dedup", "--fpr", "0.3"], many),  # tens of thousands of false drops
            (["dedup", "--fpr", "1e-8"], many),
            (["dedup", "--seen", "s", "--keys-expected", "100", "--fpr", "0.3"], many),
            (["dedup", "--for", "1h", "--keys-expected", "100", "--fpr", "1e-6"], many),
            (["allocate", "--keys", "1e6", "--budget", "8M"], b""),
            (["route", "--build", "sets", "--fpr", "1e-7", "a=keys", "b=keys"], b""),
            (["size", "--keys", "1e6", "--fpr", "1e-9"], b""),
        ]:
            with self.subTest(args):
                done = self.run_perhaps(*args, stdin=stdin)
                self.assertEqual(done.returncode, 0, done.stderr)
                said = done.stderr.decode() + ("" if args[0] == "dedup" else done.stdout.decode())
                self.assertRegex(said, r"\d")
                self.assertNotRegex(said, EXPONENT)

    def test_samples_have_an_interval_and_formulas_none(self):
        self.write("keys", lines(b"k%d" % i for i in range(5000)))
        interval = r"fpr +about ([\d.]+) % \(([\d.]+) % to ([\d.]+) % at 95 % confidence\)"
        built = self.text("build", "--format", "guava", "-o", "g", "keys")
        for text in [built, self.text("info", "g")]:
            rate, low, high = (float(x) for x in re.search(interval, text).groups())
            self.assertTrue(low < rate < high, text)
        for text in [self.text("build", "--format", "fuse16", "-o", "u", "keys"), self.text("info", "u")]:
            self.assertRegex(text, r"fpr +about 1 in 65,500 by its formula")
        self.ok("build", "--format", "guava", "--shards", "2", "-o", "s", "keys")
        self.assertEqual(len(re.findall(r"shard \d .* about [\d.]+ %", self.text("info", "s"))), 2)
        # both ends of an interval in one unit
        verified = self.text("verify", "u", "--keys", "keys")
        self.assertRegex(verified, r"\((0|1 in [\d,.]+( million)?) to 1 in [\d,]+ at 5 sigma\)")


class Certificates(Case):
    """Whoever has the files gets the same numbers, or is told what differs. Would notice: a field that is not
    compared, a name that holds in one folder only, a parameter that is not recorded."""

    def setUp(self):
        super().setUp()
        os.mkdir(self.path("work"))
        self.write("work/keys", lines(b"k%d" % i for i in range(3000)))
        self.write("work/more", lines(b"m%d" % i for i in range(1000)))
        self.ok("build", "-o", "work/f", "work/keys", "work/more")
        self.args = ["work/f", "--keys", "work/keys", "--keys", "work/more",
                     "--absent-count", "50k", "--absent-seed", "7"]

    def certify(self, *args):
        self.ok("verify", *(args or self.args), "--certificate", "work/c.json")
        return json.loads(self.read("work/c.json"))

    def test_says_what_was_proved(self):
        c = self.certify()
        for listed in [c["filter"], *c["keys"]]:
            data = self.read("work/" + listed["file"])
            self.assertEqual((listed["bytes"], listed["sha256"]), (len(data), hashlib.sha256(data).hexdigest()))
        self.assertEqual([k["file"] for k in c["keys"]], ["keys", "more"])
        self.assertEqual((c["absent"]["count"], c["absent"]["seed"], c["recipe"]), (50_000, 7, "lines"))
        self.assertEqual(c["tool"], self.text("--version").strip())
        self.assertEqual(c["result"], self.json("verify", *self.args))

    def test_the_same_again_also_elsewhere(self):
        self.certify()
        self.assertIn("the same files, the same numbers", self.text("verify", "--check", "work/c.json"))
        shutil.move(self.path("work"), self.path("moved"))
        self.assertEqual(self.json("verify", "--check", "moved/c.json"),
                         {"certificate": "moved/c.json", "same": True, "differences": []})
        shutil.move(self.path("moved/keys"), self.path("elsewhere"))
        self.refused("verify", "--check", "moved/c.json", says="keys: cannot open")
        self.ok("verify", "--check", "moved/c.json", "--keys", "elsewhere", "--keys", "moved/more")

    def differences(self):
        d = self.json("verify", "--check", "work/c.json", code=1)
        self.assertFalse(d["same"])
        self.assertIn("differs", self.text("verify", "--check", "work/c.json", code=1))
        return {x["name"].removeprefix(self.path("work/")): (x["recorded"], x["found"]) for x in d["differences"]}

    def test_differences(self):
        self.certify()
        with open(self.path("work/keys"), "ab") as file:
            file.write(b"stranger-3\n")
        found = self.differences()
        self.assertEqual(set(found), {"keys: bytes", "keys: sha256", "keys", "false_negatives"})
        self.assertEqual((found["keys"], found["false_negatives"]), (("4000", "4001"), ("0", "1")))
        self.write("work/keys", self.read("work/keys").replace(b"stranger-3\n", b""))
        self.ok("verify", "--check", "work/c.json")
        self.ok("build", "-o", "work/f", "--fpr", "0.1", "work/keys", "work/more")
        found = self.differences()
        for name in ["f: bytes", "f: sha256", "false_positives", "fpr", "fpr_low", "fpr_high", "fpr_model"]:
            self.assertIn(name, found)

    def test_every_number_is_compared(self):
        c = self.certify()
        for name, value in c["result"].items():
            with self.subTest(name):
                changed = not value if isinstance(value, bool) else value + (1 if isinstance(value, int) else 1e-6)
                tampered = {**c, "result": {**c["result"], name: changed}}
                self.write("work/c.json", json.dumps(tampered, indent=2).encode())
                self.assertEqual(list(self.differences()), [name])

    def test_everything_that_decides_is_recorded(self):
        self.write("work/t.csv", lines([b"id,Mail", *(b"%d, A%d@X " % (i, i) for i in range(500)), b"7"]))
        self.write("work/absent", lines(b"9,z%d" % i for i in range(5000)))
        self.ok("build", "-o", "work/r", "--csv", "--field", "Mail", "--trim", "--lower", "--missing", "skip",
                "work/t.csv")
        self.write("work/u.csv", self.read("work/t.csv"))
        c = self.certify("work/r", "--keys", "work/u.csv", "--missing", "skip")
        self.assertEqual((c["recipe"], c["missing"]), ("csv field=Mail trim lower", "skip"))
        self.ok("verify", "--check", "work/c.json")
        c = self.certify("work/f", "--keys", "work/keys", "--absent", "work/absent")
        self.assertEqual((c["absent"]["files"][0]["file"], c["absent"]["count"]), ("absent", 0))
        self.assertEqual(c["result"]["absent"], 5000)
        self.ok("verify", "--check", "work/c.json")
        self.ok("build", "--format", "leveldb", "-o", "work/l", "work/keys")
        self.certify("work/l", "--format", "leveldb", "--keys", "work/keys")
        self.ok("verify", "--check", "work/c.json")
        self.write("secret", b"0123456789abcdef")
        os.chmod(self.path("secret"), 0o600)
        self.ok("build", "-o", "work/k", "--keyed", "secret", "work/keys")
        self.certify("work/k", "--keyed", "secret", "--keys", "work/keys")
        self.assertNotIn(b"0123456789abcdef", self.read("work/c.json"))
        self.refused("verify", "--check", "work/c.json", says="--keyed")
        self.ok("verify", "--check", "work/c.json", "--keyed", "secret")

    def test_refusals(self):
        for bad, says in [(b"", "it has no certificate"), (b"{", "not a certificate"), (b"{}", "it has no certificate"),
                          (b'{"certificate": 2}', "version 2"), (b'{"certificate": 1}', "it has no filter.file")]:
            self.write("bad.json", bad)
            self.refused("verify", "--check", "bad.json", says=["bad.json", says])
        c = self.certify()
        for name in ["keys", "recipe", "result"]:
            self.write("bad.json", json.dumps({k: v for k, v in c.items() if k != name}).encode())
            self.refused("verify", "--check", "bad.json", says="it has no " + name)
        self.refused("verify", "--check", "none.json", says="none.json")
        self.refused("verify", "--check", "work/c.json", "--absent-seed", "3", says="--absent-seed")
        self.refused("verify", "--check", "work/c.json", "--lower", says="--lower")
        self.refused("verify", "--check", "work/c.json", "--certificate", "d.json", says="--certificate")
        self.refused("verify", says="--check")
        self.refused("verify", "work/f", says="--keys")
        keys = self.read("work/keys")
        self.refused("verify", *self.args, "--certificate", "work/keys", says="would replace work/keys")
        self.assertEqual(self.read("work/keys"), keys)
        self.refused("verify", *self.args, "--certificate", "nowhere/c.json", says="nowhere")
        self.refused("verify", "work/f", "--keys", "-", "--certificate", "d.json", says="standard input", stdin=keys)

    def test_nothing_is_certified_if_a_key_is_missing(self):
        self.write("work/keys", b"stranger-3\n")
        done = self.run_perhaps("verify", *self.args, "--certificate", "d.json")
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"d.json: not written", done.stderr)
        self.assertFalse(os.path.exists(self.path("d.json")))


class Size(Case):
    """Whatever is not given follows from the rest, and back again. Would notice: a search that ends at the wrong side,
    a family that is left out, probes that are shown but not used."""

    def sizes(self, *args):
        return {row["family"]: row for row in self.json("size", *args)}

    def test_keys_that_fit(self):
        for fpr in ["0.01", "1e-4"]:
            fits = self.sizes("--max-bytes", "1M", "--fpr", fpr)
            self.assertEqual(set(fits), set(FAMILIES))
            for family, row in fits.items():
                with self.subTest((fpr, family)):
                    self.assertLessEqual(row["bytes"], 1_000_000)
                    again = self.sizes("--keys", str(row["keys"]), "--fpr", fpr)[family]
                    self.assertEqual(again["bytes"], row["bytes"])
                    self.assertLessEqual(row["fpr"], 1.01 * float(fpr))
                    more = self.sizes("--keys", str(row["keys"] + 1), "--fpr", fpr)[family]
                    self.assertTrue(more["bytes"] > 1_000_000 or more["fpr"] > 1.01 * float(fpr), more)
        for row in self.json("size", "--max-bytes", "1M", "--bits-per-key", "16"):
            self.assertEqual(row["keys"], 500_000)
            self.assertLessEqual(row["bytes"], 1_000_000)
        self.assertRegex(self.text("size", "--max-bytes", "1M"), r"family +keys +probes")

    def test_rate_and_bits_without_keys(self):
        bits = self.sizes("--fpr", "0.001")["classic"]["bits_per_key"]
        self.assertAlmostEqual(bits, math.log(1000) / math.log(2) ** 2, delta=0.05)
        back = self.sizes("--bits-per-key", str(bits))["classic"]["fpr"]
        self.assertAlmostEqual(back, 0.001, delta=2e-5)
        self.assertIn("for 1,000,000 keys", self.text("size", "--fpr", "0.001"))

    def test_probes(self):
        best = self.sizes("--keys", "1M", "--bits-per-key", "12")
        for probes in [1, 3, 5, 8, 12]:
            rows = self.sizes("--keys", "1M", "--bits-per-key", "12", "--probes", str(probes))
            for row in rows.values():
                self.assertEqual(row["probes"], probes)
            textbook = (1 - math.exp(-probes / 12)) ** probes
            self.assertAlmostEqual(rows["classic"]["fpr"] / textbook, 1, delta=1e-3)
            self.assertEqual("block" in rows, probes == 8)
            for family in ["classic", "line"]:
                self.assertGreaterEqual(rows[family]["fpr"], best[family]["fpr"] * 0.98)
            for family, row in self.sizes("--keys", "1M", "--fpr", "0.01", "--probes", str(probes)).items():
                if family not in ["classic", "line", "counting"]:
                    continue
                self.assertTrue(0.0099 < row["fpr"] <= 0.01, (family, row))
        rows = self.sizes("--max-bytes", "1M", "--fpr", "0.01", "--probes", "4")
        self.assertTrue(0.0099 < rows["classic"]["fpr"] <= 0.01 and rows["classic"]["bytes"] <= 1_000_000, rows)
        self.assertEqual(set(self.sizes("--keys", "1M", "--probes", "30")), {"classic"})

    def test_plot(self):
        self.text("size", "--keys", "1e6", "--fpr", "0.001", "--plot", "size.svg")
        picture = xml.etree.ElementTree.fromstring(self.read("size.svg"))
        labels = {e.text for e in picture.iter() if e.get("class") == "label"}
        self.assertLessEqual(set(FAMILIES), labels)
        marks = [e for e in picture.iter() if e.tag.endswith("circle")]
        self.assertEqual(len(marks), len(FAMILIES))

    def test_refusals(self):
        self.refused("size", says="--keys, --fpr, --max-bytes, --bits-per-key are needed")
        self.refused("size", "--probes", "3", says="are needed")
        self.refused("size", "--keys", "1M", "--fpr", "0.01", "--max-bytes", "1M", says="two of")
        self.refused("size", "--fpr", "0.01", "--bits-per-key", "9", says="one follows from the other")
        self.refused("size", "--max-bytes", "2Pi", says="1Pi at most")
        for probes in ["0", "31", "x"]:
            self.refused("size", "--keys", "1M", "--probes", probes, says="--probes " + probes)
        self.refused("size", "--keys", "1M", "--plot", "nowhere/a.svg", says="nowhere")


class Bench(Case):
    """Every family is measured, and every hash. Would notice: one that is left out, or a filter that is not filled.
    Speeds are not checked."""

    def test_bench(self):
        rows = self.json("bench", "--keys", "20k", "--threads", "2", "--svg", "all.svg")
        self.assertEqual([row["family"] for row in rows], list(FAMILIES))
        for row in rows:
            for name in ["build_ns", "single_ns", "batch_ns"]:
                self.assertTrue(0 < row[name + "_low"] <= row[name] <= row[name + "_high"], row)
            self.assertTrue(0 < row["fpr"] < 0.02, row)
            self.assertGreaterEqual(row["bytes"] * 8, 6 * row["keys"])
            self.assertIn(b">%s</text>" % row["family"].encode(), self.read("all.svg"))
        xml.etree.ElementTree.fromstring(self.read("all.svg"))
        text = self.text("bench", "--keys", "1k")
        self.assertIn("batch ns", text)
        self.assertRegex(text, r"ribbon +\S+ \S+ +[\d.]+ ± [\d.]+ ")

    def test_some(self):
        rows = self.json("bench", "--keys", "1k", "--filter", "ribbon", "--filter", "line")
        self.assertEqual([row["family"] for row in rows], ["line", "ribbon"])
        self.assertNotIn("scalable", self.text("bench", "--keys", "1k", "--bits-per-key", "12"))
        self.refused("bench", "--filter", "sieve", says=["--filter sieve", "ribbon"])
        self.refused("bench", "--filter", "scalable", "--bits-per-key", "12", says="scalable")
        self.refused("bench", "--svg", "nowhere/a.svg", says="nowhere")
        self.refused("bench", "trees", says="trees")

    def test_hashes(self):
        rows = self.json("bench", "hash", "--keys", "1k", "--svg", "hash.svg")
        names = ["xxh3", "xxh64", "murmur3", "siphash-1-3", "crc32c", "sha-256"]
        lengths = [8, 16, 32, 64, 256, 1024]
        self.assertEqual([(r["hash"], r["length"]) for r in rows], [(n, size) for n in names for size in lengths])
        for row in rows:
            self.assertTrue(0 < row["ns_low"] <= row["ns"] <= row["ns_high"], row)
            self.assertAlmostEqual(row["lookup_share"], row["ns"] / (row["ns"] + row["probe_ns"]), places=9)
            self.assertIn(row["hash"].encode(), self.read("hash.svg"))
        self.assertIn("share", self.text("bench", "hash", "--keys", "1k"))
        self.refused("bench", "hash", "--filter", "line", says="--filter")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
