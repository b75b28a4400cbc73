"""Keys in records: CSV, JSON lines, fields; and answers for programs.

    records_test.py PERHAPS [unittest arguments]

Python's csv and json modules are the judges. The seed is fixed.
"""
import csv
import hashlib
import io
import json
import os
import random
import subprocess
import sys
import unittest

import cli_test
from cli_test import Case, EXACT, lines

SEED = 20260117


class Records(Case):
    def keys_of(self, *args, stdin=b"", code=0):
        """The keys that the tool finds in the input, in order."""
        if not os.path.exists(self.path("none")):
            self.ok("build", "-o", "none", *EXACT, "-e", "a key that is nowhere else")
        done = self.run_perhaps("query", "none", "--recipe", "given", "--json", *args, stdin=stdin)
        self.assertIn(done.returncode, [0, 1], done.stderr)
        return [json.loads(line)["key"] for line in done.stdout.splitlines()]


class Csv(Records):
    """Columns are found as Python's csv module finds them, in files (by several threads) and in pipes."""

    def sample(self, rng, rows, newline, delimiter=","):
        alphabet = ["a", "b", "\u00fc", '"', delimiter, " ", "'", "\n", ";", "x" * 70, ""]
        table = [["id", "na\"me", "with, comma", "mail"]]
        for i in range(rows):
            row = ["".join(rng.choices(alphabet, k=rng.randrange(6))) for _ in range(4)]
            row[0] = str(i)
            table.append(row)
        out = io.StringIO(newline="")
        csv.writer(out, delimiter=delimiter, lineterminator=newline,
                   quoting=rng.choice([csv.QUOTE_MINIMAL, csv.QUOTE_ALL])).writerows(table)
        return table, out.getvalue().encode()

    def test_against_python(self):
        rng = random.Random(SEED)
        for newline in ["\n", "\r\n"]:
            for delimiter in [",", ";", "\t"]:
                table, text = self.sample(rng, 800, newline, delimiter)
                self.write("t.csv", text)
                option = [] if delimiter == "," else ["--delimiter", delimiter]
                for column, name in enumerate(table[0]):
                    if "," in name:
                        name = str(column + 1)
                    want = [row[column] for row in table[1:]]
                    for args, stdin in [(["t.csv"], b""), ([], text), ([], b"\xef\xbb\xbf" + text), (["t.csv"], b"")]:
                        self.assertEqual(self.keys_of("--csv", *option, "--field", name, *args, stdin=stdin), want)
                want = [row[column] for row in table]
                self.assertEqual(self.keys_of("--csv", "--no-header", *option, "--field", "4", "t.csv"), want)
                want = [row[3] + "\t" + row[0] for row in table[1:]]
                self.assertEqual(self.keys_of("--csv", *option, "--field", "mail,1", "t.csv"), want)

    def test_many_blocks_and_threads(self):
        """Records with line ends in quotes lie across the borders of blocks."""
        rng = random.Random(SEED)
        table, text = self.sample(rng, 60_000, "\n")
        self.assertGreater(len(text), 3 << 20)
        self.write("t.csv", text)
        keys = {row[0] for row in table[1:]}
        sizes = []
        for args, stdin in [(["--threads", "1", "t.csv"], b""), (["--threads", "3", "t.csv"], b""), (["-"], text)]:
            d = self.json("build", "-o", "f", "--csv", "--field", "id", *args, stdin=stdin)
            self.assertEqual(d["keys"], 60_000)
            sizes.append(d["fill"])
        self.assertEqual(sizes, sizes[:1] * 3)
        self.assertEqual(self.json("verify", "f", "--keys", self.write("ids", lines(k.encode() for k in keys)),
                                   "--keys-as", "lines")["false_negatives"], 0)

    def test_short_files(self):
        for text, want in [(b"a,b\n1,2", ["2"]), (b"a,b\n1,2\n", ["2"]), (b'a,b\n1,"2"', ["2"]), (b"a,b", []),
                           (b"a,b\n", []), (b"a,b\n\n1,2\n\r\n3,4\n\n", ["2", "4"]), (b'a,b\n1,""\n', [""]),
                           (b'a,b\n1,"x""y"\n', ['x"y']), (b'"a","b"\r\n1,2\r\n', ["2"]), (b"a,b\n1,2\r\n", ["2"])]:
            self.assertEqual(self.keys_of("--csv", "--field", "b", stdin=text), want, text)
            self.assertEqual(self.keys_of("--csv", "--field", "b", self.write("t", text)), want, text)

    def test_faults(self):
        for text, says in [
            (b'a,b\n1,5" disk\n2,x\n', ":2: in this record or soon after it, a quote stands where CSV has none"),
            (b'a,b\n1,"x" y\n', "a quote stands where CSV has none"),
            (b'a,b\n1,2\n3,"x\n', ":3: a quote in this record is never closed"),
            (b"a,b\n1,2\n3\n", ":3: there is 1 field, --field b (number 2) needs more"),
            (b"a,c\n1,2\n", "no column 'b' (--field); its columns are a, c"),
            (b"a,b,b\n1,2,3\n", "two columns have the name 'b'"),
        ]:
            self.refused("build", "-o", "x", "--csv", "--field", "b", self.write("in", text), says="in" + says if
                         says[0] == ":" else says)
            self.refused("build", "-o", "x", "--csv", "--field", "b", "-", stdin=text, says=says)
        # A stray quote at every place of a block, and over its border.
        for before in range(55, 70):
            text = b"a,b\n" + b"x" * before + b',5"\n1,2\n'
            self.refused("build", "-o", "x", "--csv", "--field", "b", "-", stdin=text, says="a quote stands")
            text = b"a,b\n" + b"x" * before + b',"5"x\n1,2\n'
            self.refused("build", "-o", "x", "--csv", "--field", "b", "-", stdin=text, says="a quote stands")
            text = b"a,b\n" + b"x" * before + b',"5"\n1,2\n'
            self.assertEqual(self.keys_of("--csv", "--field", "b", stdin=text), ["5", "2"])
        for args, says in [(["--csv", "in"], "--csv: --field NAME"), (["--field", "b", "in"], "names need --csv"),
                           (["--csv", "--no-header", "--field", "b", "in"], "--no-header leaves"),
                           (["--no-header", "--field", "1", "in"], "--csv")]:
            self.refused("build", "-o", "x", *args, says=says)

    def test_output_stays_csv(self):
        self.write("t.csv", b'id,mail\n1,ann@x\n2,"bob, jr@x"\n3,cid@x\n')
        self.ok("build", "-o", "f", *EXACT, "--csv", "--field", "mail", stdin=b"mail\nann@x\ncid@x\n")
        self.assertEqual(self.ok("query", "f", "--field", "mail", "--csv", "t.csv", "--rest", "rest"),
                         b"id,mail\n1,ann@x\n3,cid@x\n")
        self.assertEqual(self.read("rest"), b'id,mail\n2,"bob, jr@x"\n')
        self.write("u.csv", b"mail,x\nann@x,1\nann@x,2\n")
        done = self.run_perhaps("dedup", "--csv", "--field", "mail", "u.csv")
        self.assertEqual(done.stdout, b"mail,x\nann@x,1\n")


