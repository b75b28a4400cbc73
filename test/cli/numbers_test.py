"""Numbers that people can read, calculate with, and check again.

    numbers_test.py PERHAPS [unittest arguments]
"""
import re
import sys
import unittest

from cli_test import Case, lines

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


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
