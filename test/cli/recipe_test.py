"""A filter knows how its keys were made: a query that would make them in another way is refused, not answered no.

    recipe_test.py PERHAPS [unittest arguments]

Files are in a folder that is removed afterwards.
"""
import bz2
import hashlib
import io
import json
import lzma
import os
import pty
import re
import struct
import subprocess
import sys
import tarfile
import unittest
import zipfile

import cli_test
from cli_test import Case, EXACT, lines


class WrongWays(Case):
    """Each wrong way to ask is put right by the recipe, refused with both recipes, or warned of. Would notice: a
    recipe that is not stored, not applied, or applied to what is no record."""

    def build(self, *args, stdin):
        self.ok("build", "-o", "f", *EXACT, *args, stdin=stdin)

    def found(self, *args, stdin=b""):
        self.ok("query", "-q", "f", *args, stdin=stdin)

    def contradicts(self, *args, says, command="query", stdin=b""):
        before = self.read("f")
        self.refused(command, "f", *args, stdin=stdin, says=["f: its keys were made by the recipe", "--recipe given",
                                                           *says])
        self.assertEqual(self.read("f"), before)

    def test_1_numbers_without_saying_so(self):
        self.build("--keys-as", "u64", stdin=struct.pack("<3Q", 5, 6, 7))
        self.found("-e", "5")
        self.found(stdin=struct.pack("<Q", 6))
        self.assertEqual(self.ok("query", "f", "-e", "8", code=1), b"")

    def test_2_numbers_as_text(self):
        self.build("--keys-as", "u64", stdin=struct.pack("<3Q", 5, 6, 7))
        self.contradicts("--keys-as", "lines", "-e", "5", says=["'u64'", "'lines'"])
        self.build(stdin=b"5\n")
        self.contradicts("--keys-as", "u64", "-e", "5", says=["'lines'", "'u64'"])

    def test_3_another_case(self):
        digests = [hashlib.sha1(b"%d" % i).hexdigest() for i in range(9)]
        self.build("--field", "1", "--delimiter", ":", "--lower",
                   stdin=lines(b"%s:%d" % (d.upper().encode(), i) for i, d in enumerate(digests)))
        for digest in digests:
            self.found("-e", digest)
            self.found("-e", digest.upper())
        self.found(stdin=digests[0].encode() + b"\n")        # a list of its own
        self.found(stdin=digests[0].upper().encode() + b":7\n")

    def test_4_lower_case_of_what_was_not(self):
        self.build(stdin=b"Bob\n")
        self.contradicts("--lower", "-e", "Bob", says=["'lines'", "'lines lower'"])
        self.contradicts("-i", "-e", "Bob", says=["'lines lower'"])
        self.ok("query", "-q", "f", "--recipe", "given", "--lower", "-e", "Bob", code=1)

    def test_5_hex_without_saying_so(self):
        self.build("--keys-as", "hex", stdin=b"00ff\nAbCd\n")
        self.found("-e", "00FF")
        self.found(stdin=b"abcd\n")
        self.contradicts("--keys-as", "lines", "-e", "00ff", says=["'lines hex'", "'lines'"])

    def test_6_a_key_of_a_field(self):
        self.build("--field", "2", "--delimiter", ",", stdin=b"1,ann,x\n2,bob,y\n")
        self.found("-e", "bob")
        self.found(stdin=b"9,ann,z\n")
        self.refused("query", "f", "-", stdin=b"ann\n", says="standard input:1: there is 1 field")
        self.found("--field", "1", stdin=b"ann\tz\n")  # records of another kind are said
        self.found("--keys-as", "lines", stdin=b"ann\n")

    def test_7_line_ends_of_another_system(self):
        self.build(stdin=b"ann\nbob\n")
        done = self.run_perhaps("query", "f", stdin=b"ann\r\nbob\r\n")
        self.assertEqual(done.stdout, b"")
        self.assertIn(b"lines end in CR LF, and the CR is a part of each key: --recipe given --trim", done.stderr)
        self.found("--recipe", "given", "--trim", stdin=b"ann\r\n")
        self.build("--trim", stdin=b"ann\r\nbob\n")
        done = self.run_perhaps("query", "f", stdin=b"ann\r\nbob\r\n")
        self.assertEqual((done.stdout, done.stderr), (b"ann\r\nbob\r\n", b""))

    def test_8_a_byte_order_mark(self):
        done = self.run_perhaps("build", "-o", "f", stdin=b"\xef\xbb\xbfann\nbob\n")
        self.assertIn("begins with a byte order mark, which is a part of its first key: --trim", done.stderr.decode())
        done = self.run_perhaps("build", "--trim", "-o", "f", stdin=b"\xef\xbb\xbfann\nbob\n")
        self.assertEqual(done.stderr, b"")
        self.found("-e", "ann")
        both = self.run_perhaps("build", "-o", "g", self.write("a", b"\xef\xbb\xbfx\r\n" * 9),
                                self.write("b", b"\xef\xbb\xbfx\r\n"))
        self.assertEqual(both.stderr.count(b"\n"), 2)  # each said once

    def test_9_what_is_added_another_way(self):
        self.build("--lower", stdin=b"Ann\n")
        self.ok("add", "f", "-e", "BOB")
        self.found("-e", "bob")
        self.contradicts("--trim", "-e", "x", command="add", says=["'lines lower'", "'lines trim'"])
        self.contradicts("--keys-as", "hex", "-e", "00", command="add", says=["'lines lower'", "'lines hex'"])
        self.ok("build", "-o", "f", "--filter", "cuckoo", "--lower", "-e", "Ann", "-e", "Bob")
        self.ok("remove", "f", "-e", "ANN")
        self.ok("query", "-q", "f", "-e", "ann", code=1)
        self.contradicts("--trim", "-e", "bob", command="remove", says=["'lines trim'"])

    def test_10_filters_of_two_recipes(self):
        for name, recipe in [("a", []), ("b", ["--lower"]), ("c", ["--lower", "--field", "1"])]:
            self.ok("build", "-o", name, "--keys-expected", "9", *recipe, stdin=b"X\n")
        self.refused("merge", "-o", "m", "a", "b", says=["a and b", "'lines' and 'lines lower'", "--recipe given"])
        self.ok("merge", "-o", "m", "b", "c")  # fields are of the input
        self.assertEqual(self.info("m")["about"]["recipe"], "lines lower")
        self.ok("merge", "-o", "m", "--recipe", "given", "a", "b")

    def test_11_digests(self):
        self.build("--hash", "sha1", stdin=b"hunter2\nletmein\n")
        self.found("-e", "hunter2")
        self.found("--hash", "sha1", "-e", "hunter2")
        self.contradicts("--hash", "md5", "-e", "hunter2", says=["'lines hash=sha1'", "'lines hash=md5'"])
        self.found("--recipe", "given", "-e", hashlib.sha1(b"letmein").hexdigest())
        # A filter of digests can be asked for the digest of a text; one of texts cannot.
        self.build("--keys-as", "hex", "--field", "1", "--delimiter", ":",
                   stdin=hashlib.sha1(b"hunter2").hexdigest().upper().encode() + b":17\n")
        self.found("--hash", "sha1", "-e", "hunter2")
        self.found("-e", hashlib.sha1(b"hunter2").hexdigest())
        self.ok("query", "-q", "f", "--hash", "sha1", "-e", "hunter3", code=1)
        self.build(stdin=b"hunter2\n")
        self.contradicts("--hash", "sha1", "-e", "hunter2", says=["'lines'", "filter of digests"])

    def test_12_verify_and_dedup(self):
        self.build("--lower", stdin=b"Ann\nBob\n")
        self.write("keys", b"ANN\nBOB\n")
        self.assertEqual(self.json("verify", "f", "--keys", "keys")["false_negatives"], 0)
        self.refused("verify", "f", "--keys", "keys", "--trim", says=["'lines lower'", "'lines trim'"])
        done = self.run_perhaps("dedup", "--seen", "f", stdin=b"ann\nCid\ncid\n")
        self.assertEqual(done.stdout, b"Cid\n")
        self.refused("dedup", "--seen", "f", "--trim", says=["'lines lower'", "'lines trim'"])

    def warned(self, *args, says, stdin=b"", code=0):
        done = self.run_perhaps(*args, stdin=stdin)
        self.assertEqual(done.returncode, code, done.stderr)
        message = done.stderr.decode()
        self.assertIn("warning: " + says, message)
        self.assertEqual(message.count("\n"), 1, message)
        return done.stdout

    def test_13_records_that_end_otherwise(self):
        self.build("-0", stdin=b"ann\0bob\0")
        self.found("-e", "ann")
        self.found(stdin=b"bob\0")
        self.found("--keys-as", "lines", stdin=b"ann\n")
        for args, stdin in [(["in"], b""), ([], b"ann\nbob\n")]:
            self.write("in", b"ann\nbob\n")
            self.warned("query", "f", *args, stdin=stdin, code=1,
                        says="%s: has no NUL, so all of it is one key" % (args or ["standard input"])[0])
        self.warned("build", "-o", "g", stdin=b"ann\0bob\0", says="standard input: has NUL bytes")

    def test_14_characters_of_two_bytes(self):
        for order in ["utf-16-le", "utf-16-be"]:
            text = "\ufeffann\r\nbob\r\n".encode(order)
            self.warned("build", "-o", "g", stdin=text, says="standard input: is UTF-16")
            self.build(stdin=b"ann\n")
            self.warned("query", "f", stdin=text, code=1, says="standard input: is UTF-16")
            self.warned("build", "-o", "g", "--csv", "--no-header", "--field", "1", stdin=text,
                        says="standard input: is UTF-16")

    def test_15_one_field_of_two(self):
        self.build("--field", "1,3", "--delimiter", ",", stdin=b"ann,1,x\n")
        self.found("-e", "ann\tx")
        for key in ["ann", "ann,x"]:
            self.warned("query", "f", "-e", key, code=1,
                        says="-e %s: the keys of this filter are 2 fields with tabs between them" % key)

    def test_16_digests_in_another_form(self):
        upper = hashlib.sha1(b"hunter2").hexdigest().upper()
        rows = (upper + ":17\n").encode()
        self.warned("build", "-o", "f", stdin=rows,
                    says="standard input: begins with a digest, a colon and more, and the whole line is the key: "
                         "--field 1 --delimiter : takes the digest")
        by_field = ["--field", "1", "--delimiter", ":"]
        other_case = "in upper case: in lower case, as sha1sum prints it, it is another key"
        said = "standard input: begins with a digest " + other_case
        self.warned("build", "-o", "f", *by_field, stdin=rows, says=said)
        self.warned("build", "-o", "g", stdin=upper.encode(), says=said)
        # Asked in upper case, of a filter in lower case.
        self.build(stdin=upper.lower().encode())
        self.warned("query", "f", "-e", upper, code=1, says="-e %s: a digest " % upper + other_case)
        self.warned("query", "f", stdin=upper.encode(), code=1, says=said)
        # Hashed twice.
        self.build("--hash", "sha1", stdin=b"hunter2\n")
        twice = "and the sha1 of these digits is the key, not the digest itself (--recipe given takes it as it is)"
        self.warned("query", "f", "-e", upper.lower(), code=1, says="-e %s: a digest, %s" % (upper.lower(), twice))
        self.warned("query", "f", stdin=upper.encode(), code=1, says="standard input: begins with a digest, " + twice)
        # What is right is silent.
        for recipe in [["--keys-as", "hex"], ["--lower"]]:
            done = self.run_perhaps("build", "-o", "f", *recipe, *by_field, stdin=rows)
            self.assertEqual((done.returncode, done.stderr), (0, b""))
            self.found("-e", upper)
            self.found("-e", upper.lower())
        for text in [b"DEADBEEF\n", upper.encode() + b"0\n", upper.lower().encode() + b"\n"]:
            self.assertEqual(self.run_perhaps("build", "-o", "f", stdin=text).stderr, b"", text)
        for args in [["dedup", "-q"], ["dedup", "-q", "--exact"], ["advise", "--sample", "1000"]]:
            self.assertEqual(self.run_perhaps(*args, stdin=rows).stderr, b"", args)
        # The advice is one that can be followed.
        plain = " (a command without --hash takes it as it is)"
        self.warned("build", "-o", "g", "--hash", "sha1", stdin=upper.lower().encode(),
                    says="standard input: begins with a digest, and the sha1 of these digits is the key, not the "
                         "digest itself" + plain)
        self.build("--keys-as", "hex", stdin=upper.encode())
        done = self.run_perhaps("query", "--hash", "sha1", "f", "-e", upper)
        self.assertIn(plain, done.stderr.decode())
        self.found("-e", upper)

    def test_17_archives(self):
        tar = io.BytesIO()
        with tarfile.open(fileobj=tar, mode="w") as archive:
            archive.addfile(tarfile.TarInfo("list.txt"), io.BytesIO())
        zipped = io.BytesIO()
        with zipfile.ZipFile(zipped, "w") as archive:
            archive.writestr("list.txt", "ann\n")
        for data, says in [(zipped.getvalue(), "the zip format is not read"), (tar.getvalue(), "a tar archive is not"),
                           (b"7z\xbc\xaf\x27\x1c\0\4", "the 7z format"),
                           (b"\x1f\x9d\x90a", "the compress (.Z) format"), (b"Rar!\x1a\x07\0", "the RAR format"),
                           (lzma.compress(tar.getvalue()), "a tar archive is")]:
            self.refused("build", "-o", "x", self.write("list", data), says="list: " + says)
            self.refused("build", "-o", "x", "-", stdin=data, says="standard input: " + says)
            for records in [["--csv", "--no-header"], ["--csv"], ["--json-lines"]]:
                self.refused("build", "-o", "x", *records, "--field", "1", "list", says="list: " + says)
        self.build("--keys-as", "u64", stdin=b"PK\3\4PK\3\4")

    def test_18_another_system(self):
        text = self.text("build", "--format", "guava", "--lower", "-o", "g", stdin=b"Ann\n")
        self.assertIn("recipe     lines lower: not stored in this format; query with the same options", text)
        self.assertNotIn("recipe", self.text("build", "--format", "guava", "-o", "g", stdin=b"Ann\n"))