class JsonLines(Records):
    """Fields are found as Python's json module finds them, and what it refuses is refused."""

    def value(self, rng, depth):
        kind = rng.randrange(8 if depth < 3 else 6)
        if kind < 2:
            return "".join(rng.choices(["a", '"', "\\", "/", "\n", "\u00fc", "\U0001f600", "\x01", "\ufeff"],
                                       k=rng.randrange(5)))
        if kind == 2:
            return rng.randrange(-1000, 1000)
        if kind == 3:
            return rng.random()
        if kind == 4:
            return rng.choice([True, False])
        if kind == 5:
            return None
        if kind == 6:
            return [self.value(rng, depth + 1) for _ in range(rng.randrange(4))]
        return {rng.choice("abc\u00e4\""): self.value(rng, depth + 1) for _ in range(rng.randrange(4))}

    def at(self, value, path):
        for step in path.split("."):
            if isinstance(value, dict) and step in value:
                value = value[step]
            elif isinstance(value, list) and step.isdigit() and int(step) < len(value):
                value = value[int(step)]
            else:
                return None
        return value

    def test_against_python(self):
        rng = random.Random(SEED)
        rows = [{"a": self.value(rng, 0), "b": self.value(rng, 0), '"': self.value(rng, 0)} for _ in range(2000)]
        for path in ["a", "a.b", "a.0", "b.a.1", '"', "a.\u00e4"]:
            kept = [row for row in rows if not isinstance(self.at(row, path), (dict, list))]
            text = b"".join(json.dumps(row, ensure_ascii=rng.random() < 0.5, separators=rng.choice(
                [(",", ":"), (" , ", " : ")])).encode() + b"\n" for row in kept)
            want = []
            for row in kept:
                value = self.at(row, path)
                if value is not None:
                    want.append(value if isinstance(value, str) else json.dumps(value))
            for args, stdin in [([self.write("rows", text)], b""), ([], text)]:
                got = self.keys_of("--json-lines", "--missing", "skip", "--field", path, *args, stdin=stdin)
                self.assertEqual(got, want, path)

    def test_faults(self):
        good = b'{"a": 1}'
        cases = [b"{", b'{"a"}', b'{"a":}', b'{"a":1,}', b"[1,]", b'{"a":01}', b'{"a":1.}', b'{"a":tru}', b'{"a":"x}',
                 b'{"a":"\\x"}', b'{"a":"\\ud800"}', b'{"a":"\\udc00"}', b'{"a":"\t"}', b'{"a":1} 2', b"a", b'{a:1}',
                 b'{"a":1e}', b'{"a":+1}', b'{"b":[1 2],"a":1}', b"[" * 2000, b'{"a":"\\u12g4"}']
        for case in cases:
            with self.assertRaises(ValueError, msg=case):
                if b"ud800" in case or b"udc00" in case:
                    raise ValueError("half of a pair, which Python lets pass")
                if case == b"[" * 2000:
                    raise ValueError
                json.loads(case)
            self.refused("build", "-o", "x", "--json-lines", "--field", "a", "-", stdin=good + b"\n" + case + b"\n",
                         says="standard input:2: not a line of JSON")
        self.refused("build", "-o", "x", "--json-lines", "--field", "a", "-", stdin=b'{"a":{}}\n',
                     says="the field is an object")
        self.refused("build", "-o", "x", "--json-lines", "--field", "b", "-", stdin=good,
                     says=":1: there is no field b")
        self.refused("build", "-o", "x", "--json-lines", "-", stdin=good, says="--json-lines: --field PATH")

    def test_the_last_of_two_names(self):
        self.assertEqual(self.keys_of("--json-lines", "--field", "a", stdin=b'{"a":1,"b":2,"a":"x"}\n'), ["x"])
        self.assertEqual(self.keys_of("--json-lines", "--field", "a", stdin=b'{"\\u0061":"y"}\n'), ["y"])


