"""The promises of `perhaps route` and `perhaps allocate`, kept by the real binary.

    route_test.py PERHAPS [unittest arguments]

Every class begins with its promise. Keys are fixed, so the false positives are always the same.
"""
import json
import os
import sys
import unittest
import xml.etree.ElementTree

from cli_test import Case, lines


class Route(Case):
    """Every key is routed at least to the sets that hold it, also after sets were added and removed. Would notice: a
    set that is not named for its own key, one that is named after it was removed, an index changed by a command that
    failed."""

    SETS = 70

    def setUp(self):
        super().setUp()
        for i in range(self.SETS + 1):
            self.write("%d.txt" % i, lines(b"%d:%d" % (i, j) for j in range(50)))
        named = ["s%d=%d.txt" % (i, i) for i in range(self.SETS)]
        self.made = self.json("route", "--build", "--fpr", "1e-6", "sets", *named)

    def route(self, *args, stdin=b"", code=0):
        text = self.text("route", "sets", *args, stdin=stdin, code=code)
        rows = [line.split("\t") for line in text.splitlines()]
        return {row[0]: row[1].split(",") if len(row) > 1 else [] for row in rows}

    def test_every_key_finds_its_set(self):
        self.assertEqual((self.made["sets"], self.made["keys"], self.made["slots"]), (70, 3500, 128))
        self.assertLess(self.made["false_sets"], 1e-4)
        everything = b"".join(self.read("%d.txt" % i) for i in range(self.SETS))
        routes = self.route(stdin=everything + b"nowhere\n")
        for i in range(self.SETS):
            for j in range(50):
                self.assertEqual(routes["%d:%d" % (i, j)], ["s%d" % i])
        self.assertEqual(routes["nowhere"], [])
        self.assertEqual(self.route("-e", "nowhere", code=1), {"nowhere": []})

    def test_sets_come_and_go(self):
        self.text("route", "--remove", "sets", "s3", "s69")
        self.text("route", "--add", "sets", "again=3.txt", "more=70.txt")
        self.assertEqual(self.route("-e", "3:7")["3:7"], ["again"])
        self.assertEqual(self.route("-e", "70:0")["70:0"], ["more"])
        self.assertEqual(self.route("-e", "69:1", code=1)["69:1"], [])
        self.assertEqual(self.route("-e", "4:49")["4:49"], ["s4"])
        self.assertIn("sets", self.text("info", "sets"))
        self.text("query", "sets", "-e", "3:7")  # as one filter: whether any set has the key
        self.text("query", "sets", "-e", "nowhere", code=1)

    def test_the_recipe_is_stored(self):
        self.write("upper.txt", b"ANN,1\nBOB,2\n")
        self.write("more.csv", b"CID\n")
        self.text("route", "--build", "--fpr", "1e-6", "--lower", "--field", "1", "--delimiter", ",", "sets",
                  "x=upper.txt")
        self.assertIn("recipe     lines field=1 delimiter=, lower", self.text("info", "sets"))
        self.assertEqual(self.route("-e", "Ann", "-e", "bob"), {"Ann": ["x"], "bob": ["x"]})
        self.assertEqual(self.route(stdin=b"Ann,9\n"), {"Ann,9": ["x"]})
        self.text("route", "--add", "--keys-as", "lines", "sets", "y=more.csv")
        self.assertEqual(self.route("-e", "cid"), {"cid": ["y"]})
        self.text("route", "--remove", "sets", "y")
        self.assertEqual(self.route("-e", "ANN"), {"ANN": ["x"]})
        for change in [["sets", "-e", "ann"], ["--add", "sets", "z=more.csv"]]:
            self.refused("route", "--trim", *change, says=["sets: its keys were made by the recipe", "--recipe given"])
        self.assertEqual(self.route("--recipe", "given", "-e", "Ann", code=1), {"Ann": []})

    def test_a_key_in_two_sets(self):
        self.write("both.txt", b"5:5\n")
        self.text("route", "--add", "sets", "both=both.txt")
        self.assertEqual(sorted(self.route("-e", "5:5")["5:5"]), ["both", "s5"])

    def test_a_failure_changes_nothing(self):
        before = self.read("sets")
        self.refused("route", "--add", "sets", "s1=1.txt", says="two sets 's1'")
        self.refused("route", "--remove", "sets", "s1", "x", says="no set 'x'")
        self.refused("route", "--add", "sets", "1.txt", says="NAME=FILE")
        self.refused("route", "--add", "--remove", "sets", "s1", says="exclude each other")
        self.refused("route", "--add", "sets", "a=missing.txt", says="missing.txt")
        self.assertEqual(self.read("sets"), before)
        self.text("build", "-o", "line", "1.txt")
        self.refused("route", "line", "-e", "1", says="not an index of sets")
        self.write("cut", before[:-64])
        self.refused("route", "cut", "-e", "1", says="truncated")

    def test_json_has_the_same_answers(self):
        self.text("route", "--add", "sets", "both=5.txt")
        text = self.text("route", "sets", "--json", "-e", "5:5", "-e", "nowhere")
        self.assertEqual([json.loads(line) for line in text.splitlines()],
                         [{"record": "5:5", "sets": ["s5", "both"]}, {"record": "nowhere", "sets": []}])

    def test_a_key_option_is_for_queries_only(self):
        # Such a key was once inserted into every set.
        self.refused("route", "--build", "new", "a=1.txt", "-e", "x", says="--key")
        self.refused("route", "--remove", "sets", "s1", "-e", "x", says="--key")
        self.refused("route", "--add", "sets", "a=1.txt", "--fpr", "0.5", says="--build")
        for name in ("a,b", "a\tb", "a\nb"):
            self.refused("route", "--build", "new", name + "=1.txt", says="a name has no comma")

    def test_keyed(self):
        self.write("secret", b"0123456789abcdef")
        self.text("route", "--build", "--keyed", "secret", "kept", "a=1.txt", "b=2.txt")
        self.refused("route", "kept", "-e", "1:1", says="key")
        self.assertEqual(self.text("route", "--keyed", "secret", "kept", "-e", "1:1"), "1:1\ta\n")


