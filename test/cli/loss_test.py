"""Nothing is lost by mistake: what a command would do to a good file by accident, it refuses or states.

    loss_test.py PERHAPS [unittest arguments]
"""
import json
import os
import re
import sys
import unittest

from cli_test import Case, FAMILIES, UNGUARDED, able, lines


class Remove(Case):
    """Removing keys that were never added changes nothing, unless --partial says so; and then the harm is stated."""

    def setUp(self):
        super().setUp()
        self.keys = [b"key %d" % i for i in range(20_000)]
        self.strangers = [b"stranger %d" % i for i in range(20_000)]
        self.write("keys", lines(self.keys))
        self.write("strangers", lines(self.strangers))
        self.write("mixed", lines(self.keys[:100] + [b"never added"]))

    def test_all_or_nothing(self):
        for family in able(lambda about: about["remove"]):
            with self.subTest(family):
                self.ok("build", "-o", "f", "--filter", family, "--fpr", "1e-4", "keys")
                before = self.read("f")
                self.refused("remove", "f", "mixed", says=["f: not in it: 1 of 101 keys", '"never added" (mixed:101)',
                                                           "Nothing was removed", "--partial"])
                self.refused("remove", "f", "-e", "none", says=["f: not in it: 1 of 1 keys", '"none" (-e)'])
                self.refused("remove", "f", "-", "--json", stdin=lines(self.strangers), says="standard input:1")
                self.assertEqual(self.read("f"), before)
                done = self.json("remove", "--partial", "f", "mixed")
                self.assertEqual((done["removed"] + done["kept"], done["absent"]), (100, 1))

    def test_the_harm_is_stated(self):
        """Against the truth: 20,000 strangers, and a fifth of the members gone at most. The bound is a quarter of the
        figure and 5 sigma of a count."""
        for family in able(lambda about: about["remove"]):
            for guards in [[]] if family in UNGUARDED else [[], ["--guard-bits", "1"]]:
                with self.subTest((family, guards)):
                    self.ok("build", "-o", "f", "--filter", family, "--fpr", "0.02", *guards, "keys")
                    message = self.refused("remove", "f", "strangers", says="keys that should stay are lost")
                    done = self.run_perhaps("remove", "--partial", "--json", "f", "strangers")
                    said = json.loads(done.stdout)["lost"]
                    lost = int(self.ok("query", "-v", "-c", "f", "keys"))
                    self.assertGreater(lost, 50)
                    self.assertLess(abs(said - lost), 0.25 * lost + 5 * lost**0.5)
                    self.assertIn("about {:,} keys that should".format(round(said)), done.stderr.decode())
                    before = re.search(r"about ([\d,]+) keys that should", message)[1]  # of the fuller filter
                    self.assertLess(abs(int(before.replace(",", "")) - lost), 0.25 * lost + 5 * lost**0.5)
                    if family != "counting":  # a member for each
                        self.assertLessEqual(said, json.loads(done.stdout)["removed"])


class Empty(Case):
    """`false | perhaps build -o good` leaves the good file alone."""

    def test_no_keys(self):
        self.write("keys", b"a\nb\n")
        self.write("none", b"")
        for family in FAMILIES:
            self.ok("build", "-o", "good", "--filter", family, "keys")
            before = self.read("good")
            expected = ["--keys-expected", "9"] if family == "window" else []
            for args in [["-"], ["none"], ["none", "-"]]:
                self.refused("build", "-o", "good", "--filter", family, *expected, *args,
                             says=["no keys came from", "--allow-empty"])
            self.assertEqual(self.read("good"), before)
        self.refused("build", "-o", "good", "--on-disk", "none", says="no keys came from none")
        self.refused("build", "-o", "good", "--keys-expected", "9", "-", says="no keys came from standard input")
        self.refused("build", "-o", "good", "--format", "guava", "-", says="no keys came from standard input")
        self.assertEqual(self.read("good"), before)
        self.ok("build", "-o", "good", "--allow-empty", "none")
        self.assertNotEqual(self.read("good"), before)