class Fields(Records):
    """Several fields, blanks, and records that lack one."""

    def test_several(self):
        self.assertEqual(self.keys_of("--field", "3,1", "--delimiter", ":", stdin=b"a:b:c\nd:e:f\n"), ["c\ta", "f\td"])
        text = b"  a \t b\nc    d  \n"
        self.assertEqual(self.keys_of("--field", "2", "--delimiter", "blanks", stdin=text), ["b", "d"])
        self.assertEqual(self.keys_of("--field", "2,3", "--delimiter", "blanks", stdin=b" 1 2  3 4\n"), ["2\t3"])
        self.refused("build", "-o", "x", "--field", "1,,2", says="--field 1,,2")
        self.refused("build", "-o", "x", "--field", "0", says="--field 0: fields are counted from 1")

    def test_missing(self):
        text = b"a,1\nb\nc,3\n,\nd\n"
        args = ["--field", "2", "--delimiter", ","]
        self.refused("build", "-o", "x", *args, "-", stdin=text, says=":2: there is 1 field, --field 2 needs more")
        for how in [["-"], [self.write("t", text)]]:
            stdin = text if how == ["-"] else b""
            done = self.run_perhaps("build", "-o", "f", "--json", *args, "--missing", "skip", *how, stdin=stdin)
            self.assertEqual(json.loads(done.stdout)["keys"], 3)
            self.assertIn(b"2 records have no field 2 and were skipped", done.stderr)
            self.assertEqual(done.stderr.count(b"skipped"), 1)
            self.assertEqual(self.json("build", "-o", "g", *args, "--missing", "empty", *how, stdin=stdin)["keys"], 5)
        self.assertEqual(self.info("f")["capacity"], 3)
        self.ok("query", "-q", "g", "-e", "")
        # What lacks the field is neither answered nor printed, and does not move the numbers of the others.
        self.ok("build", "-o", "h", *EXACT, "-e", "1", "-e", "3", "-e", "")
        self.assertEqual(self.ok("query", "-n", "h", *args, "--recipe", "given", "--missing", "skip", "t"),
                         b"1:a,1\n3:c,3\n4:,\n")
        self.assertEqual(self.ok("query", "h", *args, "--recipe", "given", "--missing", "skip", "t"), b"a,1\nc,3\n,\n")


