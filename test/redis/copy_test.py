#!/usr/bin/env python3
"""Promises: perhaps push and perhaps pull carry filters between files and a server without a changed byte, a key
appears only whole, and what cannot be done is said. Would notice: bytes that differ, a key left half, an exit code of
0. copy_test.py FOLDER: where the programs are."""
import contextlib
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import unittest

import harness
from harness import Server

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cli"))
import schema

PROGRAMS = sys.argv.pop(1)
PERHAPS = os.path.join(PROGRAMS, "perhaps")


def table_of(path):
    """Kind, parameters and table of a filter file (doc/container.md). What it says about its keys stays at home."""
    with open(path, "rb") as file:
        data = file.read()
    params = struct.unpack_from("<I", data, 56)[0]
    offset, size = struct.unpack_from("<QQ", data, 72 + 8 * params + 8)
    return data[16:32], data[72:72 + 8 * params], data[offset:offset + size]


def run(*words):
    done = subprocess.run([PERHAPS, *words], capture_output=True, text=True, timeout=120)
    return done.returncode, done.stdout + done.stderr


def write_keys(path, keys):
    with open(path, "w") as f:
        f.write("".join(f"{key}\n" for key in keys))


def test_push_and_pull():
    with Server() as server, tempfile.TemporaryDirectory() as folder:
        client = server.client()
        address = f"redis://127.0.0.1:{server.port}"
        keys = os.path.join(folder, "keys")
        write_keys(keys, (f"item:{i}" for i in range(5000)))
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


def make_filter(folder, *words):
    """A file of 5000 keys item:0 .. and the file of keys."""
    file, keys = os.path.join(folder, "filter"), os.path.join(folder, "keys")
    write_keys(keys, (f"item:{i}" for i in range(5000)))
    code, text = run("build", *words, "-o", file, keys)
    assert code == 0, text
    return file, keys


def test_json():
    """push and pull print the fields of the man page. Would notice: another name or type."""
    check = unittest.TestCase()
    with Server() as server, tempfile.TemporaryDirectory() as folder:
        address = f"redis://127.0.0.1:{server.port}"
        for name, words in (("line", ()), ("bf", ("--format", "redisbloom-bf")),
                            ("shards", ("--format", "redisbloom-bf", "--shards", "3"))):
            file, _ = make_filter(folder, *words)
            back = os.path.join(folder, "back")
            for words in (("push", file, f"{address}/{name}"), ("pull", f"{address}/{name}", "-o", back)):
                code, text = run(*words, "--json")
                assert code == 0, text
                schema.check(check, text, schema.shapes_of([PERHAPS, words[0]])[""], words[0])
                said = json.loads(text)
                assert said["shards"] == (3 if name == "shards" else None), said
                assert (said["key"], said["file"]) == (name, file if words[0] == "push" else back), said


def test_info_and_verify_by_address():
    """Both read a filter of a server as they read a file, and leave no copy. Would notice: figures that differ from
    those of the file, a password in the output, a file left behind."""
    with Server() as server, tempfile.TemporaryDirectory() as folder:
        server.client()("CONFIG", "SET", "requirepass", "open sesame")
        address = f"redis://:open sesame@127.0.0.1:{server.port}"
        for name, words in (("line", ()), ("bf", ("--format", "redisbloom-bf")),
                            ("cf", ("--format", "redisbloom-cf")),
                            ("shards", ("--format", "redisbloom-bf", "--shards", "3"))):
            file, keys = make_filter(folder, *words)
            assert run("push", file, f"{address}/{name}")[0] == 0
            copies = os.path.join(folder, "copies")
            os.makedirs(copies, exist_ok=True)
            os.environ["TMPDIR"] = copies
            try:
                code, text = run("info", "--json", f"{address}/{name}")
                assert code == 0, text
                (there,) = json.loads(text)
                (here,) = json.loads(run("info", "--json", file)[1])
                assert there["file"] == f"redis://127.0.0.1:{server.port}/{name}", there
                for field in ("family", "hash", "bits", "fill", "fpr"):
                    assert there[field] == here[field], (name, field, there[field], here[field])
                code, text = run("verify", f"{address}/{name}", "--keys", keys)
                assert code == 0 and "5,000, none missing" in text and "sesame" not in text, text
                write_keys(keys, ("item:0", *(f"never:{i}" for i in range(1000))))
                code, text = run("verify", f"{address}/{name}", "--keys", keys)
                assert code == 1 and "MISSING" in text, text
                code, text = run("info", f"{address}/none")
                assert code == 2 and "no such key" in text, text
            finally:
                del os.environ["TMPDIR"]
            assert os.listdir(copies) == []


