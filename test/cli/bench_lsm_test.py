"""The promises of `perhaps bench lsm`, kept by the real binary over databases that it makes. Speeds are not checked.

    bench_lsm_test.py PERHAPS [unittest arguments]
"""
import json
import os
import sys
import unittest
import xml.etree.ElementTree

import schema
from cli_test import PERHAPS, Case


class BenchLsm(Case):
    """Each setting has its figures, and filters save reads. Would notice: a missing engine, filters that are not
    counted or not queried, a picture that is not XML."""

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
            picture = xml.etree.ElementTree.fromstring(self.read(engine + ".svg"))
            self.assertTrue(picture.tag.endswith("svg"))
            self.assertIn(b"perhaps, 10 bits", self.read(engine + ".svg"))

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
