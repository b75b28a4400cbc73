#!/usr/bin/env python3
"""Promises: from the same commands the server holds the very bytes that RedisBloom held (test/golden/formats), loads
RedisBloom's dumps, and gives them back as they were. Would notice: the first byte that differs."""
import json
import os
import struct

import harness
from harness import Error, Server, dump

GOLDEN = os.environ.get("PERHAPS_GOLDEN") or os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "golden",
                                                          "formats")


def keys_of(path):
    with open(os.path.join(GOLDEN, path), "rb") as f:
        data = f.read()
    count, at, keys = struct.unpack_from("<I", data)[0], 4, []
    for _ in range(count):
        size = struct.unpack_from("<I", data, at)[0]
        keys.append(data[at + 4:at + 4 + size])
        at += 4 + size
    return keys


def frames_of(data):
    at, frames = 0, []
    while at < len(data):
        iterator, size = struct.unpack_from("<QQ", data, at)
        frames.append((iterator, data[at + 16:at + 16 + size]))
        at += 16 + size
    return frames


def test_golden():
    with open(os.path.join(GOLDEN, "manifest.json")) as f:
        cases = [c for c in json.load(f)["cases"] if c["system"] == "redisbloom"]
    assert len(cases) >= 10, "the goldens are not here"
    with Server() as server:
        client = server.client()
        for case in cases:
            client("FLUSHALL", "SYNC")
            params, keys = case["params"], keys_of(case["keys"])
            with open(os.path.join(GOLDEN, case["filter"]), "rb") as f:
                golden = frames_of(f.read())
            bloom = params["kind"].startswith("bf")
            family = "BF" if bloom else "CF"
            if bloom:
                scaling = ("NONSCALING",) if params["nonscaling"] else ("EXPANSION", params["expansion"])
                # BF.RESERVE takes no expansion for what does not scale; BF.INSERT takes it, and an item.
                if params["nonscaling"] and params["expansion"] != 2:
                    client("BF.INSERT", "k", "CAPACITY", params["capacity"], "ERROR", params["error_rate"],
                           "NONSCALING", "EXPANSION", params["expansion"], "ITEMS", keys[0])
                else:
                    assert client("BF.RESERVE", "k", params["error_rate"], params["capacity"], *scaling) == "OK"
                for i in range(0, len(keys), 97):
                    answers = client("BF.MADD", "k", *keys[i:i + 97])
                    if isinstance(answers[-1], Error):  # it stops at the first that has no room: the others one by one
                        client.many([("BF.ADD", "k", key) for key in keys[i:i + 97]])
            else:
                assert client("CF.RESERVE", "k", params["capacity"], "BUCKETSIZE", params["bucket_size"],
                              "MAXITERATIONS", params["max_iterations"], "EXPANSION", params["expansion"]) == "OK"
                client.many([("CF." + params["insert"], "k", key) for key in keys])
                if params["delete_every"]:
                    client.many([("CF.DEL", "k", key) for key in keys[::params["delete_every"]]])
            assert dump(client, family, "k") == golden, case["name"]
            for iterator, data in golden:
                assert client(f"{family}.LOADCHUNK", "loaded", iterator, data) == "OK", case["name"]
            if golden:  # a cuckoo filter without items has no dump
                assert dump(client, family, "loaded") == golden, case["name"]
                assert client("DEBUG", "DIGEST-VALUE", "loaded") == client("DEBUG", "DIGEST-VALUE", "k")
                # Through an RDB value too, and on from there alike.
                assert client("RESTORE", "restored", 0, client("DUMP", "k")) == "OK"
                more = [f"more:{i}" for i in range(500)]
                for key in ("k", "loaded", "restored"):
                    client(*(("BF.MADD", key) if bloom else ("CF.INSERT", key, "ITEMS")), *more)
                assert dump(client, family, "loaded") == dump(client, family, "k") == dump(client, family, "restored")
        print(f"{len(cases)} cases")


if __name__ == "__main__":
    harness.run(globals())