def certificate(folder, name, subject, *more):
    """FOLDER/NAME.pem and FOLDER/NAME.key, valid from now on."""
    paths = [os.path.join(folder, name + end) for end in (".pem", ".key")]
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                    "-days", "2", "-out", paths[0], "-keyout", paths[1], "-subj", "/CN=" + subject, *more],
                   check=True, capture_output=True)
    return paths


def test_tls():
    """rediss:// speaks TLS, to a server whose certificate is trusted and of that host, and shows its own if asked.
    Would notice: a connection without TLS, a certificate that is not checked."""
    with tempfile.TemporaryDirectory() as folder:
        pem, key = certificate(folder, "server", "localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1")
        other, other_key = certificate(folder, "other", "elsewhere", "-addext", "subjectAltName=DNS:elsewhere")
        both = os.path.join(folder, "both.pem")  # the server trusts clients of either
        with open(both, "w") as out:
            for path in (pem, other):
                with open(path) as file:
                    out.write(file.read())
        file, keys = make_filter(folder)
        back = os.path.join(folder, "back")

        def options(port, cert, cert_key, clients):
            return ("--tls-port", str(port), "--tls-cert-file", cert, "--tls-key-file", cert_key,
                    "--tls-ca-cert-file", both, "--tls-auth-clients", clients)

        port = harness.free_port()
        with Server(*options(port, pem, key, "no")) as server:
            for host in ("127.0.0.1", "localhost"):
                url = f"rediss://{host}:{port}/{host}"
                trust = ("--tls-ca", pem)
                code, text = run("push", file, url)
                assert code == 2 and "its certificate is refused: self-signed certificate" in text, text
                code, text = run("push", *trust, file, url)
                assert code == 0, text
                code, text = run("pull", *trust, url, "-o", back)
                assert code == 0 and table_of(file) == table_of(back), text
                code, text = run("query", "-c", "--redis", url, *trust, keys)
                assert (code, text) == (0, "5000\n"), text
                code, text = run("info", *trust, url)
                assert code == 0, text
            code, text = run("push", "--tls-ca", keys, file, f"rediss://localhost:{port}/x")
            assert code == 2 and f"--tls-ca {keys}: " in text, text
            # A server that does not speak TLS, and one that speaks nothing else.
            code, text = run("push", *trust, file, f"rediss://localhost:{server.port}/x", "--timeout", "300ms")
            assert code == 2 and text, text
            code, text = run("push", file, f"redis://localhost:{port}/x", "--timeout", "300ms")
            assert code == 2 and text, text
            assert server.client()("EXISTS", "x") == 0
        port = harness.free_port()
        with Server(*options(port, other, other_key, "yes")):
            code, text = run("push", "--tls-ca", other, file, f"rediss://127.0.0.1:{port}/x")
            assert code == 2 and "its certificate is refused: " in text and "mismatch" in text, text
        port = harness.free_port()
        with Server(*options(port, pem, key, "yes")):
            url = f"rediss://localhost:{port}/x"
            code, text = run("push", "--tls-ca", pem, file, url)
            assert code == 2 and text, text
            code, text = run("push", "--tls-ca", pem, "--tls-cert", other, "--tls-key", other_key, file, url)
            assert code == 0, text


