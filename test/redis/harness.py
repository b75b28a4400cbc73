"""Real servers with the module, and a client that sees what is on the wire: RESP2 and RESP3, word for word."""
import os
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import traceback

MODULE = os.environ.get("PERHAPS_REDIS_MODULE", "")
SERVER = os.environ.get("PERHAPS_REDIS_SERVER", "redis-server")


class Error(str):
    """An error reply: the text after the minus sign."""

    def __repr__(self):
        return f"Error({str(self)!r})"


class Client:
    """int, bool, float, None, bytes (bulk), str (simple), Error, list, dict. Pairs of a map keep their order."""

    def __init__(self, port, protocol=2, timeout=30):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.file = self.socket.makefile("rb")
        self.port = port
        if protocol == 3:
            self("HELLO", "3")

    def close(self):
        self.file.close()
        self.socket.close()

    @staticmethod
    def pack(words):
        out = [b"*%d\r\n" % len(words)]
        for word in words:
            if not isinstance(word, bytes):
                word = str(word).encode()
            out.append(b"$%d\r\n%s\r\n" % (len(word), word))
        return b"".join(out)

    def __call__(self, *words):
        self.socket.sendall(self.pack(words))
        return self.read()

    def many(self, commands):
        """Pipelined."""
        self.socket.sendall(b"".join(map(self.pack, commands)))
        return [self.read() for _ in commands]

    def read(self):
        line = self.file.readline()
        if not line.endswith(b"\r\n"):
            raise ConnectionError("the server closed the connection")
        kind, rest = line[:1], line[1:-2]
        if kind == b"+":
            return rest.decode()
        if kind == b"-":
            return Error(rest.decode())
        if kind == b":":
            return int(rest)
        if kind == b"#":
            return rest == b"t"
        if kind == b",":
            return float(rest)
        if kind == b"_":
            return None
        if kind in (b"$", b"="):
            size = int(rest)
            if size < 0:
                return None
            data = self.file.read(size + 2)[:-2]
            return data
        if kind in (b"*", b"~", b">"):
            size = int(rest)
            return None if size < 0 else [self.read() for _ in range(size)]
        if kind == b"%":
            return {self.read(): self.read() for _ in range(int(rest))}
        raise ValueError(line)


def same(a, b):
    """Equal in type too: in RESP3 true is not 1."""
    if type(a) is not type(b):
        return False
    if isinstance(a, list):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[k], b[k]) for k in a)
    return a == b


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    return port if port < 50000 else free_port()  # a cluster's bus is 10000 above


class Clock:
    """The wall clock of one server: Server(clock=Clock(milliseconds)), then set(). clock.cc says how."""

    def __init__(self, milliseconds):
        self.folder = tempfile.TemporaryDirectory(prefix="perhaps-clock-")
        self.library = os.path.join(self.folder.name, "clock.so")
        self.file = os.path.join(self.folder.name, "milliseconds")
        source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "clock.cc")
        compiler = os.environ.get("CXX", "c++")
        subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", self.library, source], check=True)
        self.set(milliseconds)

    def set(self, milliseconds):
        with open(self.file + ".new", "w") as file:
            file.write(str(milliseconds))
        os.replace(self.file + ".new", self.file)


class Server:
    """One process; stops with the `with` block."""

    def __init__(self, *options, module_args=(), port=None, folder=None, address_space=None, clock=None):
        self.options = options
        self.address_space = address_space
        self.clock = clock
        self.module_args = module_args
        self.port = port or free_port()
        self.folder = folder or tempfile.mkdtemp(prefix="perhaps-redis-")
        self.own_folder = folder is None
        self.process = None

    def start(self):
        log = open(os.path.join(self.folder, "log"), "a")
        environment = dict(os.environ)
        if os.environ.get("PERHAPS_REDIS_PRELOAD"):
            environment["LD_PRELOAD"] = os.environ["PERHAPS_REDIS_PRELOAD"]
        if self.clock:
            environment["LD_PRELOAD"] = (environment.get("LD_PRELOAD", "") + " " + self.clock.library).strip()
            environment["PERHAPS_TEST_CLOCK"] = self.clock.file
        self.process = subprocess.Popen(
            [SERVER, "--port", str(self.port), "--bind", "127.0.0.1", "--dir", self.folder, "--save", "",
             "--enable-debug-command", "yes", "--repl-diskless-sync-delay", "0", "--shutdown-timeout", "0",
             *self.options, "--loadmodule", MODULE, *self.module_args],
            stdout=log, stderr=log, env=environment, preexec_fn=self.limit if self.address_space else None)
        log.close()
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                raise RuntimeError(f"the server ended with {self.process.returncode}:\n{self.log()[-2000:]}")
            try:
                client = Client(self.port)
                answer = client("PING")
                client.close()
                if answer == "PONG":
                    return self
            except (ConnectionError, OSError):
                pass
            time.sleep(0.02)
        raise RuntimeError("the server does not answer")

    def limit(self):
        resource.setrlimit(resource.RLIMIT_AS, (self.address_space, self.address_space))

    def client(self, protocol=2):
        return Client(self.port, protocol)

    def log(self):
        with open(os.path.join(self.folder, "log"), errors="replace") as f:
            return f.read()

    def stop(self, how=signal.SIGTERM):
        if self.process and self.process.poll() is None:
            self.process.send_signal(how)
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()

    def __enter__(self):
        try:
            return self.start()
        except RuntimeError:
            self.clean_up()
            raise

    def __exit__(self, kind, *_):
        if kind is not None:
            print(f"--- end of the log of port {self.port}\n{self.log()[-3000:]}")
        self.clean_up()

    def clean_up(self):
        self.stop()
        if self.own_folder:
            shutil.rmtree(self.folder, ignore_errors=True)


def dump(client, family, key):
    """The chunks of a filter, each with the iterator that LOADCHUNK takes."""
    chunks, iterator = [], 0
    while True:
        iterator, data = client(f"{family}.SCANDUMP", key, iterator)
        if iterator == 0:
            return chunks
        chunks.append((iterator, data))


def wait_for(condition, seconds=30):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.02)
    return False


def run(tests):
    """Every test_* of a module; prints and counts."""
    if not MODULE:
        sys.exit("PERHAPS_REDIS_MODULE must name the module")
    passed = failed = 0
    wanted = sys.argv[1:]
    for name, test in list(tests.items()):
        if not name.startswith("test_") or (wanted and name not in wanted):
            continue
        start = time.monotonic()
        try:
            test()
            passed += 1
            print(f"ok      {name} ({time.monotonic() - start:.1f} s)")
        except Exception:  # a test that fails must not hide the others
            failed += 1
            print(f"FAILED  {name}")
            traceback.print_exc(file=sys.stdout)
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed or not passed else 0)
