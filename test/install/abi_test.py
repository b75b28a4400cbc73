"""Promise: scripts/check-abi lets a library add functions, and refuses one that lacks a function or changed a type.
Would notice: a check that always passes, or that takes an added function for a break.

abi_test.py SCRIPT COMPILER
"""
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SCRIPT, COMPILER = sys.argv[1:3]
BASE = "struct size { int keys; };\nint first(struct size* s) { return s->keys; }\nint second(int x) { return x; }\n"
ADDED = BASE + "int third(int x) { return x; }\n"
REMOVED = BASE.replace("int second(int x) { return x; }\n", "")
CHANGED = BASE.replace("int keys;", "int shards, keys;")


class Abi(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.base = self.library("base", BASE)

    def library(self, name, text):
        source, library = self.folder / f"{name}.c", self.folder / f"lib{name}.so"
        source.write_text(text)
        subprocess.run([COMPILER, "-g", "-fPIC", "-shared", "-Wl,-soname,libbase.so.0", "-o", library, source],
                       check=True)
        return library

    def compare(self, old, new):
        done = subprocess.run(["bash", SCRIPT, "--compare", old, new], capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr

    def test_an_added_function(self):
        code, text = self.compare(self.base, self.library("added", ADDED))
        self.assertEqual(code, 0, text)
        self.assertIn("added: function int third(int)\n", text)
        self.assertIn("compatible", text)

    def test_a_removed_function(self):
        code, text = self.compare(self.base, self.library("removed", REMOVED))
        self.assertEqual(code, 1, text)
        self.assertIn("second", text)
        self.assertIn("the ABI is broken", text)

    def test_a_changed_struct(self):
        code, text = self.compare(self.base, self.library("changed", CHANGED))
        self.assertEqual(code, 1, text)
        self.assertIn("shards", text)

    def test_the_same_and_none(self):
        code, text = self.compare(self.base, self.base)
        self.assertEqual((code, text), (0, f"{self.base}: compatible with {self.base}\n"))
        self.assertEqual(self.compare(self.folder / "missing.so", self.base)[0], 1)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