def test_tls_cluster():
    """rediss-cluster:// finds the nodes of a cluster that speaks TLS only, and speaks TLS with each of them. Would
    notice: a connection without TLS to a node that was found, a node whose certificate is not checked."""
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        pem, key = certificate(folder, "server", "localhost", "-addext", "subjectAltName=IP:127.0.0.1")
        options = ("--cluster-enabled", "yes", "--tls-cluster", "yes", "--tls-replication", "yes", "--tls-auth-clients",
                   "no", "--tls-cert-file", pem, "--tls-key-file", key, "--tls-ca-cert-file", pem)
        nodes = []
        for first, last in ((0, 8191), (8192, 16383)):
            port = harness.free_port()
            server = stack.enter_context(Server(*options, "--tls-port", str(port)))
            client = server.client()  # the port without TLS is for the test alone
            client("CLUSTER", "ADDSLOTSRANGE", first, last)
            nodes.append((port, server, client))
        bus = nodes[1][0] + 10000
        assert nodes[0][2]("CLUSTER", "MEET", "127.0.0.1", nodes[1][0], bus) == "OK"
        for _, _, client in nodes:
            assert harness.wait_for(lambda: b"cluster_state:ok" in client("CLUSTER", "INFO") and
                                    b"cluster_known_nodes:2" in client("CLUSTER", "INFO"))
        keys = os.path.join(folder, "keys")
        write_keys(keys, (f"item:{i}" for i in range(3000)))
        file, back = os.path.join(folder, "file"), os.path.join(folder, "back")
        code, text = run("build", "--format", "redisbloom-bf", "--shards", "8", "-o", file, keys)
        assert code == 0, text
        url = f"rediss-cluster://127.0.0.1:{nodes[0][0]}/seen"
        code, text = run("push", file, url)
        assert code == 2 and "its certificate is refused: self-signed certificate" in text, text
        trust = ("--tls-ca", pem)
        code, text = run("push", *trust, file, url)
        assert code == 0, text
        assert all(client("DBSIZE") > 0 for _, _, client in nodes)
        assert run("query", "-c", "--redis", url, *trust, keys) == (0, "3000\n")
        code, text = run("pull", *trust, url, "-o", back)
        assert code == 0, text
        assert run("query", "-c", back, keys) == (0, "3000\n")
        # Without TLS nothing is said to it.
        code, text = run("push", file, f"redis-cluster://127.0.0.1:{nodes[0][0]}/other", "--timeout", "1s")
        assert code == 2 and text, text
        assert all(client("KEYS", "other*") == [] for _, _, client in nodes)


def test_a_stopped_server_does_not_hang():
    """A server that is silent for --timeout is an error that names it. Would notice: a wait without end."""
    with Server() as server, tempfile.TemporaryDirectory() as folder:
        file, keys = make_filter(folder)
        address = f"redis://127.0.0.1:{server.port}"
        assert run("push", file, f"{address}/x")[0] == 0
        server.process.send_signal(signal.SIGSTOP)
        try:
            for words in (("push", file, f"{address}/y"), ("pull", f"{address}/x", "-o", os.path.join(folder, "z")),
                          ("query", "--redis", f"{address}/x", keys), ("info", f"{address}/x"),
                          ("verify", f"{address}/x", "--keys", keys)):
                code, text = run(*words, "--timeout", "200ms")
                assert code == 2 and f"127.0.0.1:{server.port}: silent for 0.20 s (--timeout)" in text, (words, text)
        finally:
            server.process.send_signal(signal.SIGCONT)
        assert not os.path.exists(os.path.join(folder, "z"))
        code, text = run("push", file, f"{address}/y", "--timeout", "never")
        assert code == 2 and "--timeout never: must be a time" in text, text


class Between:
    """An address in front of a server's: before the first request that has `word` in it, calls `act`."""

    def __init__(self, server, word, act):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"redis://127.0.0.1:{self.listener.getsockname()[1]}"
        self.server, self.word, self.act = server, word, act
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        here, _ = self.listener.accept()
        there = socket.create_connection(("127.0.0.1", self.server.port))
        threading.Thread(target=self.forward, args=(there, here), daemon=True).start()
        self.forward(here, there, self.word)
        self.listener.close()

    def forward(self, source, to, word=None):
        with source, to:
            while data := source.recv(1 << 20):
                if word and word in data:
                    word = self.act()
                to.sendall(data)


