"""The promises of `perhaps exact`, kept by the real binary.

    exact_set_test.py PERHAPS [unittest arguments]

Every class begins with its promise. Keys are fixed.
"""
import json
import os
import sys
import unittest

from cli_test import Case, lines


class Exact(Case):
    """query selects the members of a universe and nothing else, however the two lists came; verify proves it, and says
    which answer is wrong if one is. Would notice: a single wrong answer, a proof that proves nothing, keys that are
    read otherwise than they were built."""

    def setUp(self):
        super().setUp()
        self.all = [b"host%d.example.org" % i for i in range(20_000)]
        self.some = [key for i, key in enumerate(self.all) if i % 71 == 3]
        self.write("all", lines(self.all))
        self.write("some", lines(self.some))
        self.built = self.json("exact", "build", "-o", "e", "--members", "some", "--universe", "all")

    def test_members_and_nothing_else(self):
        self.assertEqual(self.ok("query", "e", "all"), lines(self.some))
        self.assertEqual(self.text("query", "-v", "-c", "e", "all").strip(), str(len(self.all) - len(self.some)))
        self.assertEqual((self.built["members"], self.built["universe"]), (len(self.some), len(self.all)))
        # Of 282 members, heads, codes and rounding to words of two ribbons count: 72 bytes each.
        least = self.built["bytes"] / self.built["times_limit"]
        self.assertLess(self.built["bytes"], 1.08 * least + 2 * 72)
        proof = self.json("verify", "e", "--members", "some", "--universe", "all")
        self.assertEqual((proof["exact"], proof["false_in"], proof["false_out"]), (True, 0, 0))
        self.assertEqual(proof["others"], len(self.all) - len(self.some))

    def test_info_says_what_an_answer_means(self):
        text = self.text("info", "e")
        self.assertIn("exact", text)
        self.assertIn("meaningless for any other", text)
        self.assertEqual(self.json("info", "e")[0]["family"], "exact")

    def test_verify_notices(self):
        # One key more in the list than in the set, and one less.
        self.write("more", lines(self.some + [self.all[0]]))
        self.write("less", lines(self.some[1:]))
        proof = json.loads(self.ok("verify", "e", "--members", "more", "--universe", "all", "--json", code=1))
        self.assertEqual((proof["exact"], proof["false_in"], proof["false_out"]), (False, 0, 1))
        self.assertIn("members   %d: 1 OUT" % (len(self.some) + 1),
                      self.text("verify", "e", "--members", "more", "--universe", "all", code=1))
        proof = json.loads(self.ok("verify", "e", "--members", "less", "--universe", "all", "--json", code=1))
        self.assertEqual((proof["exact"], proof["false_in"], proof["false_out"]), (False, 1, 0))
        self.refused("verify", "e", "--keys", "some", says=["is an exact set", "--universe"])
        self.ok("build", "-o", "f", "some")
        self.refused("verify", "f", "--members", "some", "--universe", "all", says=["f: is not an exact set"])
        self.refused("verify", "e", "--members", "some", says=["both --members and --universe"])

    def test_pipes_memory_threads_and_order_give_the_same_bytes(self):
        os.environ["SOURCE_DATE_EPOCH"] = "1"
        self.addCleanup(os.environ.pop, "SOURCE_DATE_EPOCH")
        self.ok("exact", "build", "-o", "e1", "--members", "some", "--universe", "all", "--threads", "1")
        self.write("backwards", lines(reversed(self.all)))
        self.ok("exact", "build", "-o", "e2", "--members", "some", "--universe", "backwards", "--threads", "2")
        self.ok("exact", "build", "-o", "e3", "--members", "some", "--universe", "-", stdin=lines(self.all))
        self.ok("exact", "build", "-o", "e4", "--members", "some", "--universe", "-", "--memory", "10k",
                stdin=lines(self.all))
        for other in ["e2", "e3", "e4"]:
            self.assertEqual(self.read("e1"), self.read(other), other)

    def test_keys_that_repeat_cost_nothing(self):
        self.write("often", lines(self.all * 20))
        often = self.json("exact", "build", "-o", "o", "--members", "some", "--universe", "often")
        self.assertLess(often["bytes"], 1.05 * self.built["bytes"])
        self.assertEqual(self.ok("query", "o", "all"), lines(self.some))

    def test_recipe_is_kept(self):
        self.write("people.csv", b"id,mail\n" + b"".join(b"%d,User%d@X.org\n" % (i, i) for i in range(3000)))
        self.write("few.csv", b"id,mail\n" + b"".join(b"%d,User%d@X.org\n" % (i, i) for i in range(0, 3000, 100)))
        self.ok("exact", "build", "-o", "m", "--csv", "--field", "mail", "--lower", "--members", "few.csv",
                "--universe", "people.csv")
        self.assertEqual(self.ok("query", "m", "people.csv"), self.read("few.csv"))
        self.assertEqual(self.text("query", "--answers", "m", "-e", "USER100@x.org").split("\t")[0], "perhaps")
        self.ok("verify", "m", "--members", "few.csv", "--universe", "people.csv")

    def test_numbers(self):
        self.write("n", b"".join(i.to_bytes(8, "little") for i in range(5000)))
        self.write("m", b"".join(i.to_bytes(8, "little") for i in range(0, 5000, 50)))
        self.ok("exact", "build", "-o", "u", "--keys-as", "u64", "--members", "m", "--universe", "n")
        self.assertEqual(self.ok("query", "u", "n"), self.read("m"))
        self.ok("verify", "u", "--members", "m", "--universe", "n")
        self.refused("exact", "build", "-o", "u", "--keys-as", "u64", "--partition", "1", "--members", "m",
                     "--universe", "n", says=["numbers have no fields"])

    def test_keyed(self):
        self.write("key", bytes(range(16)))
        os.chmod(self.path("key"), 0o600)
        self.ok("exact", "build", "-o", "k", "--keyed", "key", "--members", "some", "--universe", "all")
        self.assertEqual(self.ok("query", "--keyed", "key", "k", "all"), lines(self.some))
        self.refused("query", "k", "all", says=["keyed"])

    def test_mistakes(self):
        self.write("empty", b"")
        for args, says in [
            (["build", "-o", "x", "--members", "some"], "needs --members and --universe"),
            (["build", "-o", "x", "--members", "empty", "--universe", "all"], "no members came"),
            (["build", "-o", "x", "--members", "some", "--universe", "empty"], "no keys came"),
            (["build", "-o", "all", "--members", "some", "--universe", "all"], "would be overwritten"),
            (["build", "-o", "./all", "--members", "some", "--universe", "all"], "would be overwritten"),
            (["build", "-o", "x", "--members", "nowhere", "--universe", "all"], "nowhere"),
            (["diff", "e", "-o", "x"], "two files"),
            (["diff", "e", "e", "-o", "x"], "needs --universe"),
            (["apply", "e", "e", "-o", "x"], "is a set, not an update"),
            (["frob", "e", "-o", "x"], "frob"),
        ]:
            self.refused("exact", *args, says=[says])
        self.refused("verify", "e", "--members", "some", "--universe", "empty", says=["nothing was proved"])
        self.ok("exact", "build", "--lower", "-o", "lower", "--members", "some", "--universe", "all")
        self.refused("exact", "diff", "e", "lower", "--universe", "all", "-o", "x", says=["recipes"])
        self.ok("exact", "build", "--allow-empty", "-o", "none", "--members", "empty", "--universe", "all")
        self.assertEqual(self.ok("query", "none", "all", code=1), b"")
        self.assertFalse(os.path.exists(self.path("x")))
        self.refused("add", "e", "-e", "x", says=["exact"])