class About(Case):
    """What a file says about itself survives every command, and costs no reproducibility."""

    def test_info(self):
        os.environ["SOURCE_DATE_EPOCH"] = "86400"
        self.addCleanup(os.environ.update, {"SOURCE_DATE_EPOCH": "0"})
        self.write("keys", b"id,mail\n1,A@x\n")
        self.ok("build", "-o", "f", "--csv", "--field", "mail", "--lower", "--note", "list of Monday", "keys")
        d = self.info("f")["about"]
        version = self.text("--version").strip()
        self.assertEqual((d["recipe"], d["note"], d["created"], d["tool"]),
                         ("csv field=mail lower", "list of Monday", "1970-01-02T00:00:00Z", version))
        text = self.text("info", "f")
        for part in ["recipe     csv field=mail lower", "note       list of Monday", "created    1970-01-02T00:00:00Z"]:
            self.assertIn(part, text)
        self.ok("add", "f", "-e", "b@x")
        self.assertEqual(self.info("f")["about"]["note"], "list of Monday")
        self.ok("build", "-o", "large", "--max-bytes", "8Ki", "--lower", "--note", "x", "-e", "b@x")
        self.ok("fold", "-o", "half", "large")
        self.assertEqual(self.info("half")["about"], self.info("large")["about"])
        self.ok("build", "--on-disk", "-o", "g", "--csv", "--field", "mail", "--lower", "keys")
        self.assertEqual(self.info("g")["about"]["recipe"], "csv field=mail lower")
        before = self.read("g")
        self.ok("build", "-o", "g", "--csv", "--field", "mail", "--lower", "keys")
        self.assertEqual(self.read("g"), before)
        self.refused("build", "-o", "x", "--note", "a\nb", "keys", says="--note: must be one line")

    def test_none(self):
        self.ok("build", "--format", "guava", "-o", "f", stdin=b"a\n")
        self.assertNotIn("about", self.info("f"))
        self.assertIn("this format stores none", self.text("info", "f"))
        self.ok("query", "f", "--lower", "-e", "A")


