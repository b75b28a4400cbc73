"""The promises of `perhaps advise`, kept by the real binary.

    advise_test.py PERHAPS [unittest arguments]

Times differ from run to run, so no test compares two of them. The tests check the arithmetic on the printed figures,
rates (n and z stated), sizes, and that the advice can be followed.
"""
import gzip
import json
import math
import os
import shlex
import struct
import subprocess
import sys
import unittest

import cli_test
from cli_test import PERHAPS, Case, lines

FAMILIES = [*cli_test.FAMILIES, "fuse"]  # of 3 and of 4 slots per key


class AdviseCase(Case):
    def setUp(self):
        super().setUp()
        self.keys = [b"key %d" % i for i in range(3000)]
        self.write("keys.txt", lines(self.keys))

    def advise(self, *args, stdin=b"", code=0):
        return json.loads(self.text("advise", "--json", *args, stdin=stdin, code=code))

    def refused(self, *args, says, stdin=b""):
        super().refused("advise", *args, says=says, stdin=stdin)

    def names(self, rows):
        return [row["family"] for row in rows]


class Table(AdviseCase):
    """Every family is ranked, or a reason is given; the rank follows from the figures in its row, and these from the
    keys."""

    def check(self, advice, saves, bit_price):
        ranked = advice["ranked"]
        self.assertEqual(sorted(self.names(ranked + advice["not_ranked"])), sorted(FAMILIES))
        self.assertEqual(advice["saves_ns"], saves)
        self.assertAlmostEqual(advice["bit_price_ns"], bit_price, delta=1e-9 * bit_price)
        for row in ranked:
            cost = row["batch_ns"] + row["fpr"] * saves
            self.assertAlmostEqual(row["cost_ns"], cost, delta=1e-6 * cost)
            total = cost + row["bits_per_key"] * bit_price
            self.assertAlmostEqual(row["total_ns"], total, delta=1e-6 * total)
            for figure in ["single_ns", "batch_ns", "build_seconds", "bytes"]:
                self.assertGreater(row[figure], 0, (row["family"], figure))
            self.assertEqual(row["fpr"], row["fpr_measured" if row["fpr_is_measured"] else "fpr_model"])
        self.assertEqual([row["total_ns"] for row in ranked], sorted(row["total_ns"] for row in ranked))
        for row in advice["not_ranked"]:
            self.assertGreater(len(row["reason"]), 10)

    def test_default(self):
        advice = self.advise("keys.txt")
        self.check(advice, 100e3, math.log(2) * 0.01 * 100e3)
        self.assertEqual((advice["keys"], advice["keys_distinct"], advice["keys_measured"]), (3000, 3000, 3000))
        self.assertEqual(len(advice["ranked"]), len(FAMILIES))
        for row in advice["ranked"]:
            # n = 1e6 absent keys, z = 5, and a tenth for the deviation of one small table from the model
            spread = 5 * math.sqrt(row["fpr_model"] / 1e6) + 0.1 * row["fpr_model"]
            self.assertAlmostEqual(row["fpr_measured"], row["fpr_model"], delta=spread, msg=row["family"])

    def test_sizes_are_those_of_the_filters(self):
        for row in self.advise("keys.txt", "--fpr", "0.003")["ranked"]:
            arity = ["--arity", str(row["arity"])] if "arity" in row else []
            expected = ["--keys-expected", "3000"] if row["family"] == "window" else []
            built = json.loads(self.text("build", "-o", "f", "--filter", row["family"], "--fpr", "0.003", *arity,
                                       *expected, "--json", "keys.txt"))
            self.assertEqual(built["bytes"], row["bytes"], row["family"])
            self.assertAlmostEqual(row["bits_per_key"], row["bytes"] * 8 / 3000, delta=1e-6)

    def test_saves(self):
        for text, ns in [("250ns", 250), ("1.5us", 1.5e3), ("2ms", 2e6), ("1s", 1e9), ("2m", 120e9)]:
            self.check(self.advise("keys.txt", "--saves", text, "--fpr", "2%"), ns, math.log(2) * 0.02 * ns)
        self.assertLess(self.advise("keys.txt", "--saves", "0ns")["gain_ns"], 0)
        self.assertIn("none: a lookup takes longer", self.text("advise", "keys.txt", "--saves", "0ns"))

    def test_no_exponents(self):
        text = self.text("advise", "keys.txt", "--fpr", "1e-5")
        self.assertIn("--fpr 0.00001", text)
        self.assertNotRegex(text, r"[0-9]e[-+]?[0-9]")

    def test_given_memory_has_no_price(self):
        for sizing in [["--max-bytes", "4k"], ["--bits-per-key", "12"]]:
            advice = self.advise("keys.txt", *sizing)
            self.check(advice, 100e3, 0)
            self.assertIn("scalable", self.names(advice["not_ranked"]))
            for row in advice["ranked"]:
                self.assertLessEqual(row["bytes"], 4600 if sizing[0] == "--bits-per-key" else 4000, row)

    def test_a_rate_out_of_reach(self):
        advice = self.advise("keys.txt", "--fpr", "1e-12")
        self.check(advice, 100e3, math.log(2) * 1e-12 * 100e3)
        for row in advice["ranked"]:
            self.assertFalse(row["fpr_is_measured"])
            # From the fill of this table, to the 40th power: it varies tenfold with the secret.
            self.assertTrue(0 < row["fpr_model"] < 1e-9, row)
        self.assertIn("out of its reach", str(advice["not_ranked"]))
        self.assertIn("~", self.text("advise", "keys.txt", "--fpr", "1e-12"))

    def test_text(self):
        text = self.text("advise", "keys.txt")
        table = text.split("\n\n")[1].splitlines()
        self.assertEqual(sorted(row.split()[0] for row in table[1:]), sorted(FAMILIES))
        self.assertIn("3,000, 3,000 distinct; all of them were measured", text)
        self.assertTrue(text.splitlines()[-1].split()[0] == "run", text)