def test_what_happens_meanwhile():
    """Others write to the same keys while a filter is on its way."""
    with Server() as server, tempfile.TemporaryDirectory() as folder:
        client = server.client()
        address = f"redis://127.0.0.1:{server.port}"
        keys, file, back = (os.path.join(folder, name) for name in ("keys", "file", "back"))
        write_keys(keys, (f"item:{i}" for i in range(500)))
        assert run("build", "--format", "redisbloom-bf", "--set", "capacity=1000", "-o", file, keys)[0] == 0
        # A key that comes meanwhile stays.
        between = Between(server, b"RENAME", lambda: client("SET", "key", "x") and None)
        code, text = run("push", file, f"{between.address}/key")
        assert code == 2 and "exists" in text, text
        assert client("GET", "key") == b"x" and client("KEYS", "*") == [b"key"]
        # Two pushes of one key do not mix their pieces: the last one is there.
        between = Between(server, b"EXPIRE", lambda: run("push", "--replace", file, f"{address}/key") and None)
        code, text = run("push", "--replace", file, f"{between.address}/key")
        assert code == 0, text
        assert all(client("BF.MEXISTS", "key", *[f"item:{i}" for i in range(500)])) and client("TTL", "key") == -1
        # One item more is well; a filter that grows is not what the header said.
        for many, expected in ((1, 0), (2000, 2)):
            between = Between(server, b"$1\r\n1\r\n", lambda: client("BF.MADD", "key", *range(many)) and None)
            code, text = run("pull", f"{between.address}/key", "-o", back)
            assert code == expected and os.path.exists(back) == (code == 0), text
            if code == 0:
                assert run("query", "-c", back, keys) == (0, "500\n")
                os.remove(back)
            else:
                assert "changed while it was read" in text, text
        client("CF.ADD", "cf", "x")
        between = Between(server, b"$1\r\n1\r\n", lambda: client("CF.ADD", "cf", "y") and None)
        code, text = run("pull", f"{between.address}/cf", "-o", back)
        assert code == 2 and "changed while it was read" in text and not os.path.exists(back), text


def test_names_with_braces():
    """A cluster of one node, which refuses to rename from slot to slot as one of many does."""
    with Server("--cluster-enabled", "yes") as server, tempfile.TemporaryDirectory() as folder:
        client = server.client()
        client("CLUSTER", "ADDSLOTSRANGE", 0, 16383)
        assert harness.wait_for(lambda: b"cluster_state:ok" in client("CLUSTER", "INFO"))
        keys, file = os.path.join(folder, "keys"), os.path.join(folder, "file")
        write_keys(keys, ["x"])
        assert run("build", "--format", "redisbloom-bf", "-o", file, keys)[0] == 0
        names = ["plain", "{tag}key", "key:{3}", "a{b", "a}b", "a{}b", "}{", "x{}{y}"]
        for name in names:
            code, text = run("push", file, f"redis-cluster://127.0.0.1:{server.port}/{name}")
            assert code == 0 and client("BF.EXISTS", name, "x") == 1, (name, text)
        assert sorted(client("KEYS", "*")) == sorted(name.encode() for name in names)


def test_line_container():
    with Server() as server, tempfile.TemporaryDirectory() as folder:
        client = server.client()
        address = f"redis://127.0.0.1:{server.port}"
        keys, file, back = (os.path.join(folder, name) for name in ("keys", "file", "back"))
        items = [f"item:{i}" for i in range(20000)]
        write_keys(keys, items)
        for fpr in ("0.1", "0.01", "0.000001"):  # fewer probes than lanes, as many, and a second round
            assert run("build", "--fpr", fpr, "-o", file, keys)[0] == 0
            code, text = run("push", "--replace", file, f"{address}/line")
            assert code == 0, text
            assert client("TYPE", "line") == "perhapsLB" and client("TTL", "line") == -1
            assert all(client("BF.MEXISTS", "line", *items))
            assert client("BF.CARD", "line") == 20000 and client("BF.INFO", "line", "CAPACITY") == [20000]
            strangers = os.path.join(folder, "strangers")
            write_keys(strangers, (f"stranger:{i}" for i in range(20000)))
            for words in (("query", "-c", file, strangers), ("query", "-c", "--redis", f"{address}/line", strangers)):
                answer = run(*words)[1]
                here = answer if "--redis" not in words else here
                assert answer == here, (fpr, here, answer)
            code, text = run("pull", f"{address}/line", "-o", back)
            assert code == 0, text
            assert table_of(file) == table_of(back), fpr
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
        assert run("build", "--keys-as", "u64", "-o", file, "-e", "5")[0] == 0
        code, text = run("push", file, f"{address}/new")
        assert code == 2 and "its keys are numbers" in text, text
        assert client("EXISTS", "new") == 0 and not os.path.exists(back + "2")


