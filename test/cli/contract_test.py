"""Numbers that can be trusted, and messages in one voice.

    contract_test.py PERHAPS [unittest arguments]
"""
import json
import os
import re
import subprocess
import sys
import unittest

import cli_test
import schema
from cli_test import Case, lines


class Numbers(Case):
    """Estimates hold within the bound that is printed; small rates can be read aloud."""

    def setUp(self):
        super().setUp()
        self.write("a", lines(b"a%d" % i for i in range(100_000)))
        self.write("b", lines(b"b%d" % i for i in range(100_000)))
        self.write("ab", lines([b"a%d" % i for i in range(30_000)] + [b"b%d" % i for i in range(70_000)]))

    def test_intersections(self):
        for family in ["line", "block", "classic"]:
            for name in ["a", "b", "ab"]:
                self.ok("build", "-o", name + ".f", "--filter", family, "--keys-expected", "100k", name)
            for pair, truth in [(["a.f", "b.f"], 0), (["a.f", "ab.f"], 30_000), (["b.f", "ab.f"], 70_000),
                                (["a.f", "ab.f", "b.f"], 0)]:
                with self.subTest((family, pair)):
                    d = self.json("merge", "--intersect", "-o", "m", *pair)
                    self.assertLess(abs(d["keys_distinct"] - truth), 2500)
                    self.assertGreaterEqual(d["keys_distinct_most"], truth)
                    self.assertLess(d["keys_distinct_most"], truth + 6000)
                    text = self.text("merge", "--intersect", "-o", "m", *pair)
                    self.assertIn("distinct keys, at most {:,}".format(round(d["keys_distinct_most"])), text)

    def test_the_interval_that_decides_is_printed(self):
        self.write("keys", lines(b"k%d" % i for i in range(2000)))
        for args in [[], ["--format", "guava"], ["--format", "leveldb"]]:
            self.ok("build", *args, "-o", "f", "keys")
            form = args if args[1:] == ["leveldb"] else []
            d = self.json("verify", "f", *form, "--keys", "keys")
            self.assertEqual(d["model_agrees"], d["fpr_low"] <= d["fpr_model"] <= d["fpr_high"])
            text = self.text("verify", "f", *form, "--keys", "keys")
            self.assertIn("at 5 sigma)", text)
            self.assertEqual("about " in text.split("model")[1], bool(args))
            info = self.text("info", "f", *form)
            self.assertEqual(bool(re.search(r"fpr +about .* at 95 % confidence\)", info)), bool(args), info)

    def test_small_rates(self):
        for fpr, said in [("1e-6", r"1 in (1(\.\d+)? million|9\d\d,000)"),
                          ("1e-9", r"1 in (\d(\.\d+)? b|9\d\d m)illion"),
                          ("0.00005", r"1 in \d\d,\d00"), ("0.01", r"[\d.]+ %")]:
            text = self.text("build", "-o", "f", "--filter", "classic", "--fpr", fpr, "a")
            self.assertRegex(text, "fpr +(about )?" + said + " predicted")
        self.ok("build", "-o", "s", "--filter", "scalable", "--fpr", "1e-6", "a")
        self.assertRegex(self.text("info", "s"), "fpr limit +1 in 1 million\n")
        for command in [["size", "--keys", "1M", "--fpr", "1e-9"], ["info", "f"], ["info", "s"],
                        ["verify", "f", "--keys", "a"]]:
            self.assertNotRegex(self.text(*command), r"\de[-+]\d")


