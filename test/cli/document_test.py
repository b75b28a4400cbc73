"""Promise: help, man page and completions say what the tool does, their examples run, and `size` is what `build` makes.

    document_test.py PERHAPS [unittest arguments]

Would notice: a command or an option that one of them lacks, a page that is malformed, a size that is not the one built.
Not under the sanitizers: all of it is text, and its commands are run there by cli_test.
"""
import gzip
import os
import re
import shutil
import subprocess
import sys
import unittest

from cli_test import FAMILIES, PERHAPS, Case, lines


class Sizes(Case):
    """`build` makes what `size` predicts."""

    def test_predictions(self):
        self.write("keys", lines(b"%d" % i for i in range(10_000)))
        for args in [["--fpr", "0.003"], ["--bits-per-key", "9"], ["--max-bytes", "16k"]]:
            for row in self.json("size", "--keys", "10k", *args):
                d = self.json("build", "-o", "f", "--filter", row["family"], *args, "keys")
                self.assertAlmostEqual(d["bytes"], row["bytes"], delta=row["bytes"] // 100)
                if row["family"] in ("line", "block", "classic"):
                    self.assertEqual((d["bits"], d["bytes"], d["probes"]), (row["bits"], row["bytes"], row["probes"]))
                    self.assertGreater(row["above_limit"], 0.3)
                if args[0] == "--max-bytes":
                    self.assertLessEqual(d["bytes"], 16_000)
                if row["family"] != "scalable":
                    self.assertAlmostEqual(d["fpr_at_capacity"], row["fpr"], delta=1e-12)
        self.assertEqual(sorted(r["family"] for r in self.json("size", "--keys", "1M")), sorted(FAMILIES))

    def test_table(self):
        text = self.ok("size", "--keys", "1e9", "--fpr", "0.001").decode()
        rows = text.splitlines()
        self.assertEqual([row.split()[0] for row in rows[:4]], ["family", "line", "block", "classic"])
        self.assertLessEqual(max(map(len, rows)), 80)

    def test_ways_to_write_a_number(self):
        for text, value in [("1000000", 10**6), ("1e6", 10**6), ("1M", 10**6), ("1.5k", 1500), ("2Ki", 2048),
                            ("1Mi", 2**20), ("1G", 10**9), ("2KiB", 2048), ("3kB", 3000),
                            ("9007199254740993", 9007199254740993)]:
            self.assertEqual(self.json("size", "--keys", text)[0]["keys"], value)

    def test_far_out(self):
        for keys in ["1", "1e12", "9e18"]:
            for fpr in ["1e-9", "0.01"]:
                for row in self.json("size", "--keys", keys, "--fpr", fpr):
                    self.assertGreater(row["bytes"], 0)
                    self.assertGreaterEqual(row["above_limit"], 0, row)  # no filter can use less
                    self.assertLessEqual(row["fpr"], 2 * float(fpr), row)  # or it cannot keep the rate, and is left out


class Documents(Case):
    """Help, man page and completions name every command and option, and are well formed."""

    COMMANDS = [
        "build", "query", "add", "remove", "info", "explain", "exact", "convert", "formats", "merge", "fold", "split",
        "dedup", "verify", "size", "advise", "map", "route", "allocate", "push", "pull", "bench"]

    def options(self):
        for command in self.COMMANDS:
            text = self.ok(command, "--help").decode()
            yield command, text, re.findall(r"^ {2}(?:(-\w), | {4})(--[\w-]+)", text, re.M)

    def test_help(self):
        top = self.ok("--help").decode()
        listed = re.findall(r"(?m)^  (\w+)  ", top.split("\nCommands:\n")[1].split("\n\n")[0])
        self.assertEqual(sorted(listed), sorted(self.COMMANDS))  # a new one belongs into the list above
        for command, text, options in self.options():
            self.assertRegex(top, r"(?m)^  %s  " % command)
            self.assertEqual(text, self.ok("help", command).decode())
            self.assertIn("Usage: perhaps " + command, text)
            self.assertGreater(len(options), 1)
            self.assertIn(("-h", "--help"), options)
        for text in [top] + [text for _, text, _ in self.options()]:
            self.assertLessEqual(max(map(len, text.splitlines())), 80)
        self.assertEqual(self.run_perhaps().returncode, 2)
        self.assertRegex(self.ok("--version").decode(), r"^perhaps \d+\.\d+\.\d+\n$")

    def test_man_page(self):
        page = self.ok("man")
        plain = page.decode().replace("\\-", "-")
        for command, _, options in self.options():
            self.assertIn(".SS " + command, plain)
            for _, name in options:
                self.assertIn("\\fB" + name + "\\fR", plain)
        done = subprocess.run(["groff", "-man", "-ww", "-Tascii"], input=page,  # package groff-base
                              capture_output=True)
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        self.assertIn(b"perhaps build", re.sub(rb"\x1b\[\d*m|.\x08", b"", done.stdout))

    def test_completions(self):
        for shell in ["bash", "zsh", "fish"]:
            script = self.ok("completion", shell)
            for command, _, options in self.options():
                self.assertIn(command, script.decode())
                for _, name in options:
                    self.assertIn(name.lstrip("-"), script.decode())
            self.write(shell, script)
            if shutil.which(shell):  # bash always is
                done = subprocess.run([shell, "-n", self.path(shell)], capture_output=True)
                self.assertEqual((done.returncode, done.stderr), (0, b""))

    def complete(self, *words):
        self.write("bash", self.ok("completion", "bash"))
        script = 'source ./bash; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _perhaps; printf "%s\\n" "${COMPREPLY[@]}"'
        done = subprocess.run(["bash", "-c", script, "bash", *words], cwd=self.folder, capture_output=True, check=True)
        return done.stdout.decode().split()

    def test_bash_completes(self):
        self.assertEqual(self.complete("perhaps", "b"), ["build", "bench"])
        self.assertEqual(self.complete("perhaps", "build", "--filter", ""), [*FAMILIES, "smallest", "range"])
        self.assertEqual(self.complete("perhaps", "build", "--keys-a"), ["--keys-as"])
        self.assertEqual(self.complete("perhaps", "query", "-o", "fi"), [])

    def test_other_commands_are_programs(self):
        os.mkdir(self.path("bin"))
        self.write("bin/perhaps-greet", b'#!/bin/sh\necho "greet: $*"\nexit 7\n')
        os.chmod(self.path("bin/perhaps-greet"), 0o755)
        env = {"PATH": self.path("bin") + ":" + os.environ["PATH"]}
        done = self.run_perhaps("greet", "-x", "you", env=env)
        self.assertEqual((done.returncode, done.stdout), (7, b"greet: -x you\n"))
        # beside the binary, which comes before PATH
        shutil.copy(PERHAPS, self.path("perhaps"))
        self.write("perhaps-greet", b"#!/bin/sh\necho beside\n")
        os.chmod(self.path("perhaps-greet"), 0o755)
        done = subprocess.run([self.path("perhaps"), "greet"], env={**os.environ, **env}, capture_output=True)
        self.assertEqual(done.stdout, b"beside\n")


class Examples(Case):
    """The examples of every command run as they stand."""

    NEED_A_SERVER = ["push", "pull"]  # test/redis/copy_test.py

    def test_examples_run(self):
        people = lines(b"%d,Name%d@Example.org,x" % (i, i) for i in range(100))
        keys = lines([b"hello"] + [b"key %d" % i for i in range(2000)])
        for name, data in [("keys.txt", keys), ("more.txt", b"more\n"), ("new.txt", b"hello\nstranger 9\n"),
                           ("absent.txt", lines(b"absent %d" % i for i in range(1000))), ("people.csv", people),
                           ("codes.tsv", lines(b"%s\t%d" % (k, i) for i, k in enumerate(keys.splitlines()))),
                           ("words.tsv", b"hello\tred\nworld\tblue\n"),
                           ("table.csv", b"id,mail\n1,a@example.org\n"),
                           ("keys.gz", gzip.compress(keys))]:
            self.write(name, data)
        for day in ["monday", "tuesday"]:
            self.ok("build", "-o", day + ".perhaps", "--max-bytes", "4Ki", "--keys-expected", "3000", "keys.txt")
        count = 0
        env = {**os.environ, "PATH": os.path.dirname(PERHAPS) + ":" + os.environ["PATH"]}
        for command in re.findall(r"^  (\w+)  +\S", self.text("--help"), re.M):
            if command in self.NEED_A_SERVER:
                continue
            text = self.ok(command, "--help").decode()
            for example in text.split("Examples:\n")[1].strip().splitlines():
                done = subprocess.run(["bash", "-c", "set -o pipefail;" + example], cwd=self.folder, env=env,
                                      capture_output=True)
                self.assertEqual(done.returncode, 0, (example, done.stderr))
                if command != "dedup":  # it reports there
                    self.assertEqual(done.stderr, b"", example)
                count += 1
        self.assertGreater(count, 15)
        self.assertEqual(self.read("known.txt"), b"hello\n")
        self.assertEqual(self.read("certainly-new.txt"), b"stranger 9\n")


if __name__ == "__main__":
    if not os.access(PERHAPS, os.X_OK):
        sys.exit("usage: document_test.py PERHAPS")
    os.environ["LC_ALL"] = "C.UTF-8"
    program = unittest.main(argv=[sys.argv[0], *sys.argv[2:]], exit=False)
    count = program.result.testsRun
    sys.exit(not program.result.wasSuccessful() or count == 0 or bool(program.result.skipped))
