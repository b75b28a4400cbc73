"""What somebody can do who chooses the lines that the tool reads (SECURITY.md).

    attack_test.py PERHAPS [unittest arguments]

Promise: nothing to `dedup` and `advise`, which draw a secret for each run, nor to filters built with --keyed. The
limit of the promise, proved by the attack itself: a filter with a public hash, the default of `build`, claims to have
a chosen key or loses it. The attack: XXH3 of 16 bytes can be computed backwards, so that for every line there is
another one with the same digest (test/support/attack.h has the formula). Would notice: a tool that hashes publicly
where nobody else reads its filter, and a secret that is not one.
"""
import os
import struct
import sys
import unittest

from cli_test import EXACT, Case, able, lines

MASK = (1 << 64) - 1
LOW = 0x1F67B3B7A4A44072 ^ 0x78E5C0CC4EE679CB
HIGH = 0x2172FFCC7DD05A82 ^ 0x8E2443F7744608B8
MULTIPLIER = 0x165667919E3779F9


def fold(a, b):
    return a * b & MASK ^ a * b >> 64


def before_avalanche(key, seed):
    """XXH3 of 9 to 16 bytes, but for its last step, which is one to one."""
    low = struct.unpack("<Q", key[:8])[0] ^ LOW + seed & MASK
    high = struct.unpack("<Q", key[-8:])[0] ^ HIGH - seed & MASK
    return len(key) + int.from_bytes(low.to_bytes(8, "little"), "big") + high + fold(low, high) & MASK


def forged(victim, seed):
    """Another key with the digest of `victim`, of 16 bytes."""
    high = (before_avalanche(victim, seed) - 16) & MASK
    key = struct.pack("<QQ", LOW + seed & MASK, high ^ HIGH - seed & MASK)
    assert before_avalanche(key, seed) == before_avalanche(victim, seed)
    return key


class Attack(Case):
    def seed(self):
        """Of filters that nobody gave one."""
        self.ok("build", "-o", "seeded", stdin=b"x\n")
        return int(next(v for k, v in self.facts("seeded") if k == "seed"))

    def facts(self, name):
        for line in self.text("info", name).splitlines():
            words = line.split()
            if words:
                yield words[0].rstrip(":"), words[-1]

    def rate(self, family):
        return [] if family == "block" else EXACT  # which is out of its reach

    def pairs(self, count):
        """Victims and forged lines. A forged key that contains an end of line is no line."""
        seed = self.seed()
        victims, others = [], []
        for i in range(1 << 40):
            victim = b"ALERT %d" % (1000 + i)
            other = forged(victim, seed)
            if b"\n" in other or b"\r" in other:
                continue
            victims.append(victim)
            others.append(other)
            if len(victims) == count:
                return victims, others

    def test_public_filters_claim_chosen_keys(self):
        victims, others = self.pairs(200)
        self.write("victims", lines(victims))
        self.write("others", lines(others))
        for family in able(lambda f: True):
            self.ok("build", "--filter", family, *self.rate(family), "-o", "f", "others")
            self.assertEqual(self.ok("query", "f", "victims"), lines(victims), family)

    def test_public_filters_lose_chosen_keys(self):
        victims, others = self.pairs(200)
        self.write("victims", lines(victims))
        for family in able(lambda f: f["remove"]):
            self.ok("build", "--filter", family, *EXACT, "-o", "f", stdin=lines(victims))
            self.ok("remove", "f", stdin=lines(others))
            self.ok("query", "f", "victims", code=1)

    def test_keyed_filters_do_neither(self):
        victims, others = self.pairs(200)
        self.write("victims", lines(victims))
        self.write("others", lines(others))
        self.write("secret", os.urandom(16))
        for family in able(lambda f: True):
            self.ok("build", "--keyed", "secret", "--filter", family, *self.rate(family), "-o", "f", "others")
            done = self.run_perhaps("query", "--keyed", "secret", "f", "victims")
            self.assertLess(len(done.stdout.splitlines()), 10, family)
            self.assertIn(done.returncode, (0, 1))
        for family in able(lambda f: f["remove"]):
            self.ok("build", "--keyed", "secret", "--filter", family, *EXACT, "-o", "f", stdin=lines(victims))
            self.run_perhaps("remove", "--keyed", "secret", "f", stdin=lines(others))
            self.assertEqual(self.ok("query", "--keyed", "secret", "f", "victims"), lines(victims), family)

    def test_dedup_swallows_nothing(self):
        """In each of its ways: 1e5 tries, and at 1e-9 no line is lost by accident."""
        victims, others = self.pairs(50_000)
        data = lines(others) + lines(victims)
        self.write("a", data)
        for args, stdin in [(["a"], b""), ([], data), (["--keys-expected", "200000"], data),
                            (["--window", "200000"], data), (["--for", "1h"], data)]:
            kept = self.ok("dedup", "-q", *EXACT, *args, stdin=stdin)
            self.assertEqual(len(kept.splitlines()), 100_000, args)
            self.assertTrue(kept == data, args)

    def test_advise_is_not_misled(self):
        """Queries that collide with the keys, and are absent. (Under the public hash all of them seemed present.)"""
        victims, others = self.pairs(5000)
        self.write("keys", lines(others))
        self.write("queries", lines(victims))
        advice = self.json("advise", "keys", "--queries", "queries")
        self.assertEqual(advice["queries"], 5000)
        self.assertEqual(advice["queries_absent"], 1)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