def test_growing_container():
    """A growing filter travels as a LAYOUT GROWING key, and grows on there. Would notice: another table, another rate,
    an item that is lost, a copy of a filter that changed while it was read."""
    with Server() as server, tempfile.TemporaryDirectory() as folder:
        client = server.client()
        address = f"redis://127.0.0.1:{server.port}"
        keys, file, back = (os.path.join(folder, name) for name in ("keys", "file", "back"))
        items = [f"item:{i}" for i in range(20000)]
        write_keys(keys, items)
        for words in (("--fpr", "0.1"), ("--fpr", "0.003", "--keys-expected", "100"), ("--fpr", "0.000001")):
            assert run("build", "--filter", "growing", *words, "-o", file, keys)[0] == 0
            code, text = run("push", "--replace", file, f"{address}/growing")
            assert code == 0 and f"growing: {file} as growing, " in text, text
            assert client("TYPE", "growing") == "perhapsGF" and client("TTL", "growing") == -1
            assert all(client("BF.MEXISTS", "growing", *items))
            assert abs(client("BF.CARD", "growing") - 20000) < 20000 * 0.1
            for words in (("query", "-c", file, keys), ("query", "-c", "--redis", f"{address}/growing", keys)):
                assert run(*words) == (0, "20000\n"), words
            code, text = run("pull", f"{address}/growing", "-o", back)
            assert code == 0, text
            assert table_of(file) == table_of(back), words
        # It has grown by then, and is still one table: back, and there again.
        more = [f"more:{i}" for i in range(30000)]
        client("BF.MADD", "growing", *more)
        assert run("pull", f"{address}/growing", "-o", back)[0] == 0
        write_keys(keys, items + more)
        assert run("verify", back, "--keys", keys)[0] == 0
        assert run("push", back, f"{address}/again")[0] == 0
        assert client("BF.SCANDUMP", "again", 0) == client("BF.SCANDUMP", "growing", 0)
        assert client("BF.SCANDUMP", "again", 1) == client("BF.SCANDUMP", "growing", 1)
        # Changed in the meantime.
        os.remove(back)
        between = Between(server, b"$1\r\n1\r\n", lambda: client("BF.ADD", "growing", "one more") and None)
        late = Between(server, b"BF.CARD", lambda: client("BF.ADD", "growing", "and one") and None)
        code, text = run("pull", f"{between.address}/growing", "-o", back)
        assert code == 0, text  # before the only piece: a whole filter
        os.remove(back)
        code, text = run("pull", f"{late.address}/growing", "-o", back)
        assert code == 2 and "changed while it was read" in text and not os.path.exists(back), text
        # A rate that a server cannot be told, and one that it could not hash.
        assert run("build", "--filter", "growing", "--seed", "7", "-o", file, keys)[0] == 0
        code, text = run("push", file, f"{address}/new")
        assert code == 2 and "seed 7" in text, text
        assert client("EXISTS", "new") == 0


def test_interrupted():
    """Ctrl-C while a filter is on its way: the old file stays, nothing is beside it, the key is as it was."""
    with Server() as server, tempfile.TemporaryDirectory() as folder:
        client = server.client()
        address = f"redis://127.0.0.1:{server.port}"
        keys, file, back = (os.path.join(folder, name) for name in ("keys", "file", "back"))
        write_keys(keys, ["x"])
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
