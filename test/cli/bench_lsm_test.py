"""The promises of `perhaps bench lsm`, kept by the real binary over databases that it makes. Speeds are not checked.

    bench_lsm_test.py PERHAPS [unittest arguments]
"""
import json
import os
import re
import sys
import unittest
import xml.etree.ElementTree

import schema
from cli_test import PERHAPS, Case


class BenchLsm(Case):
    """Each setting has its figures, and filters save reads. Would notice: a missing engine, filters that are not
    counted or not queried, a table that is counted twice or not at all, a picture whose numbers are not those of its
    labels, filters that are read on opening where they should be read later."""

    SMALL = ("--keys", "5000", "--lookups", "2000")

    def test_counts_for_both_engines(self):
        for engine, settings in (("rocksdb", 9), ("leveldb", 4)):
            report = self.text("bench", "lsm", "--engine", engine, *self.SMALL, "--svg", engine + ".svg", "--json")
            schema.check(self, report, schema.shapes_of([PERHAPS, "bench", "lsm"])[""], "bench lsm")
            rows = json.loads(report)["settings"]
            self.assertEqual(len(rows), settings)
            none, own = rows[0], rows[1]
            self.assertEqual(none["filter_bytes"], 0)
            for row in rows[1:]:
                self.assertGreater(row["filter_bytes"], 0, row)
                self.assertLess(row["reads_absent"], none["reads_absent"] / 4, row)
            ours = next(row for row in rows if row["filters"] == "perhaps, 10 bits")
            self.assertLessEqual(ours["bits_per_key"], own["bits_per_key"] * 1.02)
            self.check_levels(engine, json.loads(report))
            self.check_picture(self.read(engine + ".svg"), json.loads(report))

    def check_levels(self, engine, report):
        """A filter changes what becomes of a table, not which tables a lookup comes to. Looking into one takes a block,
        unless that is in the cache, which LevelDB does not have here."""
        def sums(row, what):
            levels = row["levels_" + what]
            self.assertEqual(sum(level["found"] for level in levels) > 0, what == "mix", row)
            return [sum(level[name] for level in levels) for name in ("skipped", "in_vain", "found")]
        none = report["settings"][0]
        for what in ("absent", "mix"):
            came_to = sum(sums(none, what))
            self.assertEqual(sums(none, what)[0], 0)
            for row in report["settings"]:
                skipped, in_vain, found = sums(row, what)
                reads = round(row["reads_" + what] * report["lookups"])
                self.assertEqual(found, sums(none, what)[2], row)
                if engine == "rocksdb":
                    self.assertEqual(skipped + in_vain + found, came_to, row)
                    self.assertLessEqual(reads, (in_vain + found) * 1.02, row)  # between two blocks it reads both
                else:
                    self.assertEqual(reads, in_vain + found, row)

    def check_picture(self, svg, report):
        """The numbers of the picture, row by row and level by level, are those that its labels name."""
        self.assertTrue(xml.etree.ElementTree.fromstring(svg).tag.endswith("svg"))
        texts = re.findall(r">([^<]*)</text>", svg.decode())
        for label in ("looked into in vain", "skipped by its filter", "looked into, key found",
                      "file reads per lookup"):
            self.assertIn(label, texts)

        def shown(n):
            n = 100 * n / report["lookups"]
            return "0" if n == 0 else "&lt; 0.001" if n < 0.001 else "%.3g" % n
        drawn = [row for row in report["settings"] if row["filters"] in texts]
        self.assertGreaterEqual(len(drawn), 3)
        at = 0
        for row in drawn:
            at = texts.index(row["filters"], at)
            for level in row["levels_mix"]:
                if sum(level.values()) == 0:
                    self.assertIn("no table queried", texts[at:])
                    continue
                at = texts.index(shown(level["in_vain"]) + " in vain", at) + 1
                self.assertEqual(texts[at],
                                 "%s skipped, %s found" % (shown(level["skipped"]), shown(level["found"])), row)
            at = texts.index("%.3f" % row["reads_mix"], at)

    def test_skewed_lookups(self):
        """With Zipf's law some blocks are asked for again and again, and are in the cache."""
        reads = {}
        for skew in ([], ["--skew"]):
            report = self.json("bench", "lsm", *self.SMALL, "--absent", "0", "--cache", "150k", *skew)
            self.assertEqual(report["skew"], bool(skew))
            reads[bool(skew)] = [row["reads_mix"] for row in report["settings"]]
        for alike, skewed in zip(reads[False], reads[True]):
            self.assertLess(skewed, 0.8 * alike)

    def test_ways_to_keep_filters(self):
        report = self.text("bench", "lsm", "--blocks", "--keys", "50k", "--lookups", "1000", "--json")
        schema.check(self, report, schema.shapes_of([PERHAPS, "bench", "lsm"])["--blocks"], "bench lsm --blocks")
        ways = {row["filters"]: row for row in json.loads(report)["settings"]}
        self.assertEqual(len(ways), 6)
        for form in ("whole", "pieces"):
            opened, cached, pinned = (
                ways[form + ", " + how] for how in ("read on opening", "in the cache", "pinned in the cache"))
            for row in (opened, pinned):
                # All of it is read when the database is opened, and never again.
                self.assertGreater(row["opening_bytes"], row["filter_bytes"])
                self.assertGreater(row["memory_opened"], row["filter_bytes"])
                self.assertEqual((row["filter_blocks"], row["index_blocks"]), (0, 0), row)
                self.assertEqual(row["memory_opened"], row["memory"] // 1000 * 1000 + row["memory_opened"] % 1000)
            self.assertLess(cached["opening_bytes"], cached["filter_bytes"])
            self.assertLess(cached["memory"], cached["cache"] + 20_000)
            self.assertGreater(cached["filter_blocks"], 0.1)
            for row in (opened, cached, pinned):
                self.assertLess(row["data_blocks"], 0.05)
        # A piece is read where otherwise a whole filter is.
        self.assertLess(10 * ways["pieces, in the cache"]["bytes"], ways["whole, in the cache"]["bytes"])
        # Refusals
        self.refused("bench", "lsm", "--blocks", "--engine", "leveldb", *self.SMALL, says="LevelDB")
        self.refused("bench", "lsm", "--blocks", "--scan", *self.SMALL, says="--scan")
        self.refused("bench", "lsm", "--skew", "--scan", *self.SMALL, says="--scan")

    def test_progress(self):
        """One line for each database on standard error, which nobody watches here."""
        done = self.run_perhaps("bench", "lsm", "--blocks", "--keys", "5000", "--lookups", "1000")
        lines = done.stderr.decode().splitlines()
        self.assertEqual(len(lines), 6)
        for i, line in enumerate(lines):
            self.assertRegex(line, r"^perhaps bench lsm: %d of 6: \w.*, built and counted$" % (i + 1))
        done = self.run_perhaps("bench", "lsm", "--engine", "leveldb", *self.SMALL)
        self.assertRegex(done.stderr.decode(), r"(?s)1 of 4: no filter, .*4 of 4: .*15 of 15: rounds of speeds\n$")

    def test_scans(self):
        report = self.text("bench", "lsm", "--scan", "--keys", "20k", "--lookups", "1000", "--json")
        schema.check(self, report, schema.shapes_of([PERHAPS, "bench", "lsm"])["--scan"], "bench lsm --scan")
        rows = {row["filters"]: row for row in json.loads(report)["settings"]}
        self.assertEqual(len(rows), 5)
        none = rows["no filter"]
        self.assertEqual(none["filter_bytes"], 0)
        ranges = rows["perhaps ranges, 16 bits"]
        codes = rows["perhaps ranges, 16 bits, 64-bit codes"]
        for row in (ranges, codes):
            self.assertLess(row["bits_per_key"], 17, row)
        # Scans anywhere, of any size: ten times fewer. Right beside a key, short ones, with codes of 64 bits.
        for i, scan in enumerate(none["scans"]):
            if scan["found"]:
                self.assertGreater(ranges["scans"][i]["blocks"], 0)
            elif not scan["beside"]:
                self.assertLess(10 * ranges["scans"][i]["blocks"], scan["blocks"], scan)
            elif scan["size"] == 100:
                self.assertLess(10 * codes["scans"][i]["blocks"], scan["blocks"], scan)
        self.refused("bench", "lsm", "--scan", "--engine", "leveldb", *self.SMALL, says="LevelDB")

    def test_refusals(self):
        self.refused("bench", "lsm", "--keys", "1000", says="level 1 would have none")
        self.refused("bench", "lsm", "--keys", "10", says="1000 keys")
        self.refused("bench", "lsm", "--engine", "x", says="rocksdb|leveldb")
        self.refused("bench", "lsm", "--svg", "nowhere/a.svg", *self.SMALL, says="nowhere")
        self.refused("bench", "nothing", says="nothing")
        os.mkdir(self.path("used"))
        self.write("used/left", b"")
        self.refused("bench", "lsm", "--folder", "used", *self.SMALL, says="used: not empty")
        self.refused("bench", "lsm", "--folder", "used/left/more", *self.SMALL, says="used/left/more")

    def test_the_folder_is_made(self):
        for engine in ["rocksdb", "leveldb"]:
            folder = os.path.join("new", engine, "deep")
            self.ok("bench", "lsm", "--engine", engine, "--folder", folder, *self.SMALL)
            self.assertTrue(os.listdir(self.path(folder)))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