class Messages(Case):
    """A mistake is answered with the thing that was meant."""

    def test_misspelt(self):
        self.write("keys", b"a\n")
        for args, says in [
            (["build", "--ouput", "f", "keys"], ["--ouput: there is no such option; did you mean --output?"]),
            (["build", "-o", "f", "--kyes-as", "hex", "keys"], ["did you mean --keys-as?"]),
            (["build", "-o", "f", "--frobnicate", "keys"], ["--frobnicate: there is no such option (see"]),
            (["bild", "-o", "f"], ["'bild' is not a command; did you mean build?"]),
            (["qurey", "f"], ["did you mean query?"]),
            (["zzz"], ["'zzz' is not a command (see"]),
            (["build", "-o", "f", "--fpr", "0.1", "--fpr", "0.2", "keys"], ["--fpr: given 2 times"]),
            (["build", "-o"], ["--output: needs a value"]),
            (["build", "-o", "f", "--lower=maybe", "keys"], ["--lower: takes no value"]),
            (["build", "-o", "f", "--format", "guava", "--shards", "2", "--only", "x", "keys"],
             ["--only: its value is not a number"]),
            (["size", "--keys", "1e30"], ["--keys 1e30: too many; the limit is 2^64 - 1"]),
            (["size", "--keys", "1x"], ["--keys 1x: not a number"]),
        ]:
            message = self.refused(*args, says=says)
            for phrase in ["required but received", "At Most", "following argument", "Could not convert"]:
                self.assertNotIn(phrase, message)

    def test_the_file_that_became_shorter_is_named(self):
        self.ok("build", "-o", "f", "-e", "x")
        self.write("long", b"0123456789abcdef\n" * 4_000_000)
        with subprocess.Popen([cli_test.PERHAPS, "query", self.path("f"), self.path("long"), "-v"],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            process.stdout.readline()
            os.truncate(self.path("long"), 4096)
            process.stdout.read()
            self.assertEqual(process.wait(), 2)
            self.assertIn(self.path("long").encode() + b" became shorter", process.stderr.read())


class Schema(Case):
    """What --json prints has the fields, types and form that the man page lists, for every command that has --json.
    Would notice: a field that is renamed, missing or undocumented, a number that became text, a list that is an object
    if there is one file, a command that nobody described."""

    # (when, command line): each shape of each command.
    CALLS = [
        ("", "build -o f keys"), ("", "build --filter fuse -o fuse keys"), ("", "build --allow-empty -o none empty"),
        ("--format", "build --format guava -o g keys"),
        ("--format", "build --format redisbloom-bf --shards 2 -o shards keys"),
        ("", "query f -e 5 keys"), ("", "query -v f absent"), ("-c", "query -c f keys"), ("-c", "query -c f keys keys"),
        ("", "build --filter range -o r keys"), ("--range", "query r --range 1..2"), ("", "info r"),
        ("", "merge -o m r r"), ("", "verify r --keys keys"), ("", "size --keys 1e6 --range-size 100"),
        ("", "add f -e x"), ("", "build --filter cuckoo -o c keys"), ("", "remove c -e 5"),
        ("", "explain f -e 5"), ("", "info f"), ("", "info c g shards none"), ("", "info fuse g"),
        ("", "convert --to fuse8 --set packed=true -o packed fuse8"),
        ("", "formats"), ("", "formats guava"),
        ("", "merge -o m f f"), ("", "merge --intersect -o m f f"), ("files of shards", "merge -o s shards"),
        ("", "fold -o half even"), ("", "split --shards 2 -o part.%d keys"),
        ("", "dedup keys"), ("", "dedup --window 10 keys"), ("", "dedup --exact keys"), ("", "dedup --seen seen keys"),
        ("--ngrams", "dedup --json-lines --field text --ngrams 3 --keys-expected 100 documents"),
        ("", "verify f --keys keys --certificate proof"), ("--check", "verify --check proof"),
        ("build", "exact build -o e --members some --universe keys"),
        ("build", "exact build -o e2 --members less --universe keys"),
        ("build", "exact build --allow-empty -o e0 --members empty --universe keys"),
        ("diff or apply", "exact diff e e2 --universe keys -o d"), ("diff or apply", "exact apply e d -o e3"),
        ("--universe", "verify e3 --members less --universe keys"), ("", "info e e3"), ("", "query e -e 5 keys"),
        ("", "size --keys 1e6"), ("", "size --keys 1e6 --max-bytes 1M"),
        ("", "advise keys --needs delete --wrong-price 1 --memory-price 1 --lookups 1"),
        ("--build, --add or --remove", "route --build sets old=keys new=absent"), ("", "route sets keys"),
        ("--build, --add or --remove", "route --remove sets old"),
        ("build", "map build -o codes table --key 1 --value 2"), ("get", "map get codes -e 7 -e 8"),
        ("", "allocate --keys 1e9 --budget 1G"), ("", "bench --keys 10k"), ("hash", "bench hash --keys 10k"),
    ]
    ELSEWHERE = {"push", "pull"}  # with a server: test/redis/copy_test.py

    def test_every_command(self):
        self.write("keys", lines(b"%d" % i for i in range(1000)))
        self.write("some", lines(b"%d" % (3 * i) for i in range(300)))
        self.write("less", lines(b"%d" % (3 * i) for i in range(299)))
        self.write("absent", lines(b"a%d" % i for i in range(100)))
        self.write("empty", b"")
        self.write("table", lines(b"%d\t%d" % (i, i % 5) for i in range(100)))
        self.write("documents", b'{"text": "one two three four"}\n' * 2)
        self.ok("build", "--format", "fuse8", "-o", "fuse8", "keys")
        self.ok("build", "--max-bytes", "64Ki", "-o", "even", "keys")
        seen = set()
        for when, line in self.CALLS:
            command, *args = line.split()
            with self.subTest(line):
                shapes = schema.shapes_of([cli_test.PERHAPS, command])
                done = self.run_perhaps(command, *args, "--json")
                self.assertIn(done.returncode, (0, 1), done.stderr)
                # The lines that are kept are on standard output.
                output = done.stderr.splitlines()[-1] if command == "dedup" else done.stdout
                schema.check(self, output, shapes[when], line)
                seen.add((command, when))
        page = self.text("man")
        for command in re.findall(r"^  (\w+) ", self.text("--help").split("Programs beside")[0], re.MULTILINE):
            if command == "perhaps":
                continue
            shapes = schema.shapes_of([cli_test.PERHAPS, command])
            self.assertIn("--json", self.text(command, "--help"), command)
            self.assertNotEqual(shapes, {}, command)
            if command not in self.ELSEWHERE:
                self.assertEqual({w for c, w in seen if c == command}, set(shapes), command)
            for _, fields in shapes.values():
                for name in fields:
                    self.assertIn(f"\\fB{name}\\fR (\\fI", page, command)

    def test_exit_status_one_is_documented(self):
        status = self.text("man").split(".SH EXIT STATUS")[1].split(".SH")[0]
        one = status.split(".B 1\n")[1].split(".B 2\n")[0]
        for command in ["query", "explain", "route", "map", "exact", "advise", "verify", "sst"]:
            self.assertRegex(one, r"\.BR %s :\n" % command)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[2:])
