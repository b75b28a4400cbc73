#!/usr/bin/env python3
"""Promises: in a cluster of six nodes (three masters, three replicas) commands are redirected to the node of their key,
and no item is lost by a manual failover, a master that is killed, MIGRATE, or slots that move while items come in;
replicas end with the digests of their masters. Would notice: an item answered no, a digest that differs, a command of
two slots that is accepted."""
import contextlib
import signal
import subprocess
import threading
import time

import harness
from harness import Client, Error, Server, free_port, wait_for

SLOTS = 16384
NODE_TIMEOUT = 2000  # ms, while the others should notice that a node is dead
PATIENT = 60_000  # at all other times: nobody takes a busy machine for a dead one


def slot_of(key):
    """CRC-16 (XMODEM) of the key, or of what is between the first braces."""
    key = key.encode() if isinstance(key, str) else key
    start = key.find(b"{")
    end = key.find(b"}", start + 1)
    if start >= 0 and end > start + 1:
        key = key[start + 1:end]
    crc = 0
    for b in key:
        crc ^= b << 8
        for _ in range(8):
            crc = crc << 1 ^ (0x1021 if crc & 0x8000 else 0)
        crc &= 0xffff
    return crc % SLOTS


class Cluster:
    """Follows MOVED and ASK, waits while a slot has nobody."""

    def __init__(self, ports):
        self.ports = list(ports)
        self.clients = {}
        self.home = {}
        self.moved = 0

    def at(self, port):
        if port not in self.clients:
            self.clients[port] = Client(port, timeout=5)
        return self.clients[port]

    def drop(self, port):
        client = self.clients.pop(port, None)
        if client:
            client.close()

    def __call__(self, name, key, *words, seconds=60):
        deadline = time.monotonic() + seconds
        port = self.home.get(slot_of(key), self.ports[0])
        answer = None
        while time.monotonic() < deadline:
            try:
                answer = self.at(port)(name, key, *words)
            except (OSError, ConnectionError) as why:
                answer = why
                self.drop(port)
                port = self.ports[(self.ports.index(port) + 1) % len(self.ports)]
                time.sleep(0.05)
                continue
            if isinstance(answer, Error) and answer.startswith("MOVED"):
                port = int(answer.rsplit(":", 1)[1])
                self.home[slot_of(key)] = port
                self.moved += 1
            elif isinstance(answer, Error) and answer.startswith("ASK"):
                port = int(answer.rsplit(":", 1)[1])
                self.at(port)("ASKING")
                answer = self.at(port)(name, key, *words)
                if not (isinstance(answer, Error) and answer.split()[0] in ("TRYAGAIN", "MOVED")):
                    return answer
            elif isinstance(answer, Error) and answer.split()[0] in ("CLUSTERDOWN", "TRYAGAIN", "READONLY", "LOADING"):
                time.sleep(0.05)
            else:
                return answer
        raise AssertionError(f"{name} {key}: no answer in {seconds} s, at last {answer!r} from {port}")


def nodes(client):
    """id -> (port, flags, master id, slots)"""
    found = {}
    for line in client("CLUSTER", "NODES").decode().splitlines():
        parts = line.split()
        found[parts[0]] = (int(parts[1].split("@")[0].split(":")[1]), parts[2].split(","), parts[3], parts[8:])
    return found


def ask(port, *words):
    """An answer, over a connection of its own. A replica that takes over the data of its master answers LOADING to
    everything meanwhile."""
    def answered():
        nonlocal answer
        with contextlib.closing(Client(port)) as client:
            answer = client(*words)
        return not (isinstance(answer, Error) and answer.startswith("LOADING"))
    answer = None
    assert wait_for(answered, 60), (port, words, answer)
    return answer


def living(servers):
    return [port for port, server in servers.items() if server.process.poll() is None]


def set_node_timeout(servers, milliseconds):
    for port in living(servers):
        assert ask(port, "CONFIG", "SET", "cluster-node-timeout", milliseconds) == "OK"


def agreed(servers):
    """True if all nodes that are alive name the same owner, with the same epoch, for every slot, and none of them takes
    another one for dead."""
    ports = living(servers)
    views = set()
    for port in ports:
        if b"cluster_state:ok" not in ask(port, "CLUSTER", "INFO"):
            return False
        lines = [line.split() for line in ask(port, "CLUSTER", "NODES").decode().splitlines()]
        if any("fail" in line[2] and int(line[1].split("@")[0].split(":")[1]) in ports for line in lines):
            return False
        views.add(repr(sorted((line[0], line[6], *line[8:]) for line in lines if "master" in line[2] and line[8:])))
    return len(views) == 1


