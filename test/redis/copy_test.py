#!/usr/bin/env python3
"""Promises: perhaps push and perhaps pull carry filters between files and a server without a changed byte, a key
appears only whole, and what cannot be done is said. Would notice: bytes that differ, a key left half, an exit code of
0. copy_test.py FOLDER: where the programs are."""
import os
import signal
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


def test_line_container():
    with Server() as server, tempfile.TemporaryDirectory() as folder:
        client = server.client()
        address = f"redis://127.0.0.1:{server.port}"
        keys, file, back = (os.path.join(folder, name) for name in ("keys", "file", "back"))
        items = [f"item:{i}" for i in range(20000)]
        with open(keys, "w") as f:
            f.write("".join(item + "\n" for item in items))
        for fpr in ("0.1", "0.01", "0.000001"):  # fewer probes than lanes, as many, and a second round
            assert run("build", "--fpr", fpr, "-o", file, keys)[0] == 0
            code, text = run("push", "--replace", file, f"{address}/line")
            assert code == 0, text
            assert client("TYPE", "line") == "perhapsLB" and client("TTL", "line") == -1
            assert all(client("BF.MEXISTS", "line", *items))
            assert client("BF.CARD", "line") == 20000 and client("BF.INFO", "line", "CAPACITY") == [20000]
            strangers = os.path.join(folder, "strangers")
            with open(strangers, "w") as f:
                f.write("".join(f"stranger:{i}\n" for i in range(20000)))
            for words in (("query", "-c", file, strangers), ("query", "-c", "--redis", f"{address}/line", strangers)):
                answer = run(*words)[1]
                here = answer if "--redis" not in words else here
                assert answer == here, (fpr, here, answer)
            code, text = run("pull", f"{address}/line", "-o", back)
            assert code == 0, text
            with open(file, "rb") as a, open(back, "rb") as b:
                assert a.read() == b.read(), fpr
        # A server's own, and the way back again.
        assert client("BF.RESERVE", "own", "0.01", "1000", "LAYOUT", "LINE") == "OK"
        client("BF.MADD", "own", *items[:500])
        assert run("pull", f"{address}/own", "-o", back)[0] == 0
        assert run("query", "-c", back, keys)[0] == 0
        assert run("push", back, f"{address}/again")[0] == 0
        assert client("BF.SCANDUMP", "again", 1) == client("BF.SCANDUMP", "own", 1)
        # Has grown: it is no longer one table.
        client("BF.MADD", "line", *range(20000))
        code, text = run("pull", f"{address}/line", "-o", back + "2")
        assert code == 2 and "has grown to 2 links" in text, text
        # Hashed otherwise, or laid out otherwise.
        secret = os.path.join(folder, "secret")
        with open(secret, "wb") as f:
            f.write(b"0123456789abcdef")
        os.chmod(secret, 0o600)
        for words, why in ((("--seed", "7"), "seed 7"), (("--keyed", secret), "secret"),
                           (("--filter", "block"), "a block filter"), (("--filter", "ribbon"), "a ribbon filter")):
            assert run("build", *words, "-o", file, keys)[0] == 0
            code, text = run("push", file, f"{address}/new")
            assert code == 2 and why in text, (words, text)
        assert client("EXISTS", "new") == 0 and not os.path.exists(back + "2")


def test_interrupted():
    """Ctrl-C while a filter is on its way: the old file stays, nothing is beside it, the key is as it was."""
    with Server() as server, tempfile.TemporaryDirectory() as folder:
        client = server.client()
        address = f"redis://127.0.0.1:{server.port}"
        keys, file, back = (os.path.join(folder, name) for name in ("keys", "file", "back"))
        with open(keys, "w") as f:
            f.write("x\n")
        with open(back, "w") as f:
            f.write("old")
        assert run("build", "--format", "redisbloom-bf", "-o", file, keys)[0] == 0
        assert run("push", file, f"{address}/key")[0] == 0
        # A server that is stopped answers nothing; the program waits for it when the signal comes.
        os.kill(server.process.pid, signal.SIGSTOP)
        try:
            for words in (("pull", f"{address}/key", "-o", back), ("push", "--replace", file, f"{address}/key"),
                          ("query", "--redis", f"{address}/key", keys)):
                process = subprocess.Popen([os.path.join(PROGRAMS, "perhaps"), *words], stdout=subprocess.PIPE,
                                           stderr=subprocess.PIPE)
                assert harness.wait_for(lambda: sleeping(process.pid))
                process.send_signal(signal.SIGINT)
                assert process.wait(30) == 128 + signal.SIGINT, words
                process.stdout.close()
                process.stderr.close()
        finally:
            os.kill(server.process.pid, signal.SIGCONT)
        with open(back) as f:
            assert f.read() == "old"
        assert sorted(os.listdir(folder)) == ["back", "file", "keys"]
        assert client("BF.EXISTS", "key", "x") == 1
        assert client("KEYS", "*") == [b"key"]


def sleeping(pid):
    """Its handlers are in place, and it waits: in state S with a socket open."""
    with open(f"/proc/{pid}/stat") as f:
        state = f.read().rsplit(")", 1)[1].split()[0]
    sockets = [os.readlink(os.path.join(f"/proc/{pid}/fd", name)) for name in os.listdir(f"/proc/{pid}/fd")]
    return state == "S" and any(name.startswith("socket:") for name in sockets)


def test_examples_of_the_help():
    with Server() as server, tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "keys.txt"), "w") as f:
            f.write("".join(f"item:{i}\n" for i in range(5000)))
        for words in (("-o", "seen.bf"), ("--shards", "64", "-o", "seen.shards")):
            done = subprocess.run([os.path.join(PROGRAMS, "perhaps"), "build", "--format", "redisbloom-bf", *words,
                                   "keys.txt"], cwd=folder, capture_output=True)
            assert done.returncode == 0, done.stderr
        environment = {**os.environ, "PATH": PROGRAMS + ":" + os.environ["PATH"]}
        for command in ("push", "pull"):
            for example in run(command, "--help")[1].split("Examples:\n")[1].strip().splitlines():
                example = example.replace("localhost", f"127.0.0.1:{server.port}").replace("-cluster", "")
                done = subprocess.run(["bash", "-c", example], cwd=folder, env=environment, capture_output=True)
                assert done.returncode == 0, (example, done.stderr)


if __name__ == "__main__":
    harness.run(globals())
