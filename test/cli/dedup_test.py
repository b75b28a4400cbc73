"""Promise: `perhaps dedup` prints what an exact set would print, byte for byte, however the records arrive.

    dedup_test.py PERHAPS CLI_PEER [unittest arguments]

Would notice: a lost or doubled line, a changed byte, a window too short or far too long, a drop that is not among the
suspects, a report that does not add up. At the default rate of 1e-6 a test of some thousand lines would meet a false
positive only once in many years. The seed is fixed.
"""
import gzip
import json
import os
import random
import signal
import struct
import subprocess
import sys
import time
import unittest

from cli_test import PERHAPS, SEED, Case, len32, lines, zst


def first_seen(records, key=lambda r: r):
    seen = set()
    return [r for r in records if not (key(r) in seen or seen.add(key(r)))]


class Dedup(Case):
    def dedup(self, *args, stdin=b""):
        # Each run has a secret of its own: at the default rate one of some hundred runs drops a line by accident.
        return self.ok("dedup", "-q", *([] if "--fpr" in args else ["--fpr", "1e-9"]), *args, stdin=stdin)

    def report(self, *args, stdin=b""):
        done = self.run_perhaps("dedup", "--json", *args, stdin=stdin)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout, json.loads(done.stderr)

    def sample(self, size=20_000, distinct=6000):
        rng = random.Random(SEED)
        return [b"line %d" % rng.randrange(distinct) for _ in range(size)]

    def test_as_an_exact_set(self):
        records = self.sample()
        want = lines(first_seen(records))
        data = lines(records)
        self.write("a", data)
        self.write("a.gz", gzip.compress(data))
        self.write("a.zst", zst(data))
        for args, stdin in [(["a"], b""), (["-"], data), ([], data), (["a.gz"], b""), (["a.zst"], b""),
                            (["--threads", "1", "a"], b""), (["--keys-expected", "10", "a"], b""),
                            (["--keys-expected", "1M"], data), (["--window", "20000", "a"], b""),
                            (["--window", "1M"], data), (["--for", "1h", "a"], b""), (["--for", "7d"], data),
                            (["a", "a.gz"], b""), (["a", "-"], data)]:
            self.assertEqual(self.dedup(*args, stdin=stdin), want, args)

    def test_standard_input_from_where_it_is(self):
        """A file as standard input is read twice, both times from its initial position."""
        records = self.sample()
        self.write("a", b"said\nbefore\n" + lines(records))
        with open(self.path("a"), "rb") as file:
            file.seek(len(b"said\nbefore\n"))
            done = subprocess.run([PERHAPS, "dedup", "-q"], stdin=file, capture_output=True, check=True)
        self.assertEqual(done.stdout, lines(first_seen(records)))

    def test_a_file_does_not_become_memory(self):
        """In neither pass: a file of 48 MB takes less than 12 MB more memory than a single line."""
        self.write("line", b"once\n")
        self.write("large", b"%046d\n" % 7 * 1_000_000)
        peak = {}
        for name in "line", "large":
            with subprocess.Popen([PERHAPS, "dedup", "-q", self.path(name)], stdout=subprocess.DEVNULL) as p:
                _, status, usage = os.wait4(p.pid, 0)
                p.returncode = os.waitstatus_to_exitcode(status)
            self.assertEqual(p.returncode, 0)
            peak[name] = usage.ru_maxrss << 10
        self.assertLess(peak["large"] - peak["line"], 12_000_000)

    def test_many_blocks(self):
        """Files of several blocks, with runs of every length kept and dropped, and lines longer than a block."""
        rng = random.Random(SEED)
        records = []
        for i in range(3000):
            records += [b"%d" % (i % 100)] * rng.randrange(3)
            records += [b"new %d.%d" % (i, j) for j in range(rng.randrange(60))]
        records.insert(5000, b"x" * 3_000_000)
        records.insert(9000, b"x" * 3_000_000)
        self.write("a", lines(records))
        want = lines(first_seen(records))
        self.assertEqual(self.dedup("a"), want)
        self.assertEqual(self.dedup(stdin=lines(records)), want)

    def test_bytes_as_they_are(self):
        for data, want in [
            (b"", b""), (b"\n", b"\n"), (b"\n\n\n", b"\n"), (b"a", b"a\n"), (b"a\na", b"a\n"), (b"b\na", b"b\na\n"),
            (b"a\r\na\n a\r\na\r\n", b"a\r\na\n a\r\n"), (b"\0\n\0\0\n\0\n", b"\0\n\0\0\n"),
            (b"\xff\xfe\n\xff\xfe\n", b"\xff\xfe\n"),
        ]:
            self.write("a", data)
            self.assertEqual(self.dedup("a"), want, data)
            self.assertEqual(self.dedup(stdin=data), want, data)
            self.assertEqual(self.dedup("--window", "5", stdin=data), want, data)

    def test_keys_and_records(self):
        self.assertEqual(self.dedup("-0", stdin=b"a\nb\0a\nb\0c\0"), b"a\nb\0c\0")
        self.assertEqual(self.dedup("--field", "2", "--delimiter", ",", "--lower", stdin=b"1,A,x\n2,a,y\n3,b,z\n"),
                         b"1,A,x\n3,b,z\n")
        self.assertEqual(self.dedup("--trim", stdin=b" a\na \nb\n"), b" a\nb\n")
        self.assertEqual(self.dedup("--keys-as", "hex", stdin=b"0A\n0a\n0b\n"), b"0A\n0b\n")
        self.assertEqual(self.dedup("--keys-as", "len32", stdin=len32([b"a", b"", b"a", b"", b"b\n"])),
                         len32([b"a", b"", b"b\n"]))
        numbers = [5, 7, 5, 2**64 - 1, 0, 7, 0]
        pack = lambda ns: b"".join(struct.pack("<Q", n) for n in ns)
        self.assertEqual(self.dedup("--keys-as", "u64", stdin=pack(numbers)), pack([5, 7, 2**64 - 1, 0]))

    def test_window(self):
        """Within N lines a repeat is always dropped; more than 8/7 N lines later it is always printed."""
        window = 700
        for gap in [1, 10, 699, 700, 801, 900, 5000]:
            records = [b"new %d" % i for i in range(6000)]
            for at in range(0, 6000 - gap, 977):
                records[at] = b"again %d" % at
                if not records[at + gap].startswith(b"again"):
                    records[at + gap] = records[at]
            want = []
            last = {}
            for i, r in enumerate(records):
                if r not in last or i - last[r] > window:
                    want.append(r)
                last[r] = i
            self.assertEqual(self.dedup("--window", "700", stdin=lines(records)), lines(want), gap)

    def test_window_of_time(self):
        """Lines that arrived before the window are forgotten; the pipe stays open here."""
        with subprocess.Popen([PERHAPS, "dedup", "-q", "--for", "200ms"], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE) as p:
            def send(text):
                p.stdin.write(text)
                p.stdin.flush()
            send(b"a\nb\na\n")
            self.assertEqual(p.stdout.readline() + p.stdout.readline(), b"a\nb\n")
            begin = time.monotonic()
            while time.monotonic() < begin + 0.3:  # until the window is certainly over; the filter is in use meanwhile
                send(b"b\n")
                time.sleep(0.02)  # lets the other run; nothing is asserted about how long it takes
            send(b"a\nend\n")
            self.assertEqual(p.stdout.readline(), b"a\n")  # b was refreshed all the time
            self.assertEqual(p.stdout.readline(), b"end\n")
            p.stdin.close()
            self.assertEqual(p.wait(), 0)

    def test_suspects(self):
        records = self.sample()
        out = self.dedup("--suspects", "dropped", stdin=lines(records))
        dropped = self.read("dropped").splitlines()
        kept = out.splitlines()
        self.assertEqual(len(kept) + len(dropped), len(records))
        self.assertEqual(sorted(kept + dropped), sorted(records))
        self.assertLessEqual(set(dropped), set(kept))
        self.dedup("--suspects", "dropped", stdin=b"a\n")
        self.assertEqual(self.read("dropped"), b"")

    def test_a_refusal_leaves_the_suspects_alone(self):
        self.write("a", b"x\n")
        self.write("dropped", b"of the last time\n")
        for args in [["missing"], ["--window", "1e18", "a"], ["--keys-expected", "1e17", "a"]]:
            self.refused("dedup", "--suspects", "dropped", *args, says="")
            self.refused("dedup", "--suspects", "new", *args, says="")
        self.assertEqual(self.read("dropped"), b"of the last time\n")
        with open(self.path("both"), "wb") as both:
            done = subprocess.run([PERHAPS, "dedup", "--suspects", "both", "a"], cwd=self.folder, stdout=both,
                                  stderr=subprocess.PIPE)
        self.assertEqual(done.returncode, 2)
        self.assertIn(b"both: is standard output", done.stderr)

    def test_an_endless_stream_ends_with_a_signal(self):
        """Every line that was read is then in one of the two outputs, and in the report."""
        for args in [[], ["--window", "9"]]:
            with subprocess.Popen([PERHAPS, "dedup", "--json", "--suspects", self.path("dropped"), *args],
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as p:
                p.stdin.write(b"a\na\nb\na\n")
                p.stdin.flush()
                self.assertEqual(p.stdout.readline() + p.stdout.readline(), b"a\nb\n")
                while self.read("dropped") != b"a\na\n":  # before the end, like the lines that are kept
                    time.sleep(0.01)
                while p.poll() is None:
                    p.send_signal(signal.SIGINT)
                    time.sleep(0.02)
                self.assertEqual(p.returncode, 128 + signal.SIGINT)
                report = json.loads(p.stderr.read())
                self.assertEqual((report["lines"], report["out"], report["dropped"]), (4, 2, 2))
                p.stdin.close()

    def test_report(self):
        records = self.sample()
        self.write("a", lines(records))
        for args in [["a"], ["--window", "50k", "a"], ["--for", "10m", "a"]]:
            out, d = self.report(*args)
            self.assertEqual(d["lines"], len(records))
            self.assertEqual(d["out"], out.count(b"\n"))
            self.assertEqual(d["dropped"], d["lines"] - d["out"])
            self.assertLess(d["expected_wrong"], 1e-6 * len(records))
            self.assertGreater(d["bytes"], 6000 * 2)
            self.assertLessEqual(d["fpr"], 1e-6)
        text = self.run_perhaps("dedup", "a").stderr.decode()
        self.assertIn("20,000 lines read, ", text)
        self.assertIn("remembered everything in ", text)

    def test_the_rate_is_as_announced(self):
        """At 1 %, about as many of some 100,000 new lines are dropped as the report expects (5 sigma)."""
        n = 100_000
        self.write("a", lines(b"%d" % i for i in range(n)))
        for args in [["a"], ["--keys-expected", "100k", "a"], ["--window", "20k", "a"]]:
            _, d = self.report("--fpr", "1%", *args)
            self.assertLess(abs(d["dropped"] - d["expected_wrong"]), 5 * d["expected_wrong"] ** 0.5 + 5, (args, d))
            self.assertLessEqual(d["expected_wrong"], n / 100)
            self.assertGreater(d["expected_wrong"], 50)

    def test_few_lines(self):
        """Few lines cause no warning, and a window of few lines keeps the rate."""
        for n in [1, 10, 900, 1100, 3000]:
            self.write("a", lines(b"%d" % i for i in range(n)))
            for args in [["a"], ["--window", "1", "a"], ["--window", "10", "a"], ["--window", "500", "a"]]:
                _, d = self.report(*args)
                self.assertLessEqual(d["fpr"], 1.1e-6, (n, args))

    def test_more_than_expected(self):
        done = self.run_perhaps("dedup", "--for", "1h", "--keys-expected", "100", "--json",
                                stdin=lines(self.sample()))
        self.assertEqual(done.returncode, 0)
        report, warning = done.stderr.decode().splitlines()
        self.assertIn("more lines came than were expected (--keys-expected)", warning)
        dropped = "%.3g %%" % (100 * json.loads(report)["fpr"])
        self.assertIn(dropped + " of the new lines are dropped instead of 1 in 1 million", warning)

    def test_refusals(self):
        self.write("a", b"x\n")
        for args, says in [
            (["--window", "0", "a"], "--window 0"), (["--window", "x", "a"], "--window x"),
            (["--for", "10", "--window", "5", "a"], "excludes"), (["--for", "0s", "a"], "--for 0s"),
            (["--for", "ten", "a"], "--for ten"), (["--for", "10y", "a"], "--for 10y: must be a time such as"),
            (["--for", "-5s", "a"], "--for -5s"), (["--for", "nan", "a"], "--for nan"),
            (["--fpr", "0", "a"], "--fpr 0"), (["--fpr", "1", "a"], "--fpr 1"), (["--fpr", "x", "a"], "--fpr x"),
            (["--window", "5", "--keys-expected", "9", "a"], "--keys-expected"),
            (["--suspects", "-", "a"], "--suspects -"), (["--suspects", "a", "a"], "is an input"),
            (["--suspects", "no/where", "a"], "no/where"), (["missing"], "missing: No such file"), (["."], "directory"),
            (["--window", "1e18", "a"], "this machine has"), (["--keys-expected", "1e17", "a"], "--window N bounds it"),
            (["-", "-"], "named twice"),
        ]:
            self.refused("dedup", *args, says=says)
        self.assertEqual(self.read("a"), b"x\n")

    def test_answers_before_the_input_ends(self):
        for args in [[], ["--window", "9"]]:
            with subprocess.Popen([PERHAPS, "dedup", "-q", *args], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as p:
                p.stdin.write(b"hello\nhello\nhel")
                p.stdin.flush()
                self.assertEqual(p.stdout.readline(), b"hello\n")
                p.stdin.write(b"o\n")
                p.stdin.flush()
                self.assertEqual(p.stdout.readline(), b"helo\n")
                # A signal between two reads is noticed at the next line, or at the second signal.
                while p.poll() is None:
                    p.send_signal(signal.SIGTERM)
                    time.sleep(0.02)
                self.assertEqual(p.returncode, 128 + signal.SIGTERM)
                p.stdin.close()

    def test_a_closed_pipe_is_no_error(self):
        self.write("big", lines(b"%d" % i for i in range(400_000)))
        with subprocess.Popen([PERHAPS, "dedup", self.path("big")], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE) as p:
            self.assertEqual(p.stdout.readline(), b"0\n")
            p.stdout.close()
            self.assertEqual(p.stderr.read(), b"")
            self.assertNotIn(p.wait(), (0, 2))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]] + sys.argv[3:])