class Needs(AdviseCase):
    """A family that cannot do what is needed is never advised, and the reason is given."""

    def test_needs(self):
        for needs, some in [("delete", {"counting", "cuckoo", "quotient"}),
                            ("remove,merge", {"counting", "quotient"}),
                            ("grow", {"scalable", "quotient"}),
                            ("delete,merge,grow", {"quotient"}),
                            ("add", {"line", "cuckoo", "window"}),
                            ("merge", {"line", "scalable", "counting", "quotient"})]:
            advice = self.advise("keys.txt", "--needs", needs)
            wanted = needs.replace("delete", "remove").split(",")
            able = {name for name, about in cli_test.FAMILIES.items() if all(about[need] for need in wanted)}
            self.assertLessEqual(some, able, needs)
            self.assertEqual(set(self.names(advice["ranked"])), able, needs)
            for row in advice["ranked"]:
                for need in needs.replace("remove", "delete").split(","):
                    self.assertTrue(row[need], (row["family"], need))
            for row in advice["not_ranked"]:
                self.assertIn("--needs", row["reason"])
        text = self.text("advise", "keys.txt", "--needs", "delete,grow")
        self.assertRegex(text, r"not ranked\n  line +cannot forget a key \(--needs delete\)\n")
        # A growing filter needs more than this for 3000 keys, whatever the rate.
        text = self.text("advise", "keys.txt", "--needs", "delete,grow", "--max-bytes", "1500")
        self.assertIn("the only family", text)

    def test_nothing_is_left(self):
        advice = self.advise("keys.txt", "--needs", "grow", "--max-bytes", "100", code=1)
        self.assertEqual((advice["ranked"], advice["command"]), ([], None))


class Command(AdviseCase):
    """The printed command runs unchanged on the same keys and makes the filter of the first row."""

    def follow(self, *args, stdin=b""):
        advice = self.advise(*args, stdin=stdin)
        self.assertEqual(shlex.split(advice["command"])[0], "perhaps")
        env = {**os.environ, "PATH": os.path.dirname(PERHAPS) + ":" + os.environ["PATH"]}
        done = subprocess.run(["bash", "-c", advice["command"]], cwd=self.folder, env=env, input=stdin,
                              capture_output=True)
        self.assertEqual(done.returncode, 0, (advice["command"], done.stderr))
        best = advice["ranked"][0]
        info = self.info(shlex.split(advice["command"])[3])
        self.assertEqual((info["family"], info["bytes"]), (best["family"], best["bytes"]), advice["command"])
        return shlex.split(advice["command"])

    def test_follow(self):
        words = self.follow("keys.txt")
        self.assertEqual(words[3], "keys.perhaps")
        verified = json.loads(self.text("verify", "keys.perhaps", "--keys", "keys.txt", "--json"))
        self.assertEqual((verified["keys"], verified["false_negatives"]), (3000, 0))
        self.assertLess(verified["fpr"], 0.0125)
        for args in [["--fpr", "1e-5", "--saves", "100ns"], ["--bits-per-key", "9.5"], ["--max-bytes", "8Ki"],
                     ["--needs", "delete"]]:
            self.follow("keys.txt", *args)

    def test_key_options(self):
        people = lines(b"%d;Name %d ;x" % (i, i) for i in range(2000))
        self.write("the people.csv", people)
        words = self.follow("--field", "2", "--delimiter", ";", "--lower", "--trim", "the people.csv")
        self.assertEqual(words[3], "the people.perhaps")
        self.text("query", words[3], "-e", "name 7")
        self.follow("--keys-as", "u64", self.write("n", b"".join(struct.pack("<Q", i) for i in range(2000))))
        self.follow("-0", self.write("z", b"\0".join(self.keys)))
        self.follow("--keys-as", "hex", self.write("h", lines(k.hex().encode() for k in self.keys)))
        self.follow("-e", "it's", "-e", "$HOME", "keys.txt")
        self.follow(self.write("keys.gz", gzip.compress(lines(self.keys))), "keys.txt")
        self.follow("-", stdin=lines(self.keys))
        self.follow("--", self.write("-odd", lines(self.keys)))
        self.assertEqual(self.follow(self.write("a.perhaps", lines(self.keys)))[3], "a.perhaps.perhaps")


    def test_what_does_not_fit_is_not_advised(self):
        for size in ["100", "200", "700"]:
            advice = self.advise("keys.txt", "--max-bytes", size)
            self.assertGreater(len(advice["not_ranked"]), 1)
            for row in advice["ranked"]:
                self.assertLessEqual(row["bytes"], int(size), row["family"])
            self.follow("keys.txt", "--max-bytes", size)


