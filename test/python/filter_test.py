"""Promise: `import perhaps` is a set that may say perhaps: every key, column and error as documented, the same bytes
and answers as the command line, safe under threads. Would notice: a key that is lost, hash() used somewhere, an item of
a column that is read as another, a wrong type that is taken, an exception of the wrong kind, a crash.

filter_test.py [TOOL]      with the folder of the package on PYTHONPATH
"""
import array
import copy
import ctypes
import gc
import inspect
import itertools
import os
import pickle
import random
import signal
import subprocess
import sys
import tempfile
import threading
import unittest
from pathlib import Path

import numpy

import perhaps

TOOL = sys.argv.pop(1) if len(sys.argv) > 1 and not sys.argv[1].startswith("-") else None
WORDS = [f"key {i}" for i in range(3000)]
OTHERS = [f"other {i}" for i in range(3000)]
# All that remember every key: name, summary, inserts, erases, merges, builds.
FAMILIES = [row for row in perhaps._native.families() if row[0] != "window"]
EVERY = [row[0] for row in FAMILIES]
INSERTS = [row[0] for row in FAMILIES if row[2]]
ERASES = [row[0] for row in FAMILIES if row[3]]


class Mine(perhaps.Filter):
    pass


class Keys(unittest.TestCase):
    def test_kinds_of_keys(self):
        seen = perhaps.Filter(keys=1000, fpr=1e-6)
        kinds = ["text", "täxt €", "\U0001f600", "", b"bytes", b"\xff\x00", 42, -1, 2**64 - 2, -(2**63), 0]
        for key in kinds:
            self.assertNotIn(key, seen)
            seen.add(key)
            self.assertIn(key, seen)
        # str is its UTF-8 bytes; a signed number is sign-extended; a number is not its text or its bytes.
        self.assertIn("täxt €".encode(), seen)
        self.assertIn("bytes", seen)
        self.assertIn(2**64 - 1, seen)
        self.assertNotIn("42", seen)
        self.assertNotIn((42).to_bytes(8, "little"), seen)
        self.assertIn(numpy.int32(42), seen)
        self.assertIn(numpy.uint64(2**64 - 2), seen)
        self.assertIn(numpy.str_("text"), seen)

    def test_other_types_are_refused(self):
        seen = perhaps.Filter(keys=10)
        for wrong in [None, 1.0, True, ("a",), ["a"], bytearray(b"a"), object(), numpy.float64(1), numpy.bool_(True)]:
            with self.assertRaisesRegex(TypeError, "str, bytes or int"):
                wrong in seen
            with self.assertRaises(TypeError):
                seen.add(wrong)
            with self.assertRaises(TypeError):
                seen.update(["a", wrong])
        for wide in [2**64, -(2**63) - 1, 10**30]:
            with self.assertRaisesRegex(OverflowError, "64 bits"):
                wide in seen
        with self.assertRaises(UnicodeEncodeError):
            "\ud800" in seen
        for one in ["abc", b"abc", bytearray(b"abc")]:
            with self.assertRaisesRegex(TypeError, "one key"):
                seen.update(one)
            with self.assertRaisesRegex(TypeError, "one key"):
                seen.contains(one)
        with self.assertRaises(TypeError):
            seen.update(7)
        with self.assertRaises(TypeError):
            iter(seen)

    def test_hash_is_never_used(self):
        class Evil(str):
            def __hash__(self):
                raise AssertionError("hash() was called")

        seen = perhaps.Filter(keys=10)
        seen.add(Evil("a"))
        self.assertIn(Evil("a"), seen)
        seen.update([Evil("b")])
        self.assertEqual(list(seen.contains([Evil("a"), Evil("b")])), [True, True])


class ArrowSchema(ctypes.Structure):
    _fields_ = [("format", ctypes.c_char_p), ("name", ctypes.c_char_p), ("metadata", ctypes.c_char_p),
                ("flags", ctypes.c_int64), ("n_children", ctypes.c_int64), ("children", ctypes.c_void_p),
                ("dictionary", ctypes.c_void_p), ("release", ctypes.c_void_p), ("private_data", ctypes.c_void_p)]


