#!/usr/bin/env python3
"""Promise: in a cluster whose masters are killed, fail over and hand over slots while items come in, a filter loses no
acknowledged item that a plain Redis set in the same slot, written in the same message, still has: replication of Redis
is asynchronous, and what it loses itself is not ours to keep. In the end replicas have the digests of their masters.
Would notice: an item of the set that a Bloom or a cuckoo filter denies, a digest that differs.

    cluster_soak.py [--seconds 3600] [--seed 1]
"""
import argparse
import random
import signal
import sys
import threading
import time

import harness
from cluster_test import (NODE_TIMEOUT, PATIENT, Cluster, agreed, ask, living, move_slot, nodes, set_node_timeout,
                          six_nodes, slot_of)
from harness import Client, Error, wait_for

TAGS = [f"{{t{i}}}" for i in range(12)]
MOST = 300_000  # items of a writer for each tag: spread over the whole time, so that all servers stay below 2 GB
BATCH = 10
REDIRECTED = ("MOVED", "ASK", "TRYAGAIN", "CLUSTERDOWN", "READONLY", "LOADING")


class Writer(threading.Thread):
    """Adds items to the filters and the set of each tag, one message for the three of them."""

    def __init__(self, number, ports, stop, seconds):
        super().__init__()
        self.number, self.stop, self.pause = number, stop, seconds * BATCH / MOST
        self.cluster = Cluster(ports)
        self.acknowledged = {tag: [] for tag in TAGS}
        self.trouble = None

    def add(self, tag, items):
        slot = slot_of(tag)
        commands = [("BF.MADD", tag + "bf", *items), ("CF.INSERT", tag + "cf", "ITEMS", *items),
                    ("SADD", tag + "set", *items)]
        port = self.cluster.home.get(slot, self.cluster.ports[0])
        try:
            replies = self.cluster.at(port).many(commands)
        except (OSError, ConnectionError):
            self.cluster.drop(port)
            self.cluster.home.pop(slot, None)
            self.cluster.ports.append(self.cluster.ports.pop(0))
            return False
        for command, reply in zip(commands, replies):
            if isinstance(reply, Error) and reply.split()[0] in REDIRECTED:
                try:
                    reply = self.cluster(*command, seconds=30)  # this one alone: the others are where they belong
                except AssertionError:
                    return False
            if isinstance(reply, Error):
                raise AssertionError(f"{command[0]} {command[1]}: {reply}")
        return True

    def run(self):
        try:
            count = 0
            while not self.stop.wait(self.pause) and count < MOST:
                for tag in TAGS:
                    items = [f"{self.number}:{count + i}" for i in range(BATCH)]
                    if self.add(tag, items):
                        self.acknowledged[tag] += items
                count += BATCH
        except Exception as why:  # told by the main thread
            self.trouble = why


class Chaos:
    def __init__(self, servers, seed):
        self.servers = servers
        self.random = random.Random(seed)
        self.done = {"kills": 0, "failovers": 0, "slots moved": 0}

    def table(self):
        return nodes(lambda *words: ask(living(self.servers)[0], *words))

    def masters(self):
        return {i: n for i, n in self.table().items() if "master" in n[1] and "fail" not in n[1] and n[3]}

    def healthy(self):
        """Every node sees three masters with their slots and three replicas; each replica has what its master has."""
        try:
            for port in self.servers:
                if sum("slave" in n[1] for n in nodes(lambda *words: ask(port, *words)).values()) != 3:
                    return False
            replicas = [ask(n[0], "WAIT", 1, 5000) for n in self.masters().values()]
            return agreed(self.servers) and all(isinstance(count, int) and count >= 1 for count in replicas)
        except (OSError, ConnectionError):
            return False

    def wait_healthy(self):
        assert wait_for(self.healthy, 240), self.table()

    def kill(self):
        victim = self.random.choice(sorted(self.masters().items()))[1][0]
        self.servers[victim].stop(signal.SIGKILL)
        assert wait_for(lambda: len({n[0] for n in self.masters().values()} - {victim}) == 3, 120), self.table()
        self.servers[victim].start()
        set_node_timeout(self.servers, NODE_TIMEOUT)
        self.done["kills"] += 1

    def fail_over(self):
        replica = self.random.choice(sorted(n[0] for n in self.table().values() if "slave" in n[1]))
        if ask(replica, "CLUSTER", "FAILOVER") == "OK":  # and the replica may give it up after 5 s
            self.done["failovers"] += wait_for(lambda: replica in {n[0] for n in self.masters().values()}, 10)

    def reshard(self):
        set_node_timeout(self.servers, PATIENT)
        self.wait_healthy()
        move_slot(self.servers, slot_of(self.random.choice(TAGS)))
        set_node_timeout(self.servers, NODE_TIMEOUT)
        self.done["slots moved"] += 1

    def step(self):
        self.random.choice([self.kill, self.fail_over, self.reshard])()
        self.wait_healthy()


def check(servers, writers):
    cluster = Cluster(list(servers))
    acknowledged = redis_lost = ours_lost = 0
    for tag in TAGS:
        kept = {item.decode() for item in cluster("SMEMBERS", tag + "set", seconds=120)}
        items = [item for writer in writers for item in writer.acknowledged[tag]]
        acknowledged += len(items)
        redis_lost += sum(item not in kept for item in items)
        there = [item for item in items if item in kept]
        for first in range(0, len(there), 1000):
            part = there[first:first + 1000]
            for command, key in (("BF.MEXISTS", tag + "bf"), ("CF.MEXISTS", tag + "cf")):
                answers = cluster(command, key, *part, seconds=120)
                ours_lost += len(part) - sum(answers)
    return acknowledged, redis_lost, ours_lost


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=3600)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    if not harness.MODULE:
        sys.exit("PERHAPS_REDIS_MODULE must name the module")
    with six_nodes() as servers:
        chaos = Chaos(servers, arguments.seed)
        set_node_timeout(servers, NODE_TIMEOUT)
        chaos.wait_healthy()
        setup = Cluster(list(servers))
        for tag in TAGS:
            assert setup("BF.RESERVE", tag + "bf", 1e-6, 100_000) == "OK"
            assert setup("CF.RESERVE", tag + "cf", 100_000) == "OK"
        stop = threading.Event()
        writers = [Writer(i, servers, stop, arguments.seconds) for i in range(2)]
        for writer in writers:
            writer.start()
        deadline = time.monotonic() + arguments.seconds
        try:
            while True:
                chaos.step()
                if any(writer.trouble for writer in writers) or time.monotonic() > deadline:
                    break
        finally:
            stop.set()
            for writer in writers:
                writer.join()
        for writer in writers:
            if writer.trouble:
                raise writer.trouble
        chaos.wait_healthy()
        acknowledged, redis_lost, ours_lost = check(servers, writers)
        table = chaos.table()
        for port, flags, master, _ in table.values():
            if "slave" in flags:
                assert ask(port, "DEBUG", "DIGEST") == ask(table[master][0], "DEBUG", "DIGEST"), port
        print(f"seed {arguments.seed}: {acknowledged} items acknowledged, {redis_lost} lost by Redis itself, "
              f"{ours_lost} lost beyond that; " + ", ".join(f"{n} {what}" for what, n in chaos.done.items()))
        assert acknowledged > 1000 and sum(chaos.done.values()) > 0
        return 1 if ours_lost else 0


if __name__ == "__main__":
    sys.exit(main())
