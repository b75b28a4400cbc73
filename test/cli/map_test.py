"""The promises of `perhaps map`, kept by the real binary.

    map_test.py PERHAPS [unittest arguments]

Every class begins with its promise. Keys are fixed, so what absent keys are answered is always the same.
"""
import json
import sys
import unittest

from cli_test import Case, lines


class Map(Case):
    """Every key of the input gets its value, from numbers and from words, in files of either kind; an absent key is
    found at the rate of --check; a contradiction is named by key and line, and no file appears. Would notice: a value
    in the wrong field, a word with another's number, a map taken for a filter, a file written after an error."""

    KEYS = 3000

    def setUp(self):
        super().setUp()
        self.write("codes.tsv", lines(b"key %d\t%d\tx" % (i, i * i % 1000) for i in range(self.KEYS)))
        self.write("words.tsv", lines(b"key %d\t%s" % (i, [b"red", b"green", b"blue"][i % 7 % 3])
                                      for i in range(self.KEYS)))

    def get(self, *args, stdin=b"", code=0):
        rows = [line.split("\t") for line in self.text("map", "get", *args, stdin=stdin, code=code).splitlines()]
        return dict(rows)

    def test_numbers(self):
        for more in [[], ["--check", "8"], ["--coded"], ["--coded", "--check", "4"]]:
            made = self.json("map", "build", "-o", "f", "codes.tsv", "--key", "1", "--value", "2", *more)
            self.assertEqual((made["keys"], made["value_bits"]), (self.KEYS, 10))
            wanted = {"key %d" % i: str(i * i % 1000) for i in range(self.KEYS)}
            self.assertEqual(self.get("f", "codes.tsv"), wanted)  # by the recipe in the file
            self.assertEqual(self.get("f", "-e", "key 7", "-e", "key 8"), {"key 7": "49", "key 8": "64"})
            self.assertEqual(self.get("f", stdin=b"key 9\n"), {"key 9": "81"})

    def test_space(self):
        self.assertLess(self.json("map", "build", "-o", "f", "codes.tsv", "--key", "1", "--value", "2")["bits_per_key"],
                        10.6)

    def test_words(self):
        for more in [[], ["--coded"]]:
            self.assertEqual(self.json("map", "build", "--text", "-o", "f", "words.tsv", "--key", "1", "--value", "2",
                                       "--check", "16", *more)["texts"], 3)
            self.assertEqual(self.get("f", "-e", "key 0", "-e", "key 1", "-e", "key 2"),
                             {"key 0": "red", "key 1": "green", "key 2": "blue"})
            rows = [json.loads(line) for line in
                    self.text("map", "get", "--json", "f", "-e", "key 3", "-e", "nothing").splitlines()]
            self.assertEqual(rows, [{"key": "key 3", "found": True, "value": 0, "text": "red"},
                                    {"key": "nothing", "found": False, "value": None}])

    def test_absent_keys(self):
        self.text("map", "build", "-o", "f", "codes.tsv", "--key", "1", "--value", "2", "--check", "6")
        absent = lines(b"absent %d" % i for i in range(10_000))
        found = len(self.get("f", stdin=absent))
        self.assertTrue(96 <= found <= 217, found)  # n = 10,000, p = 1/64, z = 5
        self.assertEqual(self.get("f", "-e", "absent 1", code=1), {})

    def test_csv_by_name(self):
        self.write("t.csv", b"id,code,name\n1,5,\"a, b\"\n2,6,c\n")
        self.text("map", "build", "--csv", "-o", "f", "t.csv", "--key", "name", "--value", "code")
        self.assertEqual(self.get("f", "-e", "a, b", "-e", "c"), {"a, b": "5", "c": "6"})

    def test_two_values(self):
        self.write("twice.tsv", b"a\t1\nb\t2\na\t1\nb\t3\n")
        for more in [[], ["--coded"]]:
            self.refused("map", "build", "-o", "f", "twice.tsv", "--key", "1", "--value", "2", *more,
                         says="the key 'b' has two values: twice.tsv:2 has '2', twice.tsv:4 has '3'")

    def test_refusals(self):
        self.write("bad.tsv", b"a\t1\nb\tblue\n")
        self.refused("map", "build", "-o", "f", "bad.tsv", "--key", "1", "--value", "2",
                     says="bad.tsv:2: the value 'blue' is not a number")
        self.refused("map", "build", "-o", "f", "bad.tsv", says="--key and --value")
        self.refused("map", "build", "-o", "f", "bad.tsv", "--key", "1", "--value", "2", "--check", "33",
                     says="--check 33")
        self.refused("map", "build", "-o", "./bad.tsv", "bad.tsv", "--key", "1", "--value", "2",
                     says="would be overwritten")
        self.refused("map", "build", "-o", "f", "-", "--key", "1", "--value", "2", says="no keys came")
        self.text("map", "build", "--allow-empty", "-o", "f", "-", "--key", "1", "--value", "2")
        self.text("build", "-o", "filter", "codes.tsv")
        self.refused("map", "get", "filter", "-e", "a", says="not a map")
        self.refused("map", "get", "filter", "-e", "a", "--check", "3", says="option of map build")

    def test_other_commands(self):
        self.text("map", "build", "-o", "f", "codes.tsv", "--key", "1", "--value", "2", "--check", "5", "--note", "May")
        info = self.info("f")
        self.assertEqual((info["family"], info["keys"], info["more"]["value bits"], info["more"]["check bits"]),
                         ("map", self.KEYS, "10", "5"))
        self.assertIn("built once", self.text("info", "f"))
        self.refused("query", "f", "-e", "key 1", says="perhaps map get f")
        proved = self.json("verify", "f", "--keys", "codes.tsv")
        self.assertEqual((proved["keys"], proved["false_negatives"]), (self.KEYS, 0))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
