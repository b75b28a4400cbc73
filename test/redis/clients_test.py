#!/usr/bin/env python3
"""Promises: node-redis, ioredis and redis-py, as they come from their registries, work with the module as with the
original. Would notice: a script that fails. Needs npm and python3-redis.   clients_test.py FOLDER: npm's packages go
there."""
import os
import shutil
import subprocess
import sys

import harness
from harness import Server

CLIENTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "clients")
FOLDER = sys.argv.pop(1)


def speak(*command):
    with Server() as server:
        result = subprocess.run([*command, str(server.port)], capture_output=True, text=True, timeout=120)
        assert result.returncode == 0 and ": ok" in result.stdout, result.stdout + result.stderr


def node(script):
    """The script beside its packages, which is where node looks for them."""
    os.makedirs(FOLDER, exist_ok=True)
    for name in os.listdir(CLIENTS):
        shutil.copy(os.path.join(CLIENTS, name), FOLDER)
    have = os.path.join(FOLDER, "node_modules", "ioredis", "package.json")
    if not os.path.exists(have):
        subprocess.run(["npm", "install", "--no-package-lock", "--no-audit", "--no-fund", "--ignore-scripts"],
                       cwd=FOLDER, check=True, stdout=subprocess.DEVNULL)
    speak("node", os.path.join(FOLDER, script))


def test_node_redis():
    node("node_redis.mjs")


def test_ioredis():
    node("ioredis.mjs")


def test_redis_py():
    speak("/usr/bin/python3", os.path.join(CLIENTS, "redis_py.py"))  # the one that Debian's package is for


if __name__ == "__main__":
    harness.run(globals())
