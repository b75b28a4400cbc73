"""Promise: every language writes the same bytes from the same keys, and each reads the files of all others with equal
answers: the lab layout, our own container, and a ribbon. Would notice: a key that is encoded differently on its way
into the library, an option that a binding does not pass on, a file that only its writer can read.

lab_test.py NAME=COMMAND...      each a program: COMMAND write NAME FOLDER, COMMAND read FOLDER FILE...
"""
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

PEERS = {name: shlex.split(command) for name, command in (peer.split("=", 1) for peer in sys.argv[1:])}
KINDS = ["lab", "line", "ribbon"]
errors = []
if len(PEERS) < 6:
    errors.append(f"only {len(PEERS)} languages")
with tempfile.TemporaryDirectory() as name:
    folder = Path(name)
    keys = ["", "hello", "grün", "\U0001f600", "x" * 3000, *(f"key {i}" for i in range(3000))]
    probes = keys + [f"other {i}" for i in range(3000)]
    folder.joinpath("keys").write_text("".join(key + "\n" for key in keys))
    folder.joinpath("probes").write_text("".join(probe + "\n" for probe in probes))
    for peer, command in PEERS.items():
        subprocess.run([*command, "write", peer, name], check=True)
    files = [str(folder / f"{peer}.{kind}") for kind in KINDS for peer in PEERS]
    for kind in KINDS:
        contents = {peer: (folder / f"{peer}.{kind}").read_bytes() for peer in PEERS}
        first = next(iter(PEERS))
        errors += [f"{kind}: {peer} writes other bytes than {first}" for peer in PEERS
                   if contents[peer] != contents[first]]
    answers = {peer: subprocess.run([*command, "read", name, *files], check=True, capture_output=True, text=True)
               .stdout.split("\n")[:-1] for peer, command in PEERS.items()}
    for i, file in enumerate(files):
        expected = answers[next(iter(PEERS))][i]
        if "0" in expected[:len(keys)] or not 0 < expected[len(keys):].count("1") < 150:
            errors.append(f"{file}: a key is lost, or the rate is wrong")
        errors += [f"{Path(file).name}: {peer} reads other answers" for peer in PEERS if answers[peer][i] != expected]
pairs = len(PEERS) ** 2 * len(KINDS)
print("\n".join(errors + [f"lab: {len(PEERS)} languages, {pairs} pairs of writer and reader, {len(errors)} errors"]))
sys.exit(1 if errors else 0)
