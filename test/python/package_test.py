"""Promise: the package is typed, its examples run, it is small, it is one stable-ABI extension that exports its module
and nothing else, and pip installs it without a network. Would notice: an annotation that does not hold, an example that
prints something else, an extension that needs one version of Python, a file that was not installed.

package_test.py SOURCE BUILD
"""
import doctest
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SOURCE, BUILD = Path(sys.argv[1]), Path(sys.argv[2])
EXTENSION = BUILD / "python" / "perhaps" / "_native.abi3.so"

USE = """
import perhaps

seen = perhaps.Filter(keys=10, fpr=0.1, family="cuckoo", key=bytes(16))
seen.add("a")
seen.update([1, b"b"])
both: perhaps.Filter = seen | seen.copy()
both &= seen
found: bool = "a" in both
fate: str = seen.discard("a")
rate: float = seen.fpr
data: bytes = bytes(seen)
other: perhaps.Filter = perhaps.Filter.from_bytes(data)
words: perhaps.Filter = perhaps.build(["a"], family="ribbon", fpr=1e-3, threads=2)
names: dict[str, str] = perhaps.formats()
length: int = len(perhaps.open("x"))
"""
WRONG = "import perhaps\nperhaps.Filter(keys='many')\nperhaps.Filter().add(1.5)\nx: int = perhaps.Filter().fpr\n"


def mypy(*args):
    return subprocess.run([sys.executable, "-m", "mypy", "--strict", "--cache-dir", os.devnull, *map(str, args)],
                          capture_output=True, text=True, env={**os.environ, "MYPYPATH": str(BUILD / "python")})


class Package(unittest.TestCase):
    def test_types(self):
        done = mypy(BUILD / "python" / "perhaps")
        self.assertEqual(done.returncode, 0, done.stdout)
        with tempfile.TemporaryDirectory() as folder:
            use = Path(folder) / "use.py"
            use.write_text(USE)
            done = mypy(use)
            self.assertEqual(done.returncode, 0, done.stdout)
            use.write_text(WRONG)
            self.assertEqual(mypy(use).stdout.count("error:"), 3)

    def test_examples(self):
        import perhaps
        done = doctest.testmod(perhaps)
        self.assertEqual(done.failed, 0)
        self.assertGreater(done.attempted, 10)
        before = os.getcwd()
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            try:
                done = doctest.testfile(str(SOURCE / "doc" / "python.md"), module_relative=False,
                                        optionflags=doctest.ELLIPSIS)
            finally:
                os.chdir(before)
        self.assertEqual(done.failed, 0)
        self.assertGreater(done.attempted, 20)

    def test_extension(self):
        self.assertLessEqual(EXTENSION.stat().st_size, 3_000_000)
        symbols = subprocess.run(["nm", "-D", "--defined-only", EXTENSION], check=True, capture_output=True, text=True)
        names = [line.split()[-1] for line in symbols.stdout.splitlines()]
        self.assertEqual([n for n in names if not n.startswith("_ZNSt") and not n.startswith("_ZTISt")
                          and not n.startswith("_ZTSSt")], ["PyInit__native"], names)

    def test_pip(self):
        with tempfile.TemporaryDirectory() as folder:
            env = {**os.environ, "PERHAPS_BUILD_DIR": str(BUILD), "PIP_NO_INDEX": "1",
                   "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_ROOT_USER_ACTION": "ignore"}
            env.pop("PYTHONPATH")
            done = subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "--target", f"{folder}/installed",
                                   SOURCE / "python"], capture_output=True, text=True, env=env)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            done = subprocess.run([sys.executable, "-c", "import perhaps; f = perhaps.Filter(keys=9); f.add('a');"
                                   "print(perhaps.__file__, 'a' in f)"], capture_output=True, text=True,
                                  env={**os.environ, "PYTHONPATH": f"{folder}/installed"})
            self.assertEqual(done.stdout.split(), [f"{folder}/installed/perhaps/__init__.py", "True"], done.stderr)
            done = subprocess.run([sys.executable, "-m", "pip", "list", "--path", f"{folder}/installed"], check=True,
                                  capture_output=True, text=True)
            self.assertRegex(done.stdout, r"perhaps +[0-9.]+\n")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
