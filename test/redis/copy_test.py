#!/usr/bin/env python3
"""Promises: perhaps push and perhaps pull carry filters between files and a server without a changed byte, a key
appears only whole, and what cannot be done is said. Would notice: bytes that differ, a key left half, an exit code of
0. copy_test.py FOLDER: where the programs are."""
import os
import subprocess
import sys
import tempfile

import harness
from harness import Server

PROGRAMS = sys.argv.pop(1)


def run(*words):
    done = subprocess.run([os.path.join(PROGRAMS, "perhaps"), *words], capture_output=True, text=True, timeout=120)
    return done.returncode, done.stdout + done.stderr


def test_push_and_pull():
    with Server() as server, tempfile.TemporaryDirectory() as folder:
        client = server.client()
        address = f"redis://127.0.0.1:{server.port}"
        keys = os.path.join(folder, "keys")
        with open(keys, "w") as f:
            f.write("".join(f"item:{i}\n" for i in range(5000)))
        for family, name in (("BF", "redisbloom-bf"), ("CF", "redisbloom-cf")):
            for form in ("stream", "dump"):
                file, back = os.path.join(folder, family + form), os.path.join(folder, "back")
                code, text = run("build", "--format", name, "--set", "form=" + form, "--set", "capacity=1000", "-o",
                                 file, keys)
                assert code == 0, text
                key = f"{family}:{form}"
                code, text = run("push", file, f"{address}/{key}")
                assert code == 0, text
                assert all(client(f"{family}.MEXISTS", key, *[f"item:{i}" for i in range(5000)]))
                code, text = run("push", file, f"{address}/{key}")
                assert code == 2 and "exists" in text, text
                code, text = run("push", "--replace", file, f"{address}/{key}")
                assert code == 0, text
                code, text = run("pull", f"{address}/{key}", "-o", back)
                assert code == 0, text
                with open(os.path.join(folder, family + "stream"), "rb") as a, open(back, "rb") as b:
                    assert a.read() == b.read()
        assert sorted(client("KEYS", "*")) == [b"BF:dump", b"BF:stream", b"CF:dump", b"CF:stream"]
        client("SET", "text", "x")
        for words in (("pull", f"{address}/text", "-o", back), ("pull", f"{address}/none", "-o", back + "2"),
                      ("push", keys, f"{address}/new"), ("push", file, "redis://127.0.0.1:1/new"), ("push", file, "x"),
                      ("push", file, address), ("push", file + "none", f"{address}/new"), ("push",)):
            code, text = run(*words)
            assert code == 2 and text, (words, code, text)
        assert not os.path.exists(back + "2") and client("EXISTS", "new") == 0
        assert run("push", "--help")[0] == 0 and run("pull", "--help")[0] == 0


if __name__ == "__main__":
    harness.run(globals())
