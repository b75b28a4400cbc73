"""The promises of `perhaps sst`, kept by the real binaries over databases that the engines themselves made.

    sst_test.py PERHAPS SST_PEER [unittest arguments]

`perhaps sst` is a separate program that `perhaps` finds in its own folder.
"""
import glob
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

import schema

PERHAPS = os.path.abspath(sys.argv[1]) if len(sys.argv) > 1 else ""
PEER = os.path.abspath(sys.argv[2]) if len(sys.argv) > 2 else ""
KEYS = 20000


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="perhaps-sst-")
        self.addCleanup(shutil.rmtree, self.folder)

    def database(self, engine, filter_kind, keys=KEYS):
        path = os.path.join(self.folder, engine + "-" + filter_kind)
        subprocess.run([PEER, engine, path, str(keys), filter_kind], check=True, timeout=120)
        return path

    def run_sst(self, *args):
        return subprocess.run([PERHAPS, "sst", *args], capture_output=True, cwd=self.folder, timeout=120)

    def ok(self, *args, code=0):
        done = self.run_sst(*args)
        self.assertEqual(done.returncode, code, (args, done.stdout, done.stderr))
        return done.stdout.decode()

    def json(self, *args, code=0):
        output = self.ok("--json", *args, code=code)
        schema.check(self, output, schema.shapes_of([PERHAPS, "sst"])[""], "sst")
        return json.loads(output)

    def refused(self, *args, says):
        done = self.run_sst(*args)
        self.assertEqual((done.returncode, done.stdout), (2, b""), (args, done.stderr))
        self.assertIn(says, done.stderr.decode())


class Reports(Case):
    def check(self, engine, filter_kind, name, fpr):
        report = self.json("--verify", self.database(engine, filter_kind))
        self.assertEqual(sum(t["keys_read"] for t in report), KEYS)
        for table in report:
            self.assertEqual(table["engine"], engine)
            self.assertIn(name, table["filter"])
            self.assertEqual(table["missing"], 0)
            size = os.path.getsize(table["file"])
            self.assertEqual(table["file_bytes"], size)
            self.assertAlmostEqual(table["share"], table["filter_bytes"] / size, places=4)
            # n = 100,000 absent keys or slightly fewer, z = 5, plus a tenth for the accuracy of the prediction.
            asked, measured = table["absent"], table["fpr_measured"]
            self.assertGreater(asked, 90000)
            spread = 5 * (max(fpr) / asked) ** 0.5
            self.assertGreater(measured, min(fpr) - spread)
            self.assertLess(measured, max(fpr) + spread)
            self.assertLess(abs(measured - table["fpr"]), 0.1 * table["fpr"] + 2 * spread)
        return report

    def test_leveldb(self):
        report = self.check("leveldb", "bloom", "bloom, ", (0.008, 0.014))
        self.assertTrue(all(t["keys_estimated"] for t in report))
        for table in report:
            self.assertLess(abs(table["keys"] - table["keys_read"]), 0.02 * table["keys_read"])

    def test_rocksdb(self):
        report = self.check("rocksdb", "bloom", "fastlocal, full", (0.008, 0.011))
        self.assertEqual(len(report), 2)
        self.assertEqual(sum(t["keys"] for t in report), KEYS)
        self.assertAlmostEqual(report[0]["bits_per_key"], 10, delta=0.1)

    def test_rocksdb_ribbon(self):
        report = self.check("rocksdb", "ribbon", "ribbon, full", (0.007, 0.011))
        self.assertLess(report[0]["bits_per_key"], 7.5)

    def test_rocksdb_partitions(self):
        self.check("rocksdb", "partitioned", "partitions", (0.006, 0.012))

    def test_rocksdb_prefixes(self):
        report = self.json("--verify", self.database("rocksdb", "prefixes"))
        for table in report:
            self.assertEqual((table["holds"], table["missing"]), ("prefixes", 0))

    def test_filters_of_our_plugins(self):
        for engine in "leveldb", "rocksdb":
            # 36 keys of LevelDB or 10,000 of RocksDB at 10 bits each; `fpr` is what doc/lsm.md says of each family.
            for family, fpr in ("dense", (0.001, 0.002)), ("line", (0.006, 0.014)), ("classic", (0.006, 0.013)):
                report = self.check(engine, "perhaps-" + family, "", fpr)
                for table in report:
                    self.assertRegex(table["filter"], "^(dense|ribbon), " if family == "dense" else "^" + family + ", ")
                    self.assertLess(abs(table["keys"] - table["keys_read"]), 0.02 * table["keys_read"])
                    self.assertAlmostEqual(table["bits_per_key"], 10, delta=1.5)
        report = self.check("rocksdb", "perhaps-dense-partitioned", "dense, ", (0.0009, 0.002))
        self.assertIn("partitions", report[0]["filter"])

    def test_partitions_include_their_index(self):
        for kind in "partitioned", "perhaps-dense-partitioned":
            file = sorted(glob.glob(self.database("rocksdb", kind) + "/*.sst"))[0]
            table = self.json(file)[0]
            info = json.loads(subprocess.check_output([PERHAPS, "info", "--json", file]))[0]
            partitions = sum(entry["size"] for entry in info["entries"])
            self.assertGreater(table["filter_bytes"], partitions + 10 * len(info["entries"]))
            self.assertEqual(table["filter_bytes"], info["bytes"])

    def test_info_and_query_ask_our_filters(self):
        for engine in "leveldb", "rocksdb":
            path = self.database(engine, "perhaps-dense")
            file = sorted(glob.glob(path + "/*.ldb") + glob.glob(path + "/*.sst"))[0]
            self.assertEqual(subprocess.run([PERHAPS, "query", "-q", file, "-e", "key0000005"]).returncode, 0)
            keys = "".join("absent%d\n" % i for i in range(50)).encode()
            denied = subprocess.check_output([PERHAPS, "query", "-v", "-c", file], input=keys)
            self.assertGreater(int(denied), 45)

    def test_without_a_filter(self):
        for engine in "leveldb", "rocksdb":
            table = self.json("--verify", self.database(engine, "none"))[0]
            self.assertEqual((table["missing"], table["absent"]), (0, 0))
            self.assertEqual((table["filter"], table["filter_bytes"], table["fpr"]), ("none", 0, 1))
            self.assertNotIn("fpr_measured", table)

    def test_a_filter_that_cannot_be_read_is_not_verified(self):
        path = self.database("leveldb", "other")
        table = self.json(path)[0]
        self.assertEqual(table["filter"], "none")
        self.assertIn("another policy, sst_peer.Other", " ".join(table["notes"]))
        self.refused("--verify", path, says="not verified; ignored: a filter of another policy, sst_peer.Other")

    def test_other_tables_are_named(self):
        self.refused(self.database("rocksdb", "plain", 2000), says="this is a PlainTable of RocksDB")
        self.refused(self.database("rocksdb", "cuckoo", 2000), says="this is a cuckoo table of RocksDB")

    def test_people_see_aligned_columns_and_a_total(self):
        lines = self.ok(self.database("rocksdb", "bloom"), self.database("leveldb", "bloom")).splitlines()
        self.assertEqual(lines[0].split()[0], "table")
        self.assertEqual(len({line.index(name) for line in lines[1:3] for name in ["rocksdb ", "fastlocal"]}), 2)
        self.assertIn("tables", lines[-2])
        self.assertIn("costs", lines[-1])


