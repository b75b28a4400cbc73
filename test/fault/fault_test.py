#!/usr/bin/env python3
"""Promise: whichever system call of a command fails, and wherever the command is killed, the file that it writes is the
old one or the new one, byte for byte and with the old one's mode; a command that answers 0 has written the new one; a
failure is exit code 2 and a message; what it printed is the beginning of what it prints when all goes well; no
temporary file stays, or, where the command was killed or could not remove it, none is left after the next run; a key on
a server is the old or the new one, and what was loaded in part expires by itself. Would notice: a torn file, a lost old
file, success that is not, silence, a crash, a hang, a temporary file that nobody removes.

    fault_test.py TOOL FAULT_LIBRARY                  three commands, every point, the kinds that differ most
    fault_test.py TOOL FAULT_LIBRARY --all [MODULE]   every command, every point, every kind; with the module, push and
                                                      pull, too
    --only NAME                                       one command; --point N --kind KIND: one point of it

fault.cc says how calls are made to fail.
"""
import argparse
import json
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "redis"))

KINDS = ["ENOSPC", "EIO", "EINTR", "EMFILE", "kill", "short", "full"]
FEW_KINDS = ["EIO", "EINTR", "kill"]
# Functions of libc that enter the kernel and are left alone on purpose: they cannot fail, concern only the terminal,
# signals and limits, or do not return.
HARMLESS = set("_exit _Exit alarm execv geteuid getrlimit setrlimit ioctl isatty fcntl fileno nanosleep sigaction "
               "signal sysconf clock_gettime time tcgetattr tcsetattr ferror malloc_trim".split())
# What is not a wrapper of a system call.
PURE = re.compile(r"(_|ZSTD_|BZ2_|LZ4F_|lzma_|EVP_|SSL_|TLS_|X509_|ERR_|inflate|mem|str|pthread_|gmtime_r).*|"
                  r"(exp|log|pow|l?lround|lgamma)\w*|fmax|fmin|round|sqrt|ilogb|"
                  r"ldexp|ceil|floor|trunc|isspace|tolower|toupper|abort|exit|getenv|gai_strerror|freeaddrinfo|"
                  r"v?snprintf|free|malloc|calloc|realloc|aligned_alloc")


class Fault(Exception):
    pass


class Scenario:
    """A command in a folder of its own. `setup` makes what it reads, and the old target if there is one."""

    def __init__(self, name, command, target, setup=(), few=False, prints=False, key=None, named=False):
        self.name, self.command, self.target = name, command, target
        self.setup, self.few = setup, few
        self.prints = prints  # its standard output is its product, and always the same
        self.key = key        # a key on the server is the target
        self.named = named    # the file system has no O_TMPFILE