class Sampling(AdviseCase):
    """A sample represents all keys: their number, the size of the filter, which queries are absent. Duplicates do not
    make it larger."""

    def test_sample(self):
        keys = [b"k%d" % i for i in range(100_000)]
        self.write("many", lines(keys))
        # The sample decides 1/16 of the queries: of 20,000 keys and 60,000 others about 1250 and 3750
        self.write("asked", lines(keys[:20_000]) + lines(b"other %d" % i for i in range(60_000)))
        advice = self.advise("many", "--sample", "10k", "--queries", "asked")
        measured = advice["keys_measured"]
        self.assertLessEqual(measured, 10_000)
        self.assertGreater(measured, 5_000)
        # binomial: n = 100,000, p = 1/16, z = 5
        self.assertAlmostEqual(advice["keys_distinct"], 100_000, delta=5 * math.sqrt(100_000 * 15))
        # n = 5000 decided queries, p = 0.75, z = 5
        self.assertAlmostEqual(advice["queries_absent"], 0.75, delta=5 * math.sqrt(0.75 * 0.25 / 4500))
        self.assertTrue(advice["absent_are_queries"])
        for row in advice["ranked"]:
            size = {r["family"]: r["bytes"] for r in json.loads(self.text("size", "--keys", "100k", "--json"))}
            if row.get("arity") != 4:
                self.assertAlmostEqual(row["bytes"] / size[row["family"]], 1, delta=0.1, msg=row["family"])
        self.assertIn("a sample of", self.text("advise", "many", "--sample", "10k"))

    def test_duplicates(self):
        advice = self.advise("-", "--sample", "1000", stdin=b"one\n" * 5000 + lines(self.keys[:999]))
        self.assertEqual((advice["keys"], advice["keys_distinct"], advice["keys_measured"]), (5999, 1000, 1000))
        advice = self.advise("-e", "only")
        self.assertEqual(advice["keys_measured"], 1)

    def test_queries(self):
        self.write("asked", lines(self.keys[:1000]) + lines(b"other %d" % i for i in range(3000)))
        advice = self.advise("keys.txt", "--queries", "asked")
        self.assertEqual((advice["queries"], advice["asked"], advice["absent"]), (4000, 4000, 3000))
        self.assertEqual(advice["queries_absent"], 0.75)
        best = advice["ranked"][0]
        self.assertAlmostEqual(advice["gain_ns"], 0.75 * (1 - best["fpr"]) * 100e3 - best["batch_ns"], delta=0.1)
        self.assertIn("75 % of them are not among the keys", self.text("advise", "keys.txt", "--queries", "asked"))
        few = self.advise("keys.txt", "--queries", "-", stdin=b"key 1\nother\n")
        self.assertEqual((few["queries"], few["queries_absent"], few["asked_are_queries"]), (2, 0.5, False))
        known = self.advise("keys.txt", "--queries", "keys.txt")
        self.assertEqual((known["queries_absent"], known["asked_are_queries"], known["absent_are_queries"]),
                         (0, True, False))
        self.assertLess(known["gain_ns"], 0)