def move_slot(servers, slot):
    """Gives a slot and its keys to the next master, and returns the ports of both.

    The new owner takes an epoch that it believes to be the greatest. If news of a greater one is still on its way, the
    slot is given back, and two masters point at each other for good: so all agree before. A replica that takes over
    from its master does not know that a slot is on its way: so nobody may be taken for dead (PATIENT)."""
    assert wait_for(lambda: agreed(servers), 60)
    table = {i: n for i, n in nodes(lambda *words: ask(living(servers)[0], *words)).items() if n[3]}
    owner = next(i for i, n in table.items() if any(
        int(s.split("-")[0]) <= slot <= int(s.split("-")[-1]) for s in n[3]))
    order = sorted(table)
    target = order[(order.index(owner) + 1) % len(order)]
    a, b = table[owner][0], table[target][0]
    assert ask(b, "CLUSTER", "SETSLOT", slot, "IMPORTING", owner) == "OK"
    assert ask(a, "CLUSTER", "SETSLOT", slot, "MIGRATING", target) == "OK"
    while keys := ask(a, "CLUSTER", "GETKEYSINSLOT", slot, 10):
        assert ask(a, "MIGRATE", "127.0.0.1", b, "", 0, 20000, "KEYS", *keys) == "OK"
    for port in (b, a, *(n[0] for i, n in table.items() if i not in (owner, target))):
        assert ask(port, "CLUSTER", "SETSLOT", slot, "NODE", target) == "OK"
    assert wait_for(lambda: agreed(servers), 60)
    return a, b


@contextlib.contextmanager
def six_nodes():
    """Three masters, three replicas; port -> Server."""
    options = ("--cluster-enabled", "yes", "--cluster-config-file", "nodes.conf", "--cluster-node-timeout",
               str(PATIENT), "--cluster-replica-validity-factor", "0", "--appendonly", "no")
    servers = {}
    while len(servers) < 6:
        port = free_port()
        servers.setdefault(port, Server(*options, port=port))
    try:
        for server in servers.values():
            server.start()
        addresses = [f"127.0.0.1:{port}" for port in servers]
        subprocess.run(["redis-cli", "--cluster", "create", *addresses, "--cluster-replicas", "1", "--cluster-yes"],
                       check=True, stdout=subprocess.DEVNULL)
        for server in servers.values():
            client = server.client()
            assert wait_for(lambda: b"cluster_state:ok" in client("CLUSTER", "INFO")
                            and sum("slave" in n[1] for n in nodes(client).values()) == 3)
        yield servers
    finally:
        for server in servers.values():
            server.__exit__(None)


def test_cluster():
    with six_nodes() as servers:
        body(servers)