def scenarios(tool):
    keys, more = "keys.txt", "more.txt"
    line = ["build", "-o", "t", "--keys-expected", "400", keys]
    old = ["build", "-o", "t", "-e", "old"]
    sizes = subprocess.run([tool, "size", "--keys", "1000", "--json"], capture_output=True, check=True).stdout
    every = sorted({row["family"] for row in json.loads(sizes)})
    yield Scenario("build", ["build", "-o", "t", keys], "t", few=True)
    yield Scenario("build over", ["build", "-o", "t", keys], "t", [old], few=True)
    yield Scenario("add", ["add", "t", more], "t", [line], few=True)
    yield Scenario("merge", ["merge", "-o", "t", "a", "b"], "t",
                   [["build", "-o", "a", "--keys-expected", "400", keys],
                    ["build", "-o", "b", "--keys-expected", "400", more], old], few=True)
    for family in every:
        yield Scenario(f"build {family}", ["build", "--filter", family, "-o", "t", keys], "t", [old])
    yield Scenario("build from a pipe", ["build", "-o", "t", "-"], "t", [old])
    yield Scenario("build from gzip", ["build", "-o", "t", "keys.txt.gz"], "t", [old])
    yield Scenario("build from zstd", ["build", "-o", "t", "keys.txt.zst"], "t", [old])
    yield Scenario("build on disk", ["build", "--on-disk", "-o", "t", keys], "t", [old])
    yield Scenario("build with spills", ["build", "--filter", "ribbon", "--memory", "64Ki", "--threads", "2", "-o", "t",
                                         "many.txt"], "t", [old])
    yield Scenario("build keyed", ["build", "--keyed", "secret", "-o", "t", keys], "t", [old])
    yield Scenario("build, temporary files have names", ["build", "-o", "t", keys], "t", named=True)
    yield Scenario("add, temporary files have names", ["add", "t", more], "t", [line], named=True)
    yield Scenario("spills, temporary files have names", ["build", "--filter", "fuse", "--memory", "64Ki", "-o", "t",
                                                          "many.txt"], "t", [old], named=True)
    yield Scenario("build through a link", ["build", "-o", "link", keys], "t", [old])
    for name in ("guava", "cassandra", "redisbloom-bf", "fuse8"):
        yield Scenario(f"build {name}", ["build", "--format", name, "-o", "t", keys], "t",
                       [["build", "--format", name, "-o", "t", "-e", "old"]])
    yield Scenario("build shards", ["build", "--format", "redisbloom-bf", "--shards", "3", "-o", "t", keys], "t", [old])
    for family in ("counting", "cuckoo", "quotient", "scalable", "window"):
        build = ["build", "--filter", family, "-o", "t", *([] if family == "scalable" else ["--keys-expected", "400"])]
        yield Scenario(f"add {family}", ["add", "t", more], "t", [[*build, keys]])
        if family in ("counting", "cuckoo", "quotient"):
            yield Scenario(f"remove {family}", ["remove", "t", more], "t", [[*build, keys, more]])
    yield Scenario("add keyed", ["add", "--keyed", "secret", "t", more], "t",
                   [["build", "--keyed", "secret", "--keys-expected", "400", "-o", "t", keys]])
    for family in ("quotient", "counting"):
        parts = [["build", "--filter", family, "--keys-expected", "400", "-o", name, source]
                 for name, source in (("a", keys), ("b", more))]
        yield Scenario(f"merge {family}", ["merge", "-o", "t", "a", "b"], "t", [*parts, old])
    yield Scenario("merge onto itself", ["merge", "-o", "t", "t", "b"], "t",
                   [line, ["build", "-o", "b", "--keys-expected", "400", more]])
    yield Scenario("intersect", ["merge", "--intersect", "-o", "t", "a", "b"], "t",
                   [["build", "-o", "a", "--keys-expected", "400", keys],
                    ["build", "-o", "b", "--keys-expected", "400", more], old])
    yield Scenario("convert", ["convert", "--to", "fuse8", "--set", "packed=true", "-o", "t", "a"], "t",
                   [["build", "--format", "fuse8", "-o", "a", keys], old])
    yield Scenario("convert onto itself", ["convert", "--to", "fuse8", "--set", "packed=true", "-o", "t", "t"], "t",
                   [["build", "--format", "fuse8", "-o", "t", keys]])
    yield Scenario("dedup", ["dedup", "--threads", "1", "twice.txt"], None, prints=True)
    yield Scenario("dedup suspects", ["dedup", "--suspects", "suspects", "--keys-expected", "1000", "twice.txt"], None,
                   prints=True)
    url = "redis://127.0.0.1:{port}/key"
    bloom = ["build", "--format", "redisbloom-bf", "-o", "a", keys]
    before = [["build", "--format", "redisbloom-bf", "-o", "before", "-e", "old"],
              ["push", "--replace", "before", url]]
    yield Scenario("push", ["push", "a", url], None, [bloom], key="key")
    yield Scenario("push over", ["push", "--replace", "a", url], None, [bloom, *before], key="key")
    yield Scenario("push line", ["push", "--replace", "a", url], None, [["build", "-o", "a", keys], *before], key="key")
    yield Scenario("pull", ["pull", url, "-o", "t"], "t", [bloom, ["push", "--replace", "a", url], old], key="key")
    yield Scenario("pull line", ["pull", url, "-o", "t"], "t",
                   [["build", "-o", "a", keys], ["push", "--replace", "a", url], old], key="key")