class Repeats(Case):
    """A list in which keys repeat makes the filter of its distinct keys, however it is read, and the report says so."""

    def sizes(self, keys, repeated, *args):
        self.write("once", lines(keys))
        self.write("often", lines(repeated))
        once = self.json("build", "-o", "a", *args, "once")
        often = self.json("build", "-o", "b", *args, "often")
        if "--max-bytes" not in args:  # with it a pipe is not kept, and its keys are not counted
            self.json("build", "-o", "c", *args, "-", stdin=lines(repeated))
            self.assertEqual(self.read("b"), self.read("c"), args)
        self.assertEqual(self.json("verify", "b", "--keys", "often")["false_negatives"], 0)
        return once, often

    def test_sized_for_distinct_keys(self):
        for count in [3000, 100_000]:
            keys = [b"%d" % i for i in range(count)]
            for family in ["line", "block", "classic"]:
                for shape in [[], ["--bits-per-key", "12"], ["--on-disk"]]:
                    with self.subTest((count, family, shape)):
                        once, often = self.sizes(keys, keys + keys, "--filter", family, *shape)
                        self.assertEqual((once["keys"], often["keys"]), (count, 2 * count))
                        self.assertEqual(once["capacity"], count)
                        self.assertLess(abs(often["capacity"] / count - 1), 0.03)
                        self.assertLess(abs(often["bytes"] / once["bytes"] - 1), 0.04)
        self.assertRegex(self.text("build", "-o", "b", "often"),
                         r"200,000, about (99|100),\d{3} distinct, for which it is sized, from often")
        self.assertNotIn("for which", self.text("build", "-o", "b", "once"))

    def test_a_limit_is_spent_on_distinct_keys(self):
        """In 125,000 bytes, 100,000 keys have 10 bits each: more probes than for 200,000 lines."""
        keys = [b"%d" % i for i in range(100_000)]
        once, often = self.sizes(keys, keys * 4, "--max-bytes", "125000")
        self.assertEqual((once["bytes"], once["probes"]), (often["bytes"], often["probes"]))

    def test_few_repeats_change_nothing(self):
        keys = [b"%d" % i for i in range(100_000)]
        once, often = self.sizes(keys, keys + keys[:1000])
        self.assertEqual(often["capacity"], 101_000)


class Limits(Case):
    """A rate, a size or an index that costs more than it seems is refused or said."""

    def setUp(self):
        super().setUp()
        self.write("keys", lines(b"key %d" % i for i in range(20_000)))
        self.write("more", lines(b"more %d" % i for i in range(20_000)))

    def test_rates(self):
        for command in [["build", "-o", "x", "keys"], ["size", "--keys", "1M"], ["bench", "--keys", "1000"],
                        ["dedup", "keys"], ["route", "--build", "x", "a=keys"]]:
            self.refused(*command, "--fpr", "1e-300",
                         says="--fpr 1e-300: out of reach; the lowest rate is 1 in 1 trillion")
        for family in able(lambda about: not about["add"]):
            self.refused("build", "-o", "x", "--filter", family, "--fpr", "1e-11", "keys",
                         says="%s: fpr: 1 in 100000000000 is out of reach" % family)

    def test_sizes(self):
        for family in able(lambda about: not about["add"]):
            self.refused("build", "-o", "x", "--filter", family, "--max-bytes", "1000", "keys",
                         says=["--max-bytes 1000", "whatever the false-positive rate"])
            self.refused("build", "-o", "x", "--filter", family, "--bits-per-key", "0.4", *["keys", "more"] * 2,
                         says=["--bits-per-key 0.4: a %s filter takes" % family])
            built = self.json("build", "-o", "x", "--filter", family, "--bits-per-key", "9", "keys")
            self.assertGreater(built["bytes"], 20_000)

    def test_an_index_of_few_sets(self):
        done = self.run_perhaps("route", "--build", "x", "a=keys", "b=more")
        self.assertEqual(done.returncode, 0)
        self.assertRegex(done.stderr.decode(), r"warning: x: 3\d times the memory of 2 filters of these sets")
        for i in range(64):
            self.write("set%d" % i, lines(b"%d/%d" % (i, j) for j in range(300)))
        done = self.run_perhaps("route", "--build", "x", *["s%d=set%d" % (i, i) for i in range(64)])
        self.assertEqual((done.returncode, done.stderr), (0, b""))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[2:])
