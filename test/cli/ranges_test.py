"""The promises of range filters in the tool, kept by the real binary and compared with a sorted list.

    ranges_test.py PERHAPS [unittest arguments]
"""
import bisect
import json
import random
import struct
import sys
import unittest

import schema
from cli_test import PERHAPS, Case, lines


class Ranges(Case):
    """No range with a key is denied; most others are; exit codes are grep's; the ends are read by the recipe. Would
    notice: an end that is lost or swapped, a recipe that is not applied, a rate above the theorem's."""

    def numbers(self, count=20_000, seed=1):
        rng = random.Random(seed)
        return sorted(rng.getrandbits(40) for _ in range(count))

    def build(self, name, keys, *options):
        self.write("keys", b"".join(struct.pack("<Q", key) for key in keys))
        return self.json("build", "--filter", "range", "--keys-as", "u64", "-o", name, *options, "keys")

    def test_numbers(self):
        keys = self.numbers()
        report = self.build("f", keys, "--bits-per-key", "16")
        schema.check(self, json.dumps(report), schema.shapes_of([PERHAPS, "build"])[""], "build")
        self.assertEqual(report["family"], "range")
        self.assertLessEqual(report["bits_per_key"], 16.1)
        self.assertLessEqual(report["range_fpr"], 100 / 2**14)
        rng = random.Random(2)
        asked = []
        for i in range(4000):
            low = rng.choice(keys) + rng.randrange(2) if i % 2 else rng.getrandbits(40)
            asked.append((low, low + (1 << rng.randrange(12)) - 1))
        text = lines((b"%d..%d" if i % 2 else b"%d\t%d") % range_ for i, range_ in enumerate(asked))
        answers = self.text("query", "--answers", "f", "--ranges", "-", stdin=text).splitlines()
        self.assertEqual(len(answers), len(asked))
        wrong = empty = 0
        for (low, high), line in zip(asked, answers):
            answer = line.split("\t")[0]
            at = bisect.bisect_left(keys, low)
            if at < len(keys) and keys[at] <= high:
                self.assertEqual(answer, "perhaps", line)
            else:
                empty += 1
                wrong += answer == "perhaps"
        self.assertGreater(empty, 1000)
        # 2^11 / 2^14 at most for the longest, a tenth of that on average.
        self.assertLess(wrong, empty * 0.06)
        one = keys[7]
        self.ok("query", "f", "--range", f"{one}..{one}")
        self.assertEqual(self.text("query", "f", "--range", f"..{one}"), f"..{one}\n")
        self.assertEqual(self.text("query", "f", "--range", f"{1 << 50}..{1 << 50}", code=1), "")
        two = ("--range", f"{one}..", "--range", "9223372036854775807..9223372036854775807")
        self.assertEqual(self.text("query", "-c", "f", *two), "1\n")
        self.assertEqual(self.text("query", "-v", "f", "--range", f"{one}..", code=1), "")
        self.assertEqual(self.ok("query", "-q", "f", "--range", f"{one}.."), b"")
        # Single keys, as any filter.
        self.assertEqual(self.text("query", "-c", "f", "keys"), f"{len(keys)}\n")
        self.ok("query", "f", "-e", str(one))
        self.ok("query", "-q", "f", "-e", str(1 << 62), code=1)

    def test_json(self):
        self.build("f", self.numbers(100))
        report = self.text("query", "--json", "f", "--range", "0..9", "--range", "5..")
        schema.check(self, report, schema.shapes_of([PERHAPS, "query"])["--range"], "query --range")
        self.assertEqual([json.loads(line)["range"] for line in report.splitlines()], ["0..9", "5.."])
        counts = self.text("query", "--json", "-c", "f", "--range", "0..")
        schema.check(self, counts, schema.shapes_of([PERHAPS, "query"])["-c"], "query -c")

    def test_certificates(self):
        # The size of the ranges is a part of what was proved, with a list of absent keys as without one.
        self.build("f", self.numbers(3000), "--bits-per-key", "14")
        self.write("others", struct.pack("<200Q", *range(1 << 60, (1 << 60) + 200)))
        for absent in [("--absent-count", "20k"), ("--absent", "others")]:
            args = ("verify", "f", "--keys", "keys", *absent, "--range-size", "50")
            report = self.json(*args)
            self.assertGreater(report["ranges"], 5000)
            self.ok(*args, "--certificate", "c.json")
            certificate = json.loads(self.read("c.json"))
            self.assertEqual(certificate["absent"]["range_size"], 50)
            self.assertEqual(certificate["result"], report)
            self.ok("verify", "--check", "c.json")
            certificate["result"]["ranges_perhaps"] += 1
            self.write("c.json", json.dumps(certificate).encode())
            (difference,) = self.json("verify", "--check", "c.json", code=1)["differences"]
            self.assertEqual(difference["name"], "ranges_perhaps")
            del certificate["result"]["ranges"]
            self.write("c.json", json.dumps(certificate).encode())
            self.refused("verify", "--check", "c.json", says="it has no result.ranges")
        self.ok("build", "-o", "plain", "--keys-as", "u64", "keys")
        self.refused("verify", "plain", "--keys", "keys", "--range-size", "50", says="plain does not answer ranges")
        self.write("c.json", json.dumps({**certificate, "absent": {**certificate["absent"], "range_size": 0}}).encode())
        self.refused("verify", "--check", "c.json", says="range_size")

    def test_text(self):
        keys = [b"User%06d" % (i * 17) for i in range(3000)]
        self.write("words", lines(keys))
        self.ok("build", "--filter", "range", "--lower", "--fpr", "0.001", "--range-size", "10", "-o", "t", "words")
        self.assertEqual(self.info("t")["about"]["recipe"], "lines lower")
        self.assertEqual(self.info("t")["more"]["keys as"], "text")
        self.assertEqual(self.text("query", "-c", "t", "words"), "3000\n")
        self.assertEqual(self.text("query", "t", "--range", "USER000017..USER000017"), "USER000017..USER000017\n")
        wrong = 0
        for i in range(300):
            low = i * 17 * 10 + 1
            wrong += self.run_perhaps("query", "-q", "t", "--range", f"user{low:06}..user{low + 9:06}").returncode == 0
        self.assertLess(wrong, 10)
        self.ok("query", "-q", "t", "--range", "a..t", code=1)
        self.ok("query", "-q", "t", "--range", "a..")
        short = self.json("build", "--filter", "range", "--code-bits", "8", "-o", "s", "words")
        self.assertLess(short["keys_distinct"], 300)

    def test_info_verify_size(self):
        keys = self.numbers()
        self.build("f", keys, "--bits-per-key", "14")
        self.assertIn("built once", self.text("info", "f"))
        report = self.json("verify", "f", "--keys", "keys", "--absent-count", "200k", "--range-size", "50")
        schema.check(self, json.dumps(report), schema.shapes_of([PERHAPS, "verify"])[""], "verify")
        self.assertEqual(report["false_negatives"], 0)
        self.assertTrue(report["model_agrees"])
        self.assertEqual(report["range_size"], 50)
        self.assertGreater(report["ranges"], 100_000)
        self.assertGreater(report["ranges_perhaps"], 0)
        self.assertIn("it holds", self.text("verify", "f", "--keys", "keys", "--absent-count", "50k"))
        self.write("others", struct.pack("<Q", 1 << 60))
        self.ok("verify", "f", "--keys", "others", "--absent-count", "1k", code=1)
        rows = self.json("size", "--keys", "1e6", "--fpr", "0.01", "--range-size", "100")
        row = next(row for row in rows if row["family"] == "range")
        self.assertEqual(row["kind"], 16)
        self.assertLess(row["bits_per_key"], 15.3)
        self.assertLessEqual(row["fpr"], 0.01)

    def test_merge(self):
        keys = self.numbers()
        self.build("a", keys[:12_000], "--keys-expected", "20k")
        self.build("b", keys[8000:], "--keys-expected", "20k")
        self.build("all", keys, "--keys-expected", "20k")
        self.ok("merge", "-o", "both", "a", "b")
        self.assertEqual(self.filter_in("both")[1], self.filter_in("all")[1])
        self.build("c", keys, "--bits-per-key", "20")
        self.refused("merge", "-o", "x", "a", "c", says=["cannot be merged", "universes"])
        self.refused("merge", "--intersect", "-o", "x", "a", "b", says="--intersect")

    def test_refusals(self):
        self.build("f", self.numbers(100))
        self.write("plain", b"a\nb\n")
        self.ok("build", "-o", "line", "plain")
        self.refused("query", "line", "--range", "a..b", says=["line", "single keys only"])
        self.refused("query", "f", "--range", "12", says=["--range 12", "A..B"])
        self.refused("query", "f", "--range", "9..1", says="ends before it begins")
        self.refused("query", "f", "--range", "1..x", says="x")
        self.refused("query", "f", "--ranges", "-", says="standard input:2: 7", stdin=b"1..2\n7\n")
        self.refused("query", "f", "--range", "1..2", "-e", "3", says="-e")
        self.refused("query", "f", "--recipe", "given", "--range", "1..2", says="its keys are numbers")
        self.ok("build", "--filter", "range", "-o", "text", "plain")
        self.refused("query", "text", "--recipe", "given", "--keys-as", "u64", "--range", "1..2", says="are text")
        self.refused("verify", "text", "--keys", "-", says="read twice", stdin=b"a\nb\n")
        self.refused("build", "--range-size", "5", "-o", "x", "plain", says="--filter range")
        self.refused("build", "--filter", "range", "--on-disk", "-o", "x", "plain", says="--on-disk")
        self.refused("build", "--filter", "range", "--hash", "sha1", "-o", "x", "plain", says="order")
        self.refused("build", "--filter", "range", "--code-bits", "65", "-o", "x", "plain", says="1 to 64")
        self.refused("build", "--filter", "range", "-o", "x", "-", says="no keys")
        self.refused("add", "f", "-e", "1", says="takes no more keys")
        self.refused("explain", "f", "-e", "1", says="places")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