class Proofs(Case):
    def test_a_filter_that_denies_a_key_is_found(self):
        for filter_kind, policy in ("bloom", b"leveldb.BuiltinBloomFilter2"), ("perhaps-dense", b"perhaps.packed2"):
            with self.subTest(filter_kind):
                self.denies(filter_kind, policy)

    def denies(self, filter_kind, policy):
        path = sorted(glob.glob(self.database("leveldb", filter_kind, 2000) + "/*.ldb"))[0]
        report = self.json("--verify", path)[0]
        self.assertEqual(report["missing"], 0)
        with open(path, "r+b") as file:
            data = bytearray(file.read())
            name = b"filter." + policy
            at = data.index(name) + len(name)
            offset, at = varint(data, at)
            size, at = varint(data, at)
            data[offset:offset + 16] = bytes(16)
            data[offset + size + 1:offset + size + 5] = masked_crc(data[offset:offset + size + 1])
            file.seek(0)
            file.write(data)
        done = self.run_sst("--verify", path)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("are denied, the first is", done.stderr.decode())
        self.assertEqual(self.run_sst(path).returncode, 0)

    def test_damage_is_an_error_and_the_other_tables_are_shown(self):
        files = sorted(glob.glob(self.database("rocksdb", "bloom", 2000) + "/*.sst"))
        with open(files[0], "r+b") as file:
            file.truncate(os.path.getsize(files[0]) - 1)
        done = self.run_sst("--json", *files)
        self.assertEqual(done.returncode, 2)
        self.assertIn(files[0], done.stderr.decode())
        self.assertEqual([t["file"] for t in json.loads(done.stdout)], files[1:])

    def test_refusals(self):
        self.refused(says="FILE is required")
        self.refused("nothing.sst", says="nothing.sst: cannot open: No such file")
        self.refused(self.folder, says="no table files")
        with open(os.path.join(self.folder, "text"), "w") as file:
            file.write("no table at all, but long enough to have a footer of some kind\n")
        self.refused("text", says="text: not a table of LevelDB or RocksDB")

    def test_help(self):
        self.assertIn("--verify", self.ok("--help"))


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        shift, at = shift + 7, at + 1
        if byte < 128:
            return value, at


def masked_crc(data):
    crc = 0xffffffff
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82f63b78 if crc & 1 else 0)
    crc ^= 0xffffffff
    return (((crc >> 15 | crc << 17) + 0xa282ead8) & 0xffffffff).to_bytes(4, "little")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