class Parts(Case):
    """With --partition each value of a field has its own density: smaller, and no less exact."""

    def test_smaller_and_exact(self):
        rows = [(b"dense" if i % 3 == 0 else b"sparse%d" % (i % 2), b"%d" % i) for i in range(30_000)]
        self.write("all", lines(b",".join(row) for row in rows))
        members = [row for i, row in enumerate(rows) if (row[0] == b"dense" and i % 2 == 0) or i % 1000 == 1]
        self.write("some", lines(b",".join(row) for row in members))
        flat = self.json("exact", "build", "-o", "flat", "--members", "some", "--universe", "all")
        for options in [["--partition", "1", "--partition-delimiter", ","],
                        ["--field", "1,2", "--delimiter", ",", "--partition", "1"]]:
            made = self.json("exact", "build", "-o", "parts", *options, "--members", "some", "--universe", "all")
            self.assertLess(made["bytes"], 0.8 * flat["bytes"])
            self.assertGreaterEqual(made["parts"], 1)
            self.ok("verify", "parts", "--members", "some", "--universe", "all")
            self.assertEqual(self.ok("query", "parts", "all"), self.read("some"))
        # From a pipe.
        piped = self.json("exact", "build", "-o", "piped", "--partition", "1", "--partition-delimiter", ",",
                          "--members", "some", "--universe", "-", stdin=self.read("all"))
        self.assertLess(piped["bytes"], 0.8 * flat["bytes"])
        self.ok("verify", "piped", "--members", "some", "--universe", "all")


class Updates(Case):
    """OLD and the update are NEW for every key of its universe, and smaller to send if little changed; if much did,
    diff says so. Would notice: an update for another set, one that is larger than the whole."""

    def test_diff_and_apply(self):
        everything = [b"%d" % i for i in range(30_000)]
        self.write("all", lines(everything))
        self.write("next", lines(everything + [b"new%d" % i for i in range(500)]))
        old = everything[::50]
        new = old[5:] + [b"new7", b"new8", b"29999"]
        self.write("old", lines(old))
        self.write("new", lines(new))
        self.write("other", lines(everything[7::50]))
        self.ok("exact", "build", "-o", "e", "--members", "old", "--universe", "all")
        self.ok("exact", "build", "-o", "e2", "--members", "new", "--universe", "next")
        self.ok("exact", "build", "-o", "e3", "--members", "other", "--universe", "all")
        made = self.json("exact", "diff", "e", "e2", "--universe", "next", "-o", "d")
        self.assertTrue(made["written"])
        self.assertLess(made["bytes"], made["whole_bytes"] / 2)
        self.ok("exact", "apply", "e", "d", "-o", "applied")
        self.ok("verify", "applied", "--members", "new", "--universe", "next")
        self.assertEqual(self.json("info", "applied")[0]["keys"], len(new))
        # And an update of the updated one.
        self.write("last", lines(new[1:]))
        self.ok("exact", "build", "-o", "e4", "--members", "last", "--universe", "next")
        self.ok("exact", "diff", "applied", "e4", "--universe", "next", "-o", "d2")
        self.ok("exact", "apply", "applied", "d2", "-o", "applied2")
        self.ok("verify", "applied2", "--members", "last", "--universe", "next")
        self.refused("exact", "apply", "e", "d2", "-o", "x", says=["an update of another set than"])
        # Nearly all answers change.
        made = json.loads(self.ok("exact", "diff", "e", "e3", "--universe", "all", "-o", "large", "--json", code=1))
        self.assertFalse(made["written"])
        self.assertFalse(os.path.exists(self.path("large")))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