class Plans(AdviseCase):
    """Advice for keys that are not there yet, and for a rate that follows from prices. Would notice: sizes that are not
    those of the keys, a rate that is not the cheapest."""

    def test_without_keys(self):
        advice = self.advise("--keys", "300k", "--sample", "20k")
        self.assertEqual(advice["keys"], 300_000)
        self.assertTrue(10_000 <= advice["keys_measured"] <= 20_000, advice["keys_measured"])
        self.assertAlmostEqual(advice["keys_distinct"], 300_000, delta=32)
        size = {r["family"]: r["bytes"] for r in json.loads(self.text("size", "--keys", "300k", "--json"))}
        self.assertEqual({r["family"] for r in advice["ranked"]}, set(size))
        for row in advice["ranked"]:
            if row.get("arity") != 4:
                self.assertAlmostEqual(row["bytes"] / size[row["family"]], 1, delta=0.01, msg=row["family"])
            # n = 1e6 absent keys, z = 8; a filter of 20,000 keys is itself off by a few percent
            self.assertLess(row["fpr_measured"], 1.1 * row["fpr_model"] + 8 * math.sqrt(0.01 / 1e6))
        self.assertTrue(advice["command"].endswith(" keys.txt"), advice["command"])
        self.assertIn("300,000 random ones", self.text("advise", "--keys", "300k", "--sample", "20k"))

    def test_the_rate_follows_from_prices(self):
        def plan(wrong, memory, lookups):
            return self.advise("--keys", "1e6", "--sample", "2000", "--wrong-price", wrong, "--memory-price", memory,
                               "--lookups", lookups)
        advice = plan("0.4", "3", "1")
        month = 30 * 24 * 3600
        def price(bits):  # of an ideal filter of so many bits per key
            return 1e6 * bits / 8 / 1e9 * 3 + month * 2**-bits * 0.4 / 1e6
        cheapest = min((price(b / 1000), 2 ** -(b / 1000)) for b in range(1, 40_000))
        self.assertAlmostEqual(advice["fpr_chosen"] / cheapest[1], 1, delta=0.01)
        self.assertAlmostEqual(advice["price_without"], month * 0.4 / 1e6, places=9)
        best = advice["ranked"][0]
        self.assertAlmostEqual(advice["price_memory"], best["bytes"] / 1e9 * 3, places=9)
        self.assertAlmostEqual(advice["price_wrong"], month * best["fpr"] * 0.4 / 1e6, places=9)
        self.assertIn("--fpr %s" % advice["fpr_chosen"], advice["command"])
        # ten times the lookups are worth a tenth of the rate; memory that costs too much is worth no filter
        self.assertAlmostEqual(plan("0.4", "3", "10")["fpr_chosen"] / advice["fpr_chosen"], 0.1, delta=0.001)
        self.assertEqual(plan("0.001", "300", "1")["fpr_chosen"], 0.5)
        text = self.text("advise", "--keys", "1e6", "--sample", "2000", "--wrong-price", "0.001",
                         "--memory-price", "300", "--lookups", "1")
        self.assertIn("without a filter, which is less", text)
        text = self.text("advise", "--keys", "1e6", "--sample", "2000", "--wrong-price", "0.4", "--memory-price", "3",
                         "--lookups", "1000")
        self.assertRegex(text, r"price +[\d.]+ a month: [\d.]+ for memory, less than 0.001 for wrong answers")

    def test_refusals(self):
        self.refused("--keys", "1k", "keys.txt", says="no files of keys can be named beside it")
        self.refused("--keys", "1k", "--queries", "keys.txt", says="--queries")
        self.refused("keys.txt", "--wrong-price", "1", says="all three")
        prices = ["--wrong-price", "1", "--memory-price", "1", "--lookups", "1"]
        self.refused("keys.txt", *prices, "--fpr", "0.1", says="--fpr")
        self.refused("keys.txt", "--wrong-price", "-1", says="--wrong-price -1")
        self.refused("keys.txt", "--memory-price", "10%", says="--memory-price 10%")


class Refusals(AdviseCase):
    """A mistake is named, with exit code 2, and nothing is printed."""

    def test_refusals(self):
        self.refused("-", says="no keys")
        self.refused(self.write("none", b""), says="no keys")
        self.refused("missing", says="missing: No such file")
        self.refused("keys.txt", "--queries", "missing", says="missing: No such file")
        self.refused("-", "--queries", "-", says="named twice", stdin=b"x\n")
        for needs, word in [("delete,fly", "'fly'"), ("", "''"), ("delete,", "''"), ("Delete", "'Delete'")]:
            self.refused("keys.txt", "--needs", needs, says=word)
        for saves in ["100", "us", "-1s", "1e999s", "100 us", "10%us", "nans", "1us "]:
            self.refused("keys.txt", "--saves", saves, says="--saves " + saves)
        for fpr in ["0", "1", "x"]:
            self.refused("keys.txt", "--fpr", fpr, says="--fpr " + fpr)
        for sample in ["0", "999"]:  # fewer would be scaled up to meaningless figures
            self.refused("keys.txt", "--sample", sample, says="--sample " + sample)
        self.refused("keys.txt", "--field", "9", says="keys.txt:1")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[2:])