class Runner:
    def __init__(self, tool, library, client):
        self.tool, self.library, self.client = tool, library, client
        memory = Path("/dev/shm")  # every run syncs, and what a disk makes of that is not in question
        self.root = Path(tempfile.mkdtemp(prefix="perhaps-fault-", dir=memory if memory.is_dir() else None))
        self.log = self.root / "log"
        self.sources = self.root / "sources"
        self.make_sources()

    def make_sources(self):
        s = self.sources
        s.mkdir()
        (s / "keys.txt").write_text("".join(f"key {i}\n" for i in range(200)))
        (s / "more.txt").write_text("".join(f"more {i}\n" for i in range(100)))
        (s / "many.txt").write_text("".join(f"many {i}\n" for i in range(30_000)))
        (s / "twice.txt").write_text("".join(f"line {i % 300}\n" for i in range(900)))
        (s / "secret").write_bytes(bytes(range(16)))
        for pack, suffix in ((["gzip", "-nc"], "gz"), (["zstd", "-qc"], "zst")):
            with open(s / f"keys.txt.{suffix}", "wb") as out:
                subprocess.run([*pack, s / "keys.txt"], stdout=out, check=True)

    def run(self, scenario, command, folder, point=None, kind=""):
        environment = {**os.environ, "TMPDIR": str(folder / "tmp"), "LC_ALL": "C", "SOURCE_DATE_EPOCH": "0",
                       "LD_PRELOAD": str(self.library)}
        if scenario.named:
            environment["PERHAPS_FAULT_NAMED"] = "1"
        if point is not None:
            self.log.unlink(missing_ok=True)
            environment |= {"PERHAPS_FAULT": f"{point}:{kind}",
                            "PERHAPS_FAULT_LOG": str(self.log)}
        port = self.client.port if self.client else 0
        words = [self.tool, *(word.replace("{port}", str(port)) for word in command)]
        with open(folder / "keys.txt", "rb") as standard_input:
            try:
                return subprocess.run(words, cwd=folder, env=environment, stdin=standard_input, capture_output=True,
                                      timeout=120)
            except subprocess.TimeoutExpired:
                raise Fault("hangs") from None

    def fresh(self, scenario):
        folder = self.root / "run"
        shutil.rmtree(folder, ignore_errors=True)
        (folder / "tmp").mkdir(parents=True)
        for source in self.sources.iterdir():
            os.link(source, folder / source.name)
        for name, data in self.files.items():
            (folder / name).write_bytes(data)
            (folder / name).chmod(0o640)
        if "link" in scenario.command:
            (folder / "link").symlink_to("t")
        if scenario.key:
            self.client("FLUSHALL")
            for key, dump in self.keys.items():
                self.client("RESTORE", key, 0, dump)
        return folder

    def contents(self, folder):
        return {str(p.relative_to(folder)): p for p in folder.rglob("*") if not p.is_dir()}

    def dump(self):
        return {key.decode(): self.client("DUMP", key) for key in self.client("KEYS", "*")}

    def prepare(self, scenario):
        """The old state, and the new one."""
        self.files, self.keys = {}, {}
        folder = self.fresh(scenario)
        for command in scenario.setup:
            done = self.run(scenario, command, folder)
            if done.returncode != 0:
                raise Fault(f"setup {command}: {done.stderr.decode()}")
        own = {p.name for p in self.sources.iterdir()} | {"link"}
        self.files = {name: p.read_bytes() for name, p in self.contents(folder).items() if name not in own}
        if scenario.key:
            self.keys = self.dump()
        self.old = self.files.get(scenario.target)
        folder = self.fresh(scenario)
        done = self.run(scenario, scenario.command, folder, 0)
        if done.returncode != 0:
            raise Fault(f"without a fault: exit code {done.returncode}: {done.stderr.decode()}")
        self.printed = done.stdout
        self.new = (folder / scenario.target).read_bytes() if scenario.target else None
        self.listing = set(self.contents(folder))
        self.new_keys = self.dump() if scenario.key else {}
        calls = self.log.read_text().split()
        if calls[0] != "calls" or int(calls[1]) < 10:
            raise Fault(f"{self.log.read_text()!r}: the library was not preloaded")
        if scenario.target and self.new == self.old:
            raise Fault("the command changes nothing: nothing would be noticed")
        return int(calls[1])

    def check_target(self, scenario, folder, must_be_new):
        if scenario.target:
            path = folder / scenario.target
            now = path.read_bytes() if path.exists() else None
            if now != self.new and (must_be_new or now != self.old):
                size = "none" if now is None else f"{len(now)} bytes"
                raise Fault(f"the file is {'not the new one' if now == self.old else 'neither'} ({size})")
            if now is not None and self.old is not None and stat.S_IMODE(path.stat().st_mode) != 0o640:
                raise Fault(f"the mode of the file became {stat.S_IMODE(path.stat().st_mode):o}")
        if scenario.key:
            keys = self.dump()
            whole = {k: v for k, v in keys.items() if ":push:" not in k}
            if whole != self.new_keys and (must_be_new or whole != self.keys):
                raise Fault(f"the keys {list(whole)} are not the {'new' if must_be_new else 'old or the new'} ones")
            for key in keys.keys() - whole.keys():
                if self.client("TTL", key) < 0:
                    raise Fault(f"the temporary key {key} would stay for ever")

    def one(self, scenario, point, kind):
        folder = self.fresh(scenario)
        done = self.run(scenario, scenario.command, folder, point, kind)
        hit = self.log.read_text().split() if self.log.exists() else ["nothing", "-1"]
        message = done.stderr.decode(errors="replace")
        silent = int(hit[1]) in (1, 2) or hit[0] in ("fputs", "fwrite", "fflush")  # the message itself was in its way
        if kind == "kill" and hit[0] != "nothing":
            if done.returncode != -signal.SIGKILL:
                raise Fault(f"{hit[0]}: exit code {done.returncode} instead of the kill")
        elif done.returncode not in (0, 2):
            raise Fault(f"{hit[0]}: exit code {done.returncode}: {message}")
        elif done.returncode == 2 and not silent and not re.search(r"^perhaps[ \w]*: .*\S", message, re.M):
            raise Fault(f"{hit[0]}: failed without a message: {message!r}")
        if scenario.prints:
            if not self.printed.startswith(done.stdout) or (done.returncode == 0 and done.stdout != self.printed):
                raise Fault(f"{hit[0]}: printed something else")
        try:
            self.check_target(scenario, folder, done.returncode == 0)
            left = {n for n in set(self.contents(folder)) - self.listing if n != scenario.target}
            # Who cannot remove a name, or cannot tell whose it is, leaves it to the next run.
            if left and kind != "kill" and not hit[0].startswith(("unlink", "fstat")):
                raise Fault(f"left behind: {sorted(left)}")
            if left or kind == "kill":
                # The next run begins with the old file and what was left behind.
                if scenario.target:
                    (folder / scenario.target).unlink(missing_ok=True)
                    if self.old is not None:
                        (folder / scenario.target).write_bytes(self.old)
                        (folder / scenario.target).chmod(0o640)
                if scenario.key:
                    for key in self.client("KEYS", "*"):
                        if b":push:" not in key:
                            self.client("DEL", key)
                    for key, data in self.keys.items():
                        self.client("RESTORE", key, 0, data)
                again = self.run(scenario, scenario.command, folder)
                if again.returncode != 0:
                    raise Fault(f"the next run: exit code {again.returncode}: {again.stderr.decode()}")
                self.check_target(scenario, folder, True)
                left = set(self.contents(folder)) - self.listing
                if left:
                    raise Fault(f"left behind after the next run: {sorted(left)}")
        except Fault as fault:
            raise Fault(f"{hit[0]} ({message.strip()[:200]!r}): {fault}") from None
        return hit[0], done.returncode

    def close(self):
        shutil.rmtree(self.root, ignore_errors=True)