class Hashes(Records):
    """--hash makes the digests that other programs make."""

    def test_against_python(self):
        rng = random.Random(SEED)
        texts = ["", "a", "hunter2", "p\u00e4ss w\u00f6rd \U0001f600"] + [
            "".join(rng.choices("abc\u00e9", k=n)) for n in range(1, 150)]
        data = lines(t.encode() for t in texts)
        for name in ["md5", "sha1", "sha256"]:
            want = [hashlib.new(name, t.encode()).hexdigest() for t in texts]
            self.ok("build", "-o", "f", *EXACT, "--hash", name, stdin=data)
            self.assertEqual(self.ok("query", "-c", "f", "--recipe", "given", stdin=lines(w.encode() for w in want)),
                             b"%d\n" % len(want))
        # Of MD4 the values of RFC 1320 and of NT password hashes, because hashlib may lack it.
        known = {"": "31d6cfe0d16ae931b73c59d7e0c089c0", "password": "8846f7eaee8fb117ad06bdd830b7586c",
                 "hunter2": "6608e4bc7b2b7a5f77ce3573570775af"}
        self.ok("build", "-o", "f", *EXACT, "--hash", "ntlm", stdin=lines(k.encode() for k in known))
        for digest in known.values():
            self.ok("query", "-q", "f", "--recipe", "given", "-e", digest)
        self.refused("build", "-o", "x", "--hash", "ntlm", "-", stdin=b"\xff\n", says="not UTF-8")
        self.refused("build", "-o", "x", "--hash", "sha1", "--keys-as", "u64", "-e", "1", says="--hash")


class Answers(Case):
    """An answer for each key, in order, at once; and grep's habits."""

    def setUp(self):
        super().setUp()
        self.ok("build", "-o", "f", *EXACT, "-e", "a", "-e", "b")
        self.write("one", b"a\nx\nb\n")
        self.write("two", b"y\nz\n")

    def test_answers(self):
        self.assertEqual(self.ok("query", "--answers", "f", "one"), b"perhaps\ta\nno\tx\nperhaps\tb\n")
        self.assertEqual(self.ok("query", "--answers", "f", "two", code=1), b"no\ty\nno\tz\n")
        rows = [json.loads(line) for line in self.ok("query", "--json", "f", "one", "two", "-e", "b").splitlines()]
        self.assertEqual(rows[0], {"key": "b", "answer": "perhaps", "file": "-e", "line": 1})
        self.assertEqual(rows[2], {"key": "x", "answer": "no", "file": "one", "line": 2})
        self.assertEqual(rows[4], {"key": "y", "answer": "no", "file": "two", "line": 1})
        self.ok("build", "-o", "n", *EXACT, "--keys-as", "u64", "-e", "7")
        self.assertEqual(self.ok("query", "--answers", "n", "-e", "7", "-e", "8"), b"perhaps\t7\nno\t8\n")

    def test_coprocess(self):
        """One key at a time: the answer comes before the next question."""
        with subprocess.Popen([cli_test.PERHAPS, "query", "--answers", self.path("f")], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE) as process:
            for i in range(2000):
                key = b"a" if i % 3 == 0 else b"%d" % i
                process.stdin.write(key + b"\n")
                process.stdin.flush()
                want = b"perhaps\ta\n" if i % 3 == 0 else b"no\t%d\n" % i
                self.assertEqual(process.stdout.readline(), want)
            process.stdin.close()
            self.assertEqual(process.wait(), 0)

    def test_rest(self):
        self.assertEqual(self.ok("query", "f", "one", "two", "--rest", "r"), b"a\nb\n")
        self.assertEqual(self.read("r"), b"x\ny\nz\n")
        self.assertEqual(self.ok("query", "-v", "f", "one", "--rest", "r"), b"x\n")
        self.assertEqual(self.read("r"), b"a\nb\n")
        self.refused("query", "f", "one", "--rest", "one", says="one: is an input and would be overwritten (--rest)")
        self.assertEqual(self.read("one"), b"a\nx\nb\n")

    def test_as_grep(self):
        self.assertEqual(self.ok("query", "-l", "f", "one", "two"), b"one\n")
        self.assertEqual(self.ok("query", "-c", "f", "one", "two"), b"one:2\ntwo:0\n")
        self.assertEqual(self.ok("query", "-c", "f", "one"), b"2\n")
        self.assertEqual(self.ok("query", "-f", "one", "f", "two"), b"a\nb\n")
        self.assertEqual(self.ok("query", "f", "-f", "one", "-f", "two", "-v"), b"x\ny\nz\n")
        counts = json.loads(self.ok("query", "-c", "--json", "f", "one", "two"))
        self.assertEqual([(c["file"], c["keys"], c["selected"]) for c in counts], [("one", 3, 2), ("two", 2, 0)])

    def test_goes_on_after_a_missing_file(self):
        done = self.run_perhaps("query", "f", "gone", "one", "apple")
        self.assertEqual((done.returncode, done.stdout), (2, b"a\nb\n"))
        self.assertIn(b"gone: No such file or directory", done.stderr)
        self.assertIn(b"a key is given as -e apple", done.stderr)
        self.refused("build", "-o", "x", "one", "gone", says="gone: No such file")  # a filter of half the keys lies


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[2:])
