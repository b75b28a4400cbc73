"""perhaps explain, by the real binary: explaining_test.py PERHAPS"""
import json
import sys
import unittest

from cli_test import FAMILIES, Case, lines


class Explain(Case):
    """The explanation of a key has the answer of `query`, and its checks lead there. Would notice: an answer that
    differs, a check that contradicts it, a family that crashes."""

    def explained(self, *args):
        done = self.run_perhaps("explain", "--json", *args)
        return done.returncode, [json.loads(line) for line in done.stdout.splitlines()]

    def test_every_family(self):
        self.write("keys", lines(b"key %d" % i for i in range(1000)))
        for family in FAMILIES:
            self.ok("build", "--filter", family, "-o", family, "keys")
            for key, known in [("key 7", True), ("absent", None)]:
                code, (said,) = self.explained(family, "-e", key)
                answer = self.run_perhaps("query", "--answers", family, "-e", key).stdout.decode().split("\t")[0]
                self.assertEqual(said["answer"], answer, family)
                self.assertEqual(code, 0 if answer == "perhaps" else 1, family)
                self.assertEqual((said["key"], said["family"]), (key, family))
                if known:
                    self.assertEqual(answer, "perhaps")
                for part in said["parts"]:
                    holds = [check["holds"] for check in part["checks"]]
                    self.assertIn(part["rule"], ["all", "any", "xor"], family)
                    self.assertEqual(part["perhaps"], (any if part["rule"] == "any" else all)(holds), family)
                text = self.run_perhaps("explain", family, "-e", key).stdout.decode()
                self.assertRegex(text, rf"answer +{answer}", family)

    def test_words(self):
        self.write("keys", lines([b"hello"]))
        self.ok("build", "-o", "seen", "keys")
        text = self.ok("explain", "seen", "-e", "hello").decode()
        for word in ["xxh3-64", "line", "0 of 1", "set", "answer", "perhaps: all 8 hold"]:
            self.assertIn(word, text)
        done = self.run_perhaps("explain", "seen", "-e", "world")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stdout.decode(), r"no: \d of 8 fail")

    def test_numbers_and_recipes(self):
        self.write("keys", lines([b"HELLO"]))
        self.ok("build", "--lower", "-o", "lower", "keys")
        self.assertEqual(self.explained("lower", "-e", "Hello")[1][0]["answer"], "perhaps")
        self.write("numbers", (42).to_bytes(8, "little"))
        self.ok("build", "--keys-as", "u64", "--fpr", "1e-6", "-o", "numbers.perhaps", "numbers")
        code, (said,) = self.explained("numbers.perhaps", "numbers")
        self.assertEqual((code, said["key"], said["answer"]), (0, "42", "perhaps"))

    def test_other_systems(self):
        self.write("keys", lines(b"key %d" % i for i in range(100)))
        self.ok("build", "--format", "guava", "-o", "seen.guava", "keys")
        _, (said,) = self.explained("--format", "guava", "seen.guava", "-e", "key 1")
        self.assertEqual((said["answer"], said["digest"], said["parts"][0]["rule"]), ("perhaps", None, "all"))
        self.assertEqual([(check["what"], check["found"]) for check in said["parts"][0]["checks"]], [("bit", 1)] * 5)
        self.assertIn("all 5 hold", self.ok("explain", "--format", "guava", "seen.guava", "-e", "key 1").decode())
        self.ok("build", "--format", "parquet", "-o", "seen.parquet", "keys")
        _, (said,) = self.explained("seen.parquet", "-e", "key 1")
        self.assertEqual([part["rule"] for part in said["parts"]], ["none"])
        self.assertIn("only its answers are shown", self.ok("explain", "seen.parquet", "-e", "key 1").decode())

    def test_refusals(self):
        self.write("text", b"this is no filter\n")
        self.refused("explain", "text", "-e", "x", says="text: no known filter format")
        self.refused("explain", "nonesuch", "-e", "x", says="nonesuch")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
