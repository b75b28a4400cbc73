"""Streams that remember: dedup with a file, without loss, and of documents.

    streams_test.py PERHAPS [unittest arguments]
"""
import gzip
import json
import os
import random
import signal
import struct
import subprocess
import sys
import unittest

import cli_test
from cli_test import Case, len32, lines

SEED = 20260118


def once(records):
    return list(dict.fromkeys(records))


class Exact(Case):
    """The output is that of awk '!seen[$0]++', bytes and order, whatever the input and however it comes."""

    def inputs(self):
        rng = random.Random(SEED)
        yield b""
        yield b"\n"
        yield b"\n\n\n"
        yield b"a"
        yield b"a\na"
        yield b"a\naa\naaa\na\naa\naaa"
        yield b"x\ny\nx\n\ny\n\n"
        yield lines(b"%d" % rng.randrange(50_000) for _ in range(200_000))
        yield lines(b"k" * rng.randrange(300) for _ in range(5000))
        yield lines(b"%d" % i for i in range(100_000)) * 2
        # Of a pipe few bits of a digest are kept: hundreds of these are suspected of equalling others, two by two.
        yield lines(b"%d" % (i // 2) for i in range(200_000))
        page = lines(b"%07d" % (i % 300) for i in range(512 * 3))  # ends where a page ends
        yield page
        yield page + b"0000001"
        yield (page + b"0000")[:4096 * 3]

    def test_as_awk(self):
        for data in self.inputs():
            want = subprocess.run(["awk", "!seen[$0]++"], input=data, capture_output=True, check=True,
                                  env={**os.environ, "LC_ALL": "C"}).stdout
            self.write("in", data)
            self.write("in.gz", gzip.compress(data))
            half = data[: len(data) // 2].rfind(b"\n") + 1
            self.write("front", data[:half])
            self.write("back", data[half:])
            for args, stdin in [(["in"], b""), ([], data), (["in.gz"], b""), (["front", "back"], b""),
                                (["front", "-"], data[half:]), (["--keys-expected", "3", "in"], b"")]:
                done = self.run_perhaps("dedup", "--exact", "-q", *args, stdin=stdin)
                self.assertEqual((done.returncode, done.stderr), (0, b""))
                self.assertEqual(done.stdout, want, (args, data[:60]))

    def test_other_records(self):
        rng = random.Random(SEED)
        keys = [b"%x" % rng.getrandbits(rng.randrange(1, 40)) for _ in range(20_000)]
        for args, data in [(["-0"], b"".join(k + b"\0" for k in once(keys))),
                           (["--keys-as", "len32"], len32(once(keys)))]:
            whole = b"".join(k + b"\0" for k in keys) if args == ["-0"] else len32(keys)
            self.assertEqual(self.run_perhaps("dedup", "--exact", "-q", *args, self.write("in", whole)).stdout, data)
            self.assertEqual(self.run_perhaps("dedup", "--exact", "-q", *args, stdin=whole).stdout, data)
        numbers = [rng.randrange(3000) for _ in range(9000)]
        packed = struct.pack("<9000Q", *numbers)
        want = b"".join(struct.pack("<Q", n) for n in once(numbers))
        done = self.run_perhaps("dedup", "--exact", "-q", "--keys-as", "u64", self.write("in", packed))
        self.assertEqual(done.stdout, want)
        text = lines(b"%d,%s" % (i, k.upper()) for i, k in enumerate(keys))
        seen = set()
        want = lines(line for line in text.splitlines()
                     if not (line.split(b",")[1].lower() in seen or seen.add(line.split(b",")[1].lower())))
        done = self.run_perhaps("dedup", "--exact", "--field", "2", "--delimiter", ",", "--lower", "--suspects", "gone",
                                self.write("in", text))
        self.assertEqual(done.stdout, want)
        self.assertEqual(sorted(self.read("gone").splitlines() + want.splitlines()), sorted(text.splitlines()))
        self.assertIn(b"(none by mistake)", done.stderr)

    def test_refusals(self):
        for other in [["--window", "9"], ["--fpr", "0.1"], ["--seen", "f"], ["--for", "9s"], ["--ngrams", "3"]]:
            self.refused("dedup", "--exact", *other, says="--exact excludes " + other[0])
        done = subprocess.run([cli_test.PERHAPS, "dedup", "--exact"], input=b"a\n", capture_output=True,
                              env={**os.environ, "TMPDIR": self.path("nowhere")})
        self.assertEqual(done.returncode, 2)
        self.assertIn(b"nowhere: the temporary file of --exact: No such file or directory (TMPDIR)", done.stderr)


class Interrupted(Case):
    """A signal that comes between the last look at it and the read that waits for a pipe is not lost. Would notice: a
    program that ends only when more input comes, or at the second signal."""

    SIGNALS_ITSELF = b"""#define _GNU_SOURCE
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
ssize_t read(int fd, void* to, size_t size) {
  struct stat status;
  if (fstat(fd, &status) == 0 && S_ISFIFO(status.st_mode)) kill(getpid(), SIGINT);
  return syscall(SYS_read, fd, to, size);
}
"""

    def test_before_the_read(self):
        self.write("before.c", self.SIGNALS_ITSELF)
        subprocess.run(["cc", "-shared", "-fPIC", "-o", "before.so", "before.c"], cwd=self.folder, check=True)
        for args in [["build", "-o", "f"], ["dedup"]]:
            with subprocess.Popen([cli_test.PERHAPS, *args], cwd=self.folder, stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                  env={**os.environ, "LD_PRELOAD": self.path("before.so")}) as process:
                self.assertEqual(process.wait(timeout=60), 128 + signal.SIGINT)


class Seen(Case):
    """A second run goes on where the first one ended; a killed one repeats at most its last interval."""

    def seen(self, *args, stdin):
        done = self.run_perhaps("dedup", "--seen", "f", "-q", *args, stdin=stdin)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_two_runs(self):
        for way in [[], ["--window", "100000"], ["--keys-expected", "9000"]]:
            if os.path.exists(self.path("f")):
                os.remove(self.path("f"))
            self.assertEqual(self.seen(*way, stdin=b"a\nb\na\n"), b"a\nb\n")
            self.assertEqual(self.seen(stdin=b"b\nc\nc\na\n"), b"c\n")
            self.assertEqual(self.seen(stdin=b"b\nc\nc\na\n"), b"")
            self.assertEqual(self.info("f")["family"], "window" if "--window" in way else "scalable")
            self.refused("dedup", "--seen", "f", "--window", "5", says="f: is there, and keeps the shape")
            # The same command line, every day.
            self.assertEqual(self.seen(*way, stdin=b"a\nd\n"), b"d\n")

        self.ok("build", "-o", "g", "--keys-expected", "100", "-e", "a")
        for other in [["--keys-expected", "101"], ["--window", "100"]]:
            self.refused("dedup", "--seen", "g", *other, says="g: is there, and keeps the shape")
        self.ok("dedup", "--seen", "g", "--keys-expected", "100")
        self.ok("build", "-o", "h", "--filter", "growing", "--keys-expected", "100", "-e", "a")
        self.assertEqual(self.ok("dedup", "-q", "--seen", "h", "--keys-expected", "1000", stdin=b"a\nb\n"), b"b\n")
        self.ok("dedup", "--seen", "w", "--window", "100", stdin=b"a\n")
        self.refused("dedup", "--seen", "w", "--keys-expected", "100",
                     says="the last 100 keys, which --keys-expected does not change")

    def test_lines_that_come_again_and_again(self):
        """They take no room: a family that keeps copies was full after ten of them."""
        for family in cli_test.able(lambda about: about["add"]):
            self.ok("build", "-o", "f", "--filter", family, "--keys-expected", "1000", "-e", "a")
            self.assertEqual(self.seen(stdin=b"b\n" * 5000 + b"c\n"), b"b\nc\n", family)
            d = self.info("f")
            self.assertEqual(d["keys"], 5002 if family == "window" else 3, family)
            self.assertFalse(d.get("needs_rebuild"), family)

    def test_any_filter_that_takes_keys(self):
        for family in cli_test.able(lambda about: about["add"]):
            self.ok("build", "-o", "f", "--filter", family, "--fpr", "1e-9" if family != "cuckoo" else "1e-6",
                    "--keys-expected", "1000", "-e", "a")
            self.assertEqual(self.seen(stdin=b"a\nb\nb\n"), b"b\n", family)
            self.assertEqual(self.ok("query", "f", stdin=b"a\nb\n"), b"a\nb\n")
        self.ok("build", "-o", "g", "--filter", "fuse", "-e", "a")
        self.refused("dedup", "--seen", "g", says="takes no more keys")

    def test_a_window_in_a_file_forgets(self):
        self.seen("--window", "1000", stdin=lines(b"%d" % i for i in range(1000)))
        self.seen(stdin=lines(b"x%d" % i for i in range(3000)))
        self.assertEqual(len(self.seen(stdin=b"5\n6\nx2999\n").splitlines()), 2)

    def test_kill_9(self):
        """Killed after 2,500 lines with a save at every 1024: what it printed, and the next run prints, has every line
        at least once, and at most an interval and a batch twice."""
        rows = [b"%d" % i for i in range(5000)]
        with subprocess.Popen([cli_test.PERHAPS, "dedup", "--seen", self.path("f"), "--save-every", "1024"],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
            first = []
            for row in rows[:2500]:
                process.stdin.write(row + b"\n")
                process.stdin.flush()
                first.append(process.stdout.readline()[:-1])
            process.send_signal(signal.SIGKILL)
        self.assertEqual(first, rows[:2500])
        second = self.seen(stdin=lines(rows)).splitlines()
        both = first + second
        self.assertEqual(sorted(set(both), key=int), rows)
        self.assertGreater(len(both), 5000)
        self.assertLessEqual(len(both), 5000 + 1024)

    def test_interrupt_saves(self):
        with subprocess.Popen([cli_test.PERHAPS, "dedup", "--seen", self.path("f")], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
            process.stdin.write(b"a\n")
            process.stdin.flush()
            self.assertEqual(process.stdout.readline(), b"a\n")
            process.send_signal(signal.SIGTERM)
            self.assertEqual(process.wait(), 128 + signal.SIGTERM)
        self.assertEqual(self.seen(stdin=b"a\nb\n"), b"b\n")

    def test_report(self):
        done = self.run_perhaps("dedup", "--seen", "f", "--json", stdin=b"a\na\nb\n")
        d = json.loads(done.stderr)
        self.assertEqual((d["lines"], d["out"], d["dropped"]), (3, 2, 1))
        self.ok("build", "-o", "f", "--max-bytes", "64", "--keys-expected", "30", "-e", "x")
        done = self.run_perhaps("dedup", "--seen", "f", stdin=lines(b"%d" % i for i in range(3000)))
        self.assertIn(b"warning: f: full: ", done.stderr)
        for args, says in [(["--save-every", "5"], "--save-every"), (["--threshold", "0.5"], "--threshold"),
                           (["--seen", "f", "--for", "9s"], "--seen excludes --for")]:
            self.refused("dedup", *args, says=says)


class Corpus(Case):
    """Documents most of whose n-grams were seen are dropped; new ones are not, however many came before."""

    def test_near_copies(self):
        rng = random.Random(SEED)
        word = lambda: "".join(rng.choices("abcdefgh", k=5))
        documents = [[word() for _ in range(100)] for _ in range(300)]
        rows, want = [], []
        for i, document in enumerate(documents):
            rows.append({"id": i, "text": " ".join(document)})
            want.append(rows[-1])
            copy = list(document)
            copy[rng.randrange(100)] = "changed"  # at most 13 of its 88 n-grams are new
            rows.append({"id": -i, "text": "\n ".join(copy)})
        data = b"".join(json.dumps(row).encode() + b"\n" for row in rows)
        args = ["dedup", "--json-lines", "--field", "text", "--ngrams", "13", "--threshold", "0.8"]
        done = self.run_perhaps(*args, stdin=data)
        self.assertEqual([json.loads(line) for line in done.stdout.splitlines()], want)
        self.assertIn(b"600 documents read, 300 kept, 300 dropped", done.stderr)
        self.assertNotIn(b"SATURATED", done.stderr)
        all_kept = self.run_perhaps(*args[:-1], "1", stdin=data)
        self.assertEqual(len(all_kept.stdout.splitlines()), 600)
        # A rate that high makes a filter that takes most for seen; nobody is left to guess.
        full = self.run_perhaps(*args[:-1], "0.3", "--fpr", "0.5", stdin=data)
        self.assertIn(b"warning: SATURATED: ", full.stderr)

    def test_short_documents(self):
        done = self.run_perhaps("dedup", "--ngrams", "3", stdin=b"a b\na b\na\n\n\na b c d\na b c d\n")
        self.assertEqual(done.stdout, b"a b\na\n\n\na b c d\n")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[2:])