class ArrowArray(ctypes.Structure):
    _fields_ = [("length", ctypes.c_int64), ("null_count", ctypes.c_int64), ("offset", ctypes.c_int64),
                ("n_buffers", ctypes.c_int64), ("n_children", ctypes.c_int64), ("buffers", ctypes.c_void_p),
                ("children", ctypes.c_void_p), ("dictionary", ctypes.c_void_p), ("release", ctypes.c_void_p),
                ("private_data", ctypes.c_void_p)]


class Arrow:
    """A column as Arrow's C data interface has it; pyarrow is not needed to make one."""

    def __init__(self, format, *buffers, length, offset=0, null_count=0, dictionary=None, release=1):
        self.kept = [None if b is None else ctypes.create_string_buffer(b, len(b)) for b in buffers]
        self.buffers = (ctypes.c_void_p * len(buffers))(*(b and ctypes.addressof(b) for b in self.kept))
        self.schema = ArrowSchema(format=format.encode(), dictionary=dictionary, release=release)
        self.array = ArrowArray(length=length, null_count=null_count, offset=offset, n_buffers=len(buffers),
                                buffers=ctypes.addressof(self.buffers), release=release)

    @classmethod
    def texts(cls, format, texts, **more):
        all = [text.encode() for text in texts]
        ends = numpy.cumsum([0] + [len(text) for text in all]).astype("<i4" if format in "uz" else "<i8")
        return cls(format, None, ends.tobytes(), b"".join(all), **{"length": len(all), **more})

    def __len__(self):
        return self.array.length

    def __arrow_c_array__(self, requested_schema=None):
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        return (new(ctypes.addressof(self.schema), b"arrow_schema", None),
                new(ctypes.addressof(self.array), b"arrow_array", None))