def body(servers):
    ports = list(servers)
    cluster = Cluster(ports)
    bloom = [f"bloom:{i}" for i in range(30)]
    cuckoo = [f"cuckoo:{i}" for i in range(30)]
    inside = 40

    def add(first, count):
        for key in bloom:
            answers = cluster("BF.MADD", key, *range(first, first + count))
            assert isinstance(answers, list), answers
        for key in cuckoo:
            answers = cluster("CF.INSERT", key, "ITEMS", *range(first, first + count))
            assert answers == [1] * count, answers

    def all_there(count):
        for key in bloom:
            assert all(cluster("BF.MEXISTS", key, *range(count))), key
        for key in cuckoo:
            assert all(cluster("CF.MEXISTS", key, *range(count))), key

    def masters():
        alive = next(p for p in ports if servers[p].process.poll() is None)
        return {i: n for i, n in nodes(cluster.at(alive)).items() if "master" in n[1] and "fail" not in n[1] and n[3]}

    add(0, inside)
    all_there(inside)
    assert cluster.moved > 0 and len({cluster.home.get(slot_of(k)) for k in bloom + cuckoo} - {None}) >= 2
    assert len(masters()) == 3
    # Keys of one slot together, of two not.
    cluster("BF.ADD", "{one}:a", "x")
    cluster("BF.ADD", "{one}:b", "y")
    assert cluster("BF.MERGE", "{one}:c", 2, "{one}:a", "{one}:b") == "OK"
    assert cluster("BF.MEXISTS", "{one}:c", "x", "y") == [1, 1]
    refused = cluster("BF.MERGE", "{one}:c", 2, "{one}:a", "{two}:b")
    assert isinstance(refused, Error) and refused.startswith("CROSSSLOT"), refused

    # A replica answers reads when asked to, and no writes.
    table = nodes(cluster.at(ports[0]))
    replica_id, (replica_port, _, master_id, _) = next((i, n) for i, n in table.items() if "slave" in n[1])
    master_port = table[master_id][0]
    key = next(k for k in bloom if cluster("BF.CARD", k) and cluster.home.get(slot_of(k), ports[0]) == master_port)
    assert cluster.at(master_port)("WAIT", 1, 5000) == 1
    replica = cluster.at(replica_port)
    assert replica("READONLY") == "OK"
    assert all(replica("BF.MEXISTS", key, *range(inside)))
    assert replica("BF.ADD", key, "x").startswith("MOVED")

    # Manual failover.
    assert replica("CLUSTER", "FAILOVER") == "OK"
    assert wait_for(lambda: replica_id in masters())
    add(inside, inside)
    inside *= 2
    all_there(inside)

    # The new master dies; the old one takes over.
    assert wait_for(lambda: b"slave0:" in replica("INFO", "replication") and b"state=online" in replica(
        "INFO", "replication"))
    assert replica("WAIT", 1, 10000) == 1
    for client in [cluster.at(n[0]) for n in masters().values()]:
        assert client("WAIT", 1, 10000) == 1
    set_node_timeout(servers, NODE_TIMEOUT)
    servers[replica_port].stop(signal.SIGKILL)
    cluster.drop(replica_port)
    assert wait_for(lambda: master_id in masters(), 60)
    set_node_timeout(servers, PATIENT)
    assert wait_for(lambda: agreed(servers), 60)
    all_there(inside)
    add(inside, inside)
    inside *= 2
    servers[replica_port].start()
    all_there(inside)

    # MIGRATE by hand: a slot with its keys. Everybody has seen that the one who was dead is a replica now.
    for p in ports:
        assert wait_for(lambda: sum("slave" in n[1] for n in nodes(cluster.at(p)).values()) == 3), p
    source_port, target_port = move_slot(servers, slot_of(bloom[0]))
    assert ask(source_port, "BF.CARD", bloom[0]).startswith("MOVED")
    assert ask(target_port, "BF.CARD", bloom[0]) > 0
    all_there(inside)

    # Slots move while items come in.
    stop = threading.Event()
    trouble = []
    added = [inside]

    def load():
        worker = Cluster(ports)
        try:
            while not stop.is_set():
                item = added[0]
                for k in bloom[:10]:
                    assert isinstance(worker("BF.MADD", k, item), list)
                for k in cuckoo[:10]:
                    assert worker("CF.INSERT", k, "ITEMS", item) == [1]
                added[0] = item + 1
        except Exception as why:  # told by the main thread
            trouble.append(why)

    thread = threading.Thread(target=load)
    thread.start()
    try:
        assert wait_for(lambda: trouble or added[0] > inside + 5) and not trouble, trouble
        # The slots of ten keys, each to the next master.
        for k in bloom[:5] + cuckoo[:5]:
            move_slot(servers, slot_of(k))
        before = added[0]
        assert wait_for(lambda: trouble or added[0] > before + 5) and not trouble, trouble
    finally:
        stop.set()
        thread.join()
    assert not trouble, trouble
    for k in bloom[:10]:
        assert all(cluster("BF.MEXISTS", k, *range(added[0]))), k
    for k in cuckoo[:10]:
        assert all(cluster("CF.MEXISTS", k, *range(added[0]))), k
    all_there(inside)

    # Replicas hold what their masters hold.
    def equal():
        table = nodes(cluster.at(ports[0]))
        for port, flags, master, _ in table.values():
            if "slave" in flags:
                if cluster.at(port)("DEBUG", "DIGEST") != cluster.at(table[master][0])("DEBUG", "DIGEST"):
                    return False
        return sum("slave" in n[1] for n in table.values()) == 3
    assert wait_for(equal)


if __name__ == "__main__":
    harness.run(globals())