def check_imports(tool, library):
    """Every function of libc that the tool imports and that may enter the kernel is one that can be made to fail."""
    def names(which, path):
        out = subprocess.run(["nm", "-D", which, path], capture_output=True, text=True, check=True).stdout
        return {line.split()[-1].split("@")[0] for line in out.splitlines() if line.split()[-2] not in "wVv"}
    ours = names("--defined-only", library)
    free = {n for n in names("--undefined-only", tool) if not PURE.fullmatch(n)} - HARMLESS - ours
    if free:
        raise Fault(f"the tool calls {sorted(free)}, which fault.cc does not intercept")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tool")
    parser.add_argument("library")
    parser.add_argument("--all", nargs="?", const="", metavar="MODULE")
    parser.add_argument("--only")
    parser.add_argument("--point", type=int)
    parser.add_argument("--kind")
    arguments = parser.parse_args()
    tool, library = str(Path(arguments.tool).resolve()), Path(arguments.library).resolve()
    check_imports(tool, str(library))
    server = None
    if arguments.all:
        os.environ["PERHAPS_REDIS_MODULE"] = str(Path(arguments.all).resolve())
        import harness
        server = harness.Server().start()
    runner = Runner(tool, library, server.client() if server else None)
    failures, points, scenarios_run, commands = [], 0, 0, Counter()
    start = time.monotonic()
    try:
        for scenario in scenarios(tool):
            if arguments.only and scenario.name != arguments.only:
                continue
            if not arguments.only and arguments.all is None and not scenario.few:
                continue
            if scenario.key and not server:
                continue
            scenarios_run += 1
            try:
                calls = runner.prepare(scenario)
            except Fault as fault:
                failures.append(f"{scenario.name}: {fault}")
                print("FAILED ", failures[-1], flush=True)
                continue
            kinds = [arguments.kind] if arguments.kind else KINDS if arguments.all is not None else FEW_KINDS
            for point in [arguments.point] if arguments.point else range(1, calls + 1):
                for kind in kinds:
                    points += 1
                    try:
                        name, _ = runner.one(scenario, point, kind)
                        commands[name] += 1
                    except Fault as fault:
                        failures.append(f"{scenario.name}: point {point}, {kind}: {fault}")
                        print("FAILED ", failures[-1], flush=True)
            if arguments.all is not None:
                print(f"{scenario.name}: {calls} calls", flush=True)
    finally:
        runner.close()
        if server:
            server.clean_up()
    if arguments.all is not None:
        print(", ".join(f"{name} {count}" for name, count in commands.most_common()))
    print(f"{scenarios_run} commands, {points} faults, {len(failures)} failures, {time.monotonic() - start:.0f} s")
    return 1 if failures or not points else 0


if __name__ == "__main__":
    sys.exit(main())
