"""perhaps-mpi: four ranks on this machine, under the real mpirun.

    mpi_test.py PERHAPS [unittest arguments]
"""
import json
import os
import re
import signal
import subprocess
import sys
import unittest

import schema
from cli_test import PERHAPS, Case, lines

PROGRAM = os.path.join(os.path.dirname(PERHAPS), "perhaps-mpi")
KEYS = [b"a key that is long enough for some blocks of the input, number %d" % i for i in range(100_000)]


def mpirun(ranks, *words):
    # Ranks of one machine read each other's memory; a container may forbid that, and then they copy.
    return ["mpirun", "--allow-run-as-root", "--oversubscribe", "--mca", "btl", "self,vader",
            "--mca", "btl_vader_single_copy_mechanism", "none", "-n", str(ranks), *words]


class MpiCase(Case):
    def mpi(self, *args, ranks=4, code=0):
        done = subprocess.run(mpirun(ranks, PROGRAM, "build", *args), cwd=self.folder, capture_output=True, timeout=300)
        self.assertEqual(done.returncode, code, (args, done.stdout, done.stderr))
        return done


class Build(MpiCase):
    """What four ranks write is what one program writes, or a file of shards that answers as one filter. Would notice: a
    block that two ranks read or none, a key in the shard of another, a table that was not joined, another size."""

    def test_bits_are_those_of_one_machine(self):
        self.write("keys", lines(KEYS))
        for family in ["line", "block", "classic"]:
            self.ok("build", "--filter", family, "-o", "one", "keys")
            done = self.mpi("--filter", family, "-o", "many", "keys", "--json")
            self.assertEqual(self.read("many"), self.read("one"), family)
            schema.check(self, done.stdout, schema.shapes_of([PROGRAM])[""], family)
            self.assertEqual(json.loads(done.stdout)["keys"], len(KEYS))

    def test_repeats_and_recipes(self):
        # Sized for the distinct keys, and made by the recipe, as build does.
        self.write("table.csv", b"id,mail\n" + b"".join(b"%d,User%d@example.org\n" % (i, i % 40_000)
                                                        for i in range(100_000)))
        args = ("--csv", "--field", "mail", "--lower", "--fpr", "0.001", "table.csv")
        said = self.json("build", "-o", "one", *args)
        self.assertLess(said["capacity"], 42_000)
        self.mpi("-o", "many", *args, ranks=3)
        self.assertEqual(self.read("many"), self.read("one"))

    def test_shards_are_queried_as_one(self):
        self.write("keys", lines(KEYS))
        self.write("absent", lines(b"absent %d" % i for i in range(20_000)))
        for family in ["fuse", "ribbon"]:
            self.mpi("--filter", family, "--lower", "-o", "shards", "keys")
            self.assertEqual(self.text("query", "-c", "shards", "keys"), "100000\n")
            # 1 % of 20,000, and 8 sigma.
            self.assertLess(int(self.text("query", "-c", "shards", "absent")), 200 + 113)
            info = self.info("shards")
            self.assertEqual((info["format"], info["family"], len(info["entries"])), ("shards", family, 4))
            self.assertEqual(sum(entry["keys"] for entry in info["entries"]), len(KEYS))
            # The recipe of the shards is the one of the file.
            self.ok("query", "shards", "-e", KEYS[7].decode().upper())
            self.ok("verify", "shards", "--keys", "keys", "--absent-count", "1000")


class Documentation(MpiCase):
    """The commands of doc/shards.md do what it says, with fewer ranks."""

    def test_commands(self):
        self.write("keys.txt", lines(KEYS[:5000]))
        page = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "doc", "shards.md")
        with open(page) as file:
            commands = re.findall(r"^    mpirun -n 64 perhaps-mpi build (.*)$", file.read(), re.MULTILINE)
        self.assertEqual(len(commands), 2)
        for command in commands:
            self.mpi(*command.split())
        self.assertEqual(self.text("query", "-c", "seen.perhaps", "keys.txt"), "5000\n")
        self.assertEqual(self.text("query", "-c", "seen.shards", "keys.txt"), "5000\n")


class Failures(MpiCase):
    """Clear errors, and nothing left behind. Would notice: ranks that wait for ever, a half file, a temporary one."""

    def refused_by_ranks(self, *args, says):
        before = sorted(os.listdir(self.folder))
        done = self.mpi(*args, ranks=2, code=2)
        self.assertEqual(done.stderr.decode().count(says), 1, done.stderr)
        self.assertEqual(done.stderr.decode().count("perhaps mpi: "), 1, done.stderr)
        self.assertEqual(sorted(os.listdir(self.folder)), before)

    def test_refusals(self):
        self.write("keys", b"a\nb\n")
        self.write("packed.gz", bytes.fromhex("1f8b0800000000000003") + bytes(20))
        self.refused_by_ranks("-o", "x", "none", says="none: No such file")
        self.refused_by_ranks("-o", "x", "packed.gz", says="packed.gz: ranks share out files")
        self.refused_by_ranks("-o", "x", "--filter", "cuckoo", "keys", says="--filter cuckoo: must be one of")
        self.refused_by_ranks("-o", "x", says="no files of keys")
        self.write("empty", b"")
        for family in ["line", "ribbon"]:
            self.mpi("--filter", family, "-o", "old", "keys", ranks=2)
            old = self.read("old")
            self.refused_by_ranks("--filter", family, "-o", "old", "empty", says="no keys came from empty")
            self.assertEqual(self.read("old"), old)
        self.refused_by_ranks("-o", "x", "--filter", "ribbon", "--max-bytes", "30", "keys", says="--max-bytes")
        self.refused_by_ranks("--ouput", "x", "keys", says="did you mean --output?")

    def test_sizes_that_no_rate_keeps(self):
        self.write("keys", lines(KEYS))
        for family in ["fuse", "ribbon"]:
            for size in [("--max-bytes", "9000"), ("--bits-per-key", "0.5")]:
                self.refused_by_ranks("-o", "x", "--filter", family, *size, "keys", says="whatever the false-positive")

    def reading(self, rank):
        """The process of that rank, once it has opened the first file of keys; None before."""
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                if os.readlink(f"/proc/{pid}/cwd") != os.path.realpath(self.folder):
                    continue
                with open(f"/proc/{pid}/environ", "rb") as file:
                    mine = b"OMPI_COMM_WORLD_RANK=%d\0" % rank in file.read()
                with open(f"/proc/{pid}/maps") as file:
                    if mine and self.path("keys") in file.read():
                        return int(pid)
            except OSError:  # it has ended, or is not ours
                continue
        return None

    def test_a_rank_that_is_killed(self):
        # A rank opens all files before it reads any: at the second one, a pipe without a writer, it waits.
        self.write("keys", lines(KEYS))
        os.mkfifo(self.path("second"))
        self.write("old", b"old")
        before = sorted(os.listdir(self.folder))
        for family in ["line", "fuse"]:
            with subprocess.Popen(mpirun(4, PROGRAM, "build", "--filter", family, "-o", "old", "keys", "second"),
                                  cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
                while any(self.reading(rank) is None for rank in range(4)):
                    self.assertIsNone(process.poll())
                os.kill(self.reading(2), signal.SIGKILL)
                _, error = process.communicate(timeout=120)
            self.assertNotEqual(process.returncode, 0)
            self.assertRegex(error.decode(), r"(?s)rank 2 .*exited on signal 9")
            self.assertEqual(sorted(os.listdir(self.folder)), before)
            self.assertEqual(self.read("old"), b"old")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