class Packed(Case):
    """Lists packed by any of the usual programs are read as they are, in files and in pipes; damage is an error."""

    @staticmethod
    def lz4(data):
        return subprocess.run(["lz4", "-c"], input=data, capture_output=True, check=True).stdout

    def test_packed(self):
        text = lines(b"key %d" % i for i in range(50_000))
        self.ok("build", "-o", "want", stdin=text)
        want = self.info("want")
        packers = {"xz": lzma.compress, "bz2": bz2.compress, "lz4": self.lz4}
        for name, pack in packers.items():
            with self.subTest(name):
                packed = pack(text)
                twice = pack(text[:100_000]) + pack(text[100_000:])
                for data in [packed, twice]:
                    self.write("keys." + name, data)
                    for args, stdin in [(["keys." + name], b""), ([], data)]:
                        self.ok("build", "-o", "got", *args, stdin=stdin)
                        got = self.info("got")
                        self.assertEqual((got["keys"], got["fill"]), (want["keys"], want["fill"]))
                word = {"bz2": "bzip2"}.get(name, name)
                self.refused("build", "-o", "x", "-", stdin=packed[: len(packed) // 2],
                             says="standard input: the %s data is cut short" % word)
                bad = bytearray(packed)
                for i in range(len(bad) // 2, len(bad) // 2 + 64):
                    bad[i] ^= 0x55
                self.refused("build", "-o", "x", "-", stdin=bytes(bad), says="%s data" % word)
                self.ok("build", "--allow-empty", "-o", "none", "-", stdin=pack(b""))
                self.assertEqual(self.info("none")["keys"], 0)

    def test_text_that_begins_alike(self):
        """Short lines are not waited for, and are not taken for packed data."""
        self.ok("build", "-o", "f", *EXACT, stdin=b"BZh9\nB\n(\nP\n")
        with subprocess.Popen([cli_test.PERHAPS, "query", "--answers", self.path("f")], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE) as process:
            for key in [b"B", b"(", b"BZh9", b"P"]:
                process.stdin.write(key + b"\n")
                process.stdin.flush()
                self.assertEqual(process.stdout.readline(), b"perhaps\t" + key + b"\n")
            process.stdin.close()


class Prompt(Case):
    """A password is typed without being shown, and its answer does not repeat it."""

    def test_prompt(self):
        self.ok("build", "-o", "f", *EXACT, "--keys-as", "hex", stdin=hashlib.sha1(b"hunter2").hexdigest().encode())
        for typed, answer in [(b"hunter2", b"perhaps"), (b"correct horse", b"no")]:
            pid, terminal = pty.fork()
            if pid == 0:
                os.execv(cli_test.PERHAPS, ["perhaps", "query", "--hash", "sha1", "--prompt", self.path("f")])
            seen = b""
            while b"key: " not in seen:
                seen += os.read(terminal, 100)
            os.write(terminal, typed + b"\n")
            try:
                while True:
                    seen += os.read(terminal, 100)
            except OSError:
                pass
            status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
            self.assertEqual(status, 0 if answer == b"perhaps" else 1)
            self.assertIn(answer, seen)
            self.assertNotIn(typed, seen)
        done = subprocess.run(["setsid", cli_test.PERHAPS, "query", "--prompt", self.path("f")], capture_output=True)
        self.assertEqual(done.returncode, 2)
        self.assertIn(b"--prompt: there is no terminal", done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[2:])