class Allocate(Case):
    """The figures add up: rows give the sums, the budget is kept, and spreading it is never worse than an even one."""

    def allocate(self, *args):
        return self.json("allocate", *args)

    def test_sums(self):
        for args in (["--keys", "1e9", "--budget", "1G"], ["--keys", "1e6", "--budget", "2M", "--levels", "7"],
                     ["--keys", "1e8", "--budget", "100M", "--ribbon", "2", "--ratio", "4", "--runs", "6"],
                     ["--keys", "1000", "--budget", "1", "--levels", "1"]):
            d = self.allocate(*args)
            self.assertLessEqual(d["bytes"], d["budget"])
            self.assertEqual(sum(row["bytes"] for row in d["levels"]), d["bytes"])
            self.assertAlmostEqual(sum(row["cost"] * row["fpr"] for row in d["levels"]), d["wasted_reads"])
            self.assertLessEqual(d["wasted_reads"], d["even_wasted_reads"] * (1 + 1e-9))

    def test_what_it_gains(self):
        d = self.allocate("--levels", "4", "--ratio", "10", "--keys", "1e9", "--budget", "1.25G")
        self.assertGreater(d["even_wasted_reads"] / d["wasted_reads"], 2)
        d = self.allocate("--levels", "4", "--ratio", "10", "--keys", "1e9", "--budget", "1.25G", "--ribbon", "1")
        self.assertLess(d["bytes_for_even_reads"], 0.7 * d["even_bytes"])
        # The best peer is an even Ribbon: far fewer reads than even line filters, and still more than spread ones.
        self.assertLess(d["even_ribbon_wasted_reads"], d["even_wasted_reads"] / 5)
        self.assertGreater(d["even_ribbon_wasted_reads"], 1.5 * d["wasted_reads"])

    def test_table_and_picture(self):
        text = self.text("allocate", "--keys", "1e9", "--budget", "1G", "--plot", "levels.svg")
        rows = text.splitlines()
        self.assertEqual([row.split()[0] for row in rows[:6]], ["level", "1", "2", "3", "4", "all"])
        self.assertIn("times fewer", text)
        self.assertLessEqual(max(map(len, rows)), 100)
        bars = [row.split() for row in rows[7:12]]
        self.assertEqual([bar[0] for bar in bars], ["1", "2", "3", "4", "even"])
        drawn = [(float(bar[2]), bar[1].count("#")) for bar in bars]
        self.assertEqual(max(drawn)[1], 50)
        for bits, marks in drawn:
            self.assertAlmostEqual(marks, 50 * bits / max(drawn)[0], delta=0.6)
        picture = xml.etree.ElementTree.fromstring(self.read("levels.svg"))
        self.assertTrue(picture.tag.endswith("svg"))

    def test_refusals(self):
        self.refused("allocate", "--keys", "1e6", "--budget", "1M", "--ribbon", "5", says="there are 4 levels")
        self.refused("allocate", "--keys", "1e6", "--budget", "1M", "--ratio", "0.5", says="--ratio")
        self.refused("allocate", "--keys", "1e6", says="--budget")
        self.refused("allocate", "--keys", "1e19", "--budget", "1e19", says="--keys")
        self.refused("allocate", "--keys", "1e6", "--budget", "1M", "--levels", "1000", says="--levels")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