class Columns(unittest.TestCase):
    def setUp(self):
        self.seen = perhaps.Filter(keys=10_000, fpr=1e-5)

    def check(self, column, keys):
        """A column is the same as its keys one by one, inserted and queried."""
        self.seen.update(column)
        for key in keys:
            self.assertIn(key, self.seen)
        other = perhaps.Filter(keys=10_000, fpr=1e-5)
        for key in keys:
            other.add(key)
        self.assertEqual(bytes(self.seen), bytes(other))
        answers = other.contains(column)
        self.assertEqual(answers.dtype, numpy.bool_)
        self.assertEqual(len(answers), len(keys))
        self.assertTrue(answers.all())
        answers[:] = False  # it is the caller's

    def test_integers(self):
        for code in ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]:
            limits = numpy.iinfo(code)
            values = [limits.min, limits.max, 0, 1, 77, limits.max - 1]
            self.setUp()
            self.check(numpy.array(values, dtype=code), values)
            self.setUp()
            self.check(numpy.array(values * 2, dtype=code)[::-2], [values[i % 6] for i in range(11, -1, -2)])
        for code in "bBhHiIlLqQ":
            self.setUp()
            self.check(array.array(code, [1, 2, 3]), [1, 2, 3])
        self.setUp()
        self.check(memoryview(array.array("q", [-1, 2, 3]))[1:], [2, 3])
        self.setUp()
        odd = numpy.frombuffer(b"\0" + numpy.arange(9, dtype="u8").tobytes(), dtype="u8", offset=1)
        self.check(odd, list(range(9)))  # not aligned

    def test_texts(self):
        texts = ["", "a", "täxt", "€uro", "\U0001f600", "longer than the others"]
        self.check(numpy.array(texts), texts)
        self.setUp()
        self.check(numpy.array([t.encode() for t in texts]), [t.encode() for t in texts])
        self.setUp()
        self.check(numpy.array(texts, dtype=object), texts)
        self.setUp()
        self.check(texts, texts)
        self.setUp()
        self.check(tuple(texts), texts)
        self.setUp()
        self.check(["a", 1, b"c", 2, 3, "d"], ["a", 1, b"c", 2, 3, "d"])  # mixed, in order
        self.setUp()
        self.seen.update(t for t in texts)
        self.assertTrue(self.seen.contains(iter(texts)).all())

    def test_long_columns_answer_like_single_keys(self):
        self.seen.update(WORDS)
        keys = WORDS + OTHERS
        random.Random(1).shuffle(keys)
        keys *= 4  # several runs
        expected = [key in self.seen for key in keys]
        self.assertEqual(self.seen.contains(keys).tolist(), expected)
        self.assertEqual(self.seen.contains(iter(keys)).tolist(), expected)
        self.assertEqual(self.seen.contains(numpy.array(keys)).tolist(), expected)
        numbers = numpy.random.default_rng(1).integers(0, 2**63, 200_000, dtype="u8")
        large = perhaps.Filter(keys=100_000)
        large.update(numbers[::2])
        answers = large.contains(numbers)
        self.assertTrue(answers[::2].all())
        self.assertEqual(answers[:2000].tolist(), [int(n) in large for n in numbers[:2000]])
        for count in [0, 1, 63, 64, 65, 127, 4096, 4097]:
            self.assertEqual(large.contains(numbers[:count]).tolist(), answers[:count].tolist())
            self.assertEqual(large.contains([int(n) for n in numbers[:count]]).tolist(), answers[:count].tolist())

    def test_wrong_columns(self):
        for wrong in [numpy.zeros(3), numpy.zeros((2, 2), "u8"), numpy.array([True]), numpy.zeros(3, ">u8"),
                      numpy.array(["2020-01-01"], "M8[D]"), numpy.zeros(2, "c16"), numpy.zeros(2, "u8,u8")]:
            with self.assertRaises(TypeError):
                self.seen.contains(wrong)
            with self.assertRaises(TypeError):
                self.seen.update(wrong)
        self.assertEqual(len(self.seen), 0)

    def test_arrow(self):
        for format in ["u", "U", "z", "Z"]:
            seen = perhaps.Filter(keys=10_000)
            seen.update(Arrow.texts(format, WORDS))
            self.assertTrue(seen.contains(WORDS).all())
            column = Arrow.texts(format, ["", "grün", *WORDS[:10], *OTHERS[:10]])
            seen.add("grün")
            self.assertEqual(seen.contains(column).tolist(), [False] + [True] * 11 + [False] * 10)
            column.array.offset, column.array.length = 1, 3
            self.assertEqual(seen.contains(column).tolist(), [True] * 3)
            self.assertEqual(seen.contains(Arrow(format, None, None, None, length=0)).tolist(), [])
            self.assertIn("grün", perhaps.build(column))
        for format, numpys in zip("cCsSiIlL", ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"]):
            numbers = numpy.array([1, 2, -3 if numpys[0] == "i" else 3, 100], numpys)
            column = Arrow(format, None, numbers.tobytes(), length=3, offset=1)
            seen = perhaps.Filter(keys=100)
            seen.update(column)
            self.assertEqual(seen.contains([int(n) for n in numbers]).tolist(), [False, True, True, True])
        valid = Arrow.texts("u", ["a", "b"], null_count=-1)
        valid.kept[0] = ctypes.create_string_buffer(b"\x03", 1)
        valid.buffers[0] = ctypes.addressof(valid.kept[0])
        self.assertEqual(len(self.seen.contains(valid)), 2)
        valid.kept[0][0] = b"\x01"
        released = Arrow.texts("u", ["a"], release=None)
        decreasing = Arrow("u", None, numpy.array([3, 1], "<i4").tobytes(), b"abc", length=1)
        for wrong, why in [(valid, "nulls"), (released, "released"), (decreasing, "offsets")]:
            with self.assertRaisesRegex(ValueError, why):
                self.seen.update(wrong)
        for wrong in [Arrow("g", None, bytes(8), length=1), Arrow("+s", None, length=1),
                      Arrow("i", None, bytes(4), length=1, dictionary=1)]:
            with self.assertRaisesRegex(TypeError, "Arrow"):
                self.seen.update(wrong)
        self.assertEqual(len(self.seen), 0)

    def test_without_numpy(self):
        code = ("import sys; sys.modules['numpy'] = None; import perhaps; f = perhaps.Filter(keys=9); f.add(1);"
                "print(f.contains([1, 2]))")
        out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
        self.assertEqual(out, "b'\\x01\\x00'\n")

    def test_a_list_that_its_own_keys_change(self):
        class Evil:
            def __index__(self):
                keys.clear()
                return 7

        for before in [["a", "b"], [1, 2], [], [f"{i}" * 5 for i in range(200)]]:
            keys = [*before, Evil(), *(f"{i}" * 7 for i in range(200))]
            self.assertEqual(len(self.seen.contains(keys)), len(before) + 1)
            keys = [*before, Evil(), *(f"{i}" * 7 for i in range(200))]
            self.seen.update(keys)
            self.assertTrue(self.seen.contains([*before, 7]).all())

    def test_lists_of_every_kind_of_key(self):
        """Keys of a list are hashed in blocks, which end where the kind of key changes."""
        class Text(str):
            pass

        kinds = [lambda i: f"täxt {i}", lambda i: f"text {i}", lambda i: b"bytes %d" % i, lambda i: i,
                 lambda i: -i - 1, lambda i: 2**64 - 1 - i, lambda i: numpy.int64(i), lambda i: Text(i)]
        order = random.Random(1)
        mixed = [order.choice(kinds)(i) for i in range(10_000)]
        for run in [1, 63, 64, 65, 700]:  # of one kind
            mixed += [kind(i) for kind in kinds for i in range(run)]
        for filter in [perhaps.Filter(keys=20_000, fpr=0.1), perhaps.Filter(keys=20_000, fpr=0.1, key=b"k" * 16)]:
            filter.update(mixed[::2])
            other = filter.copy()
            for key in mixed[::2]:
                other.add(key)
            self.assertEqual(other.fill, filter.fill)
            expected = [key in filter for key in mixed]
            self.assertIn(False, expected)
            for column in [mixed, tuple(mixed), iter(mixed)]:
                self.assertEqual(list(filter.contains(column)), expected)

    def test_a_list_that_changes_meanwhile(self):
        keys = [f"{i}" * 3 for i in range(50_000)]
        self.seen = perhaps.Filter(keys=100_000)
        stop = threading.Event()

        def change():
            while not stop.is_set():
                del keys[len(keys) // 2:]
                keys.extend(f"{i}" * 3 for i in range(25_000))

        thread = threading.Thread(target=change)
        thread.start()
        for _ in range(20):
            self.seen.contains(keys)
            self.seen.update(keys)
        stop.set()
        thread.join()


class Sets(unittest.TestCase):
    def test_every_family(self):
        for family in EVERY:
            with self.subTest(family):
                built = perhaps.build(WORDS, family=family, fpr=0.01, threads=2)
                self.assertTrue(built.contains(WORDS).all())
                self.assertLess(built.contains(OTHERS).mean(), 0.05)
                self.assertEqual(built.family, family)
                self.assertAlmostEqual(len(built), len(WORDS), delta=150)
                again = perhaps.Filter.from_bytes(bytes(built))
                self.assertEqual(bytes(again), bytes(built))
                for other in [pickle.loads(pickle.dumps(built)), copy.copy(built), copy.deepcopy(built), built.copy()]:
                    self.assertIsInstance(other, perhaps.Filter)
                    self.assertEqual(bytes(other), bytes(built))
                    self.assertEqual(other.contains(OTHERS).tolist(), built.contains(OTHERS).tolist())

    def test_numbers_of_it(self):
        seen = perhaps.Filter(keys=10_000, fpr=0.01)
        self.assertEqual((len(seen), seen.fpr, seen.fill, bool(seen)), (0, 0, 0, True))
        seen.update(range(10_000))
        self.assertAlmostEqual(len(seen), 10_000, delta=300)
        self.assertAlmostEqual(seen.fpr, 0.01, delta=0.002)
        self.assertAlmostEqual(seen.fill, 0.5, delta=0.1)
        self.assertEqual(seen.nbytes, seen.describe()["bytes"])
        self.assertFalse(seen.read_only)
        self.assertIn("line", repr(seen))
        self.assertLess(abs(perhaps.size(10_000)["bytes"] - seen.nbytes), 2)
        self.assertIn("guava", perhaps.formats())
        self.assertLess(set(EVERY), set(perhaps.families()))
        self.assertGreater(len(EVERY), 8)

    def test_combined(self):
        a, b = perhaps.Filter(keys=2000), perhaps.Filter(keys=2000)
        a.update(WORDS[:1000])
        b.update(WORDS[500:1500])
        both, common = a | b, a & b
        self.assertTrue(both.contains(WORDS[:1500]).all())
        self.assertTrue(common.contains(WORDS[500:1000]).all())
        self.assertLess(common.contains(WORDS[:500]).mean(), 0.2)
        self.assertFalse(a.contains(WORDS[1000:1500]).all())
        a |= b
        self.assertEqual(bytes(a)[-1000:], bytes(both)[-1000:])
        a |= a
        a &= a
        with self.assertRaisesRegex(perhaps.Mismatch, "lines"):
            a |= perhaps.Filter(keys=90_000)
        with self.assertRaisesRegex(perhaps.Mismatch, "seeds"):
            a |= perhaps.Filter(keys=2000, seed=99)
        with self.assertRaisesRegex(perhaps.Mismatch, "cuckoo"):
            a |= perhaps.Filter(keys=2000, family="cuckoo")
        with self.assertRaises(TypeError):
            a |= {"a"}

    def test_discard(self):
        self.assertGreater(len(ERASES), 2)
        for family in ERASES:
            seen = perhaps.Filter(keys=5000, fpr=1e-4, family=family)
            seen.update(WORDS)
            self.assertEqual({seen.discard(word) for word in WORDS[:1000]}, {"removed"})
            self.assertEqual(seen.discard("never"), "absent")
            self.assertTrue(seen.contains(WORDS[1000:]).all())
            self.assertLess(seen.contains(WORDS[:1000]).mean(), 0.05)
            seen.add(7)
            self.assertEqual(seen.discard(7), "removed")
        with self.assertRaisesRegex(perhaps.Unsupported, "cannot forget"):
            perhaps.Filter(keys=10).discard("a")

    def test_errors(self):
        with self.assertRaisesRegex(perhaps.Full, "full after"):
            perhaps.Filter(keys=100, family="cuckoo").update(range(100_000))
        with self.assertRaisesRegex(perhaps.BadRequest, "fpr"):
            perhaps.Filter(fpr=2)
        with self.assertRaisesRegex(ValueError, "'bloom' is not a family"):
            perhaps.Filter(family="bloom")
        with self.assertRaisesRegex(perhaps.Unsupported, "at once"):
            perhaps.Filter(family="ribbon")
        for wrong in [-1, 2**64, -(10**30)]:
            with self.assertRaisesRegex(perhaps.BadRequest, f"keys: {wrong} is not a number from 0 to {2**64 - 1}"):
                perhaps.Filter(keys=wrong)
        with self.assertRaisesRegex(perhaps.BadRequest, "threads: 4294967296 is not a number from 0 to 4294967295"):
            perhaps.build(["a"], threads=2**32)
        for wrong in [2**64, -1]:
            with self.assertRaisesRegex(perhaps.BadRequest, f"seed: {wrong} is not a number"):
                perhaps.Filter(seed=wrong)
        with self.assertRaises(TypeError):
            perhaps.Filter(keys=1.5)
        with self.assertRaisesRegex(TypeError, "a mapping"):
            perhaps.build(["a"], format="guava", parameters="fpp=0.01")
        with self.assertRaises(MemoryError):
            perhaps.Filter(keys=2**50)
        with self.assertRaisesRegex(perhaps.BadRequest, "16 bytes"):
            perhaps.Filter(key=b"short")
        with self.assertRaisesRegex(ValueError, "16 bytes"):
            perhaps.Filter.from_bytes(bytes(perhaps.Filter(keys=9)), key="x" * 16)
        for use in [perhaps.Filter, perhaps.build, perhaps.size]:
            with self.assertRaisesRegex(perhaps.BadRequest, "fpr"):
                use(keys=[9] if use is perhaps.build else 9, fpr=0)
        with self.assertRaisesRegex(TypeError, "not from both"):
            perhaps.build(["a", 1])
        with self.assertRaisesRegex(TypeError, "not float"):
            perhaps.build(["a", 1, 1.5])
        with self.assertRaisesRegex(perhaps.DamagedFile, "."):
            perhaps.Filter.from_bytes(b"nothing of ours")
        data = bytearray(bytes(perhaps.Filter(keys=100)))
        for i in range(0, len(data), 5):
            data[i] ^= 8
            with self.assertRaises(perhaps.Error):
                perhaps.Filter.from_bytes(data)
            data[i] ^= 8
            with self.assertRaises(perhaps.Error):
                perhaps.Filter.from_bytes(memoryview(data)[:i])
        never = perhaps.Filter.__new__(perhaps.Filter)
        for use in [lambda: 1 in never, lambda: never.add(1), lambda: bytes(never), lambda: len(never),
                    lambda: never.copy(), lambda: perhaps.Filter(keys=9) | never]:
            with self.assertRaisesRegex(perhaps.Error, "never made"):
                use()
        with self.assertRaisesRegex(perhaps.Error, "exists already"):
            perhaps.Filter(keys=9).__init__(keys=9)
        for kind in ["DamagedFile", "Mismatch", "Full", "WrongKey", "BadRequest", "Unsupported", "FileError"]:
            self.assertTrue(issubclass(getattr(perhaps, kind), perhaps.Error))

    def test_keyed(self):
        key = bytes(range(16))
        seen = perhaps.Filter(keys=1000, key=key)
        seen.update(WORDS[:500])
        self.assertTrue(perhaps.Filter.from_bytes(bytes(seen), key=key).contains(WORDS[:500]).all())
        self.assertTrue(seen.copy().contains(WORDS[:500]).all())
        for wrong in [None, bytes(16)]:
            with self.assertRaises(perhaps.WrongKey):
                perhaps.Filter.from_bytes(bytes(seen), key=wrong)
        with self.assertRaisesRegex(perhaps.Error, "not pickled"):
            pickle.dumps(seen)

    def test_empty_and_iterators(self):
        for family in EVERY:
            self.assertNotIn("a", perhaps.build([], family=family))
        self.assertIn(3, perhaps.build(i for i in range(5)))
        self.assertIn(3, perhaps.build(numpy.arange(5)))
        self.assertIn(3, perhaps.build({1, 2, 3}))

        def fails():
            yield "a"
            raise KeyError("mine")

        with self.assertRaisesRegex(KeyError, "mine"):
            perhaps.Filter(keys=9).update(fails())
        with self.assertRaisesRegex(KeyError, "mine"):
            perhaps.build(fails())

    def test_an_interrupt_ends_an_iterator(self):
        signals = getattr(ctypes.CDLL(None), "raise")  # runs no code of Python's, as the iterators below
        for filter in [perhaps.Filter(keys=9), perhaps.build([], format="guava")]:
            for use in [filter.contains] if filter.read_only else [filter.contains, filter.update]:
                rest = itertools.repeat("a", 1_000_000)
                keys = itertools.chain(map(bytes, map(signals, [signal.SIGINT])), rest)
                with self.assertRaises(KeyboardInterrupt):
                    use(keys)
                self.assertGreater(rest.__length_hint__(), 900_000)

    def test_a_class_of_ones_own(self):
        mine = Mine(keys=10)
        mine.add(1)
        self.assertIsInstance(mine.copy(), Mine)
        mine.self, mine.names = mine, ["a"]  # a circle
        for other in [pickle.loads(pickle.dumps(mine)), copy.deepcopy(mine)]:
            self.assertIs(other.self, other)
            self.assertEqual(other.names, ["a"])
            self.assertIsNot(other.names, mine.names)
            self.assertIn(1, other)
        self.assertIs(copy.copy(mine).names, mine.names)
        self.assertIs(mine.copy().names, mine.names)
        del mine, other
        gc.collect()


    def test_signatures(self):
        for name in ["add", "discard", "update", "contains", "copy", "save"]:
            method = getattr(perhaps.Filter, name)
            self.assertEqual(str(inspect.signature(method))[:5], "(self", name)
            self.assertTrue(method.__doc__.strip(), name)
            self.assertNotIn("--", method.__doc__)


class Files(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def test_saved_and_opened(self):
        for family in EVERY:
            built = perhaps.build(WORDS, family=family)
            path = self.folder / f"{family}.perhaps"
            built.save(path)
            for name in [path, str(path), os.fsencode(path)]:
                opened = perhaps.open(name, verify=name is path)
                self.assertTrue(opened.read_only)
                self.assertEqual(bytes(opened), bytes(built))
                self.assertEqual(opened.contains(OTHERS).tolist(), built.contains(OTHERS).tolist())
            with self.assertRaisesRegex(perhaps.Unsupported, "read-only|build another"):
                opened.add("a")
            if family in INSERTS:
                changed = opened.copy()
                changed.add("added")
                self.assertIn("added", changed)
        with self.assertRaisesRegex(perhaps.FileError, "missing"):
            perhaps.open(self.folder / "missing")
        with self.assertRaises(OSError):
            built.save(self.folder / "none" / "file")

    def test_other_systems(self):
        guava = perhaps.build(WORDS, format="guava", fpr=0.001)
        self.assertTrue(guava.contains(WORDS).all())
        self.assertEqual((guava.format, guava.read_only), ("guava", True))
        self.assertEqual(bytes(perhaps.build(WORDS, format="guava", parameters={"fpp": 0.001})), bytes(guava))
        guava.save(self.folder / "seen")
        self.assertTrue(perhaps.open(self.folder / "seen", format="guava").contains(WORDS).all())
        self.assertTrue(pickle.loads(pickle.dumps(guava)).contains(WORDS).all())
        with self.assertRaisesRegex(perhaps.Unsupported, "integers"):
            42 in guava
        with self.assertRaisesRegex(perhaps.Unsupported, "integers"):
            guava.contains([1])
        # What the caller asked for is a bad request; what is wrong in the bytes is damage.
        damaged = b"\x7f" + bytes(guava)[1:]
        with self.assertRaisesRegex(perhaps.DamagedFile, "strategy"):
            perhaps.Filter.from_bytes(damaged, format="guava")
        with self.assertRaisesRegex(perhaps.BadRequest, "nothing"):
            perhaps.Filter.from_bytes(bytes(guava), format="guava", parameters={"nothing": 1})
        for use in [lambda: perhaps.build(WORDS, format="none"),
                    lambda: perhaps.open(self.folder / "seen", format="none"),
                    lambda: perhaps.Filter.from_bytes(bytes(guava), format="none")]:
            with self.assertRaisesRegex(perhaps.BadRequest, "not a format"):
                use()

    @unittest.skipIf(TOOL is None, "run with the tool")
    def test_the_command_line_and_python_agree(self):
        (self.folder / "keys").write_text("".join(word + "\n" for word in WORDS))
        numbers = numpy.arange(5, 2000, 3, dtype="<u8")
        (self.folder / "numbers").write_bytes(numbers.tobytes())
        for family in EVERY:
            theirs = self.folder / f"{family}.cli"
            run = lambda *args: subprocess.run([TOOL, *map(str, args)], check=True, capture_output=True).stdout
            run("build", "--filter", family, "-o", theirs, self.folder / "keys")
            opened = perhaps.open(theirs)
            self.assertTrue(opened.contains(WORDS).all())
            ours = self.folder / f"{family}.py"
            perhaps.build(WORDS, family=family).save(ours)
            (self.folder / "others").write_text("".join(word + "\n" for word in OTHERS))
            printed = run("query", ours, self.folder / "keys").decode().split("\n")[:-1]
            self.assertEqual(printed, WORDS)
            found = subprocess.run([TOOL, "query", ours, self.folder / "others"], capture_output=True, text=True).stdout
            self.assertEqual(found.split("\n")[:-1],
                             [word for word, hit in zip(OTHERS, perhaps.open(ours).contains(OTHERS)) if hit])
            run("build", "--filter", family, "--keys-as", "u64", "-o", theirs, self.folder / "numbers")
            self.assertTrue(perhaps.open(theirs).contains(numbers).all())


    @unittest.skipIf(TOOL is None, "run with the tool")
    def test_files_that_only_the_command_makes(self):
        path = lambda name: self.folder / name
        run = lambda *args: subprocess.run([TOOL, *map(str, args)], check=True, capture_output=True)
        path("keys").write_text("".join(word + "\n" for word in WORDS))
        path("universe").write_text("".join(word + "\n" for word in WORDS + OTHERS))
        path("values").write_text("".join(f"{word}\t{i % 7}\n" for i, word in enumerate(WORDS)))
        numbers = numpy.arange(5, 20000, 3, dtype="u8")
        path("numbers").write_bytes(numbers.astype("<u8").tobytes())
        run("map", "build", "--key", 1, "--value", 2, "--check", 8, "-o", path("map"), path("values"))
        run("exact", "build", "--members", path("keys"), "--universe", path("universe"), "-o", path("exact"))
        run("build", "--filter", "range", "-o", path("texts"), path("keys"))
        run("build", "--filter", "range", "--keys-as", "u64", "-o", path("range"), path("numbers"))
        for name, most in [("map", 60), ("exact", 0), ("texts", 300)]:
            for opened in [perhaps.open(path(name)), perhaps.Filter.from_bytes(path(name).read_bytes()),
                           perhaps.open(path(name)).copy()]:
                self.assertTrue(opened.contains(WORDS).all(), name)
                self.assertIn(WORDS[7], opened)
                self.assertLessEqual(opened.contains(OTHERS).sum(), most, name)
                self.assertTrue(opened.read_only)
                with self.assertRaisesRegex(perhaps.Unsupported, "cannot be changed"):
                    opened.add("key")
        opened = perhaps.open(path("range"))
        self.assertTrue(opened.contains(numbers).all())
        self.assertIn(5, opened)
        mixed = numpy.stack([numbers + 1, numbers]).T.ravel()  # absent and present by turns
        for column in [mixed, [int(n) for n in mixed]]:
            answers = opened.contains(column)
            self.assertTrue(answers[1::2].all())
            self.assertLess(answers[::2].sum(), len(numbers) / 10)
        with self.assertRaisesRegex(perhaps.Unsupported, "are text"):
            5 in perhaps.open(path("texts"))


class Threads(unittest.TestCase):
    def test_queries_beside_inserts(self):
        for family in ["line", "scalable", "quotient"]:
            seen = perhaps.Filter(keys=1000, family=family)  # the last two grow, and move
            seen.update(range(500))
            base = numpy.arange(500, dtype="u8")
            failures = []

            def query():
                for _ in range(100):
                    if not seen.contains(base).all() or 3 not in seen:
                        failures.append("lost")

            def insert(start):
                for i in range(20):
                    seen.update(numpy.arange(start + i * 100, start + i * 100 + 100, dtype="u8"))
                    seen.add(f"{start} {i}")
                    bytes(seen), len(seen)

            threads = [threading.Thread(target=query) for _ in range(3)]
            threads += [threading.Thread(target=insert, args=(10_000 * i,)) for i in range(1, 3)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.assertEqual(failures, [])
            self.assertTrue(seen.contains(numpy.arange(10_000, 12_000, dtype="u8")).all())

    def test_each_merges_the_other(self):
        a, b = perhaps.Filter(keys=100_000), perhaps.Filter(keys=100_000)

        def merge(into, other):
            for _ in range(200):
                into |= other

        threads = [threading.Thread(target=merge, args=pair) for pair in [(a, b), (b, a), (a, a)]]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def test_other_threads_run_during_a_batch(self):
        # The interpreter switches by itself only every 1000 s: the thread runs because a batch lets it.
        seen = perhaps.Filter(keys=100)
        column = numpy.arange(1_000_000, dtype="u8")
        before = sys.getswitchinterval()
        self.addCleanup(sys.setswitchinterval, before)
        for batch in [lambda: seen.contains(column), lambda: seen.update(column)]:
            gate, ran = threading.Lock(), []
            gate.acquire()
            thread = threading.Thread(target=lambda: (gate.acquire(), ran.append(1)))
            thread.start()
            sys.setswitchinterval(1000)
            gate.release()
            for _ in range(1000):
                batch()
                if ran:
                    break
            self.assertTrue(ran)
            sys.setswitchinterval(before)
            thread.join()


if __name__ == "__main__":
    unittest.main()
