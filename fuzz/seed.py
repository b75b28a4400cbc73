"""Seeds for a fuzz target: seed.py TARGET FOLDER [--all]

They are made of files that are in the tree already, or of a fixed stream of random numbers, so that they follow when a
layout changes. --all: also the larger files, for the fuzzer; without it, a few hundred for a test that runs each once.

  container  our golden files, and the damaged ones
  format     files that other systems wrote, and those named after their defect, each after four bytes that select the
             codec, its initial parameters or others, the codec to convert to (itself, or another of its family), and
             what the rest is; keys, for what a codec builds
  packed     every tag after random bytes of several lengths
  redis      random commands
  c_api      random calls
  kernels    random choices and digests
"""
import random
import sys
from pathlib import Path

TEST = Path(__file__).resolve().parent.parent / "test"


def container(everything):
    for folder in ("golden/perhaps", "corrupt/perhaps"):
        for path in sorted((TEST / folder).rglob("*")):
            if path.is_file():
                yield f"{path.parent.name}-{path.name}", path.read_bytes()


def weight(codec, byte):
    """As in format_fuzz.cc."""
    value = 2166136261
    for c in codec.encode() + bytes([byte]):
        value = (value ^ c) * 16777619 & 0xFFFFFFFF
    return value ^ value >> 15


def format_(everything):
    codecs = sorted(p.name for p in (TEST / "corrupt").iterdir() if p.is_dir() and p.name != "perhaps")
    byte_of = {}
    for byte in range(256):
        byte_of.setdefault(max(codecs, key=lambda codec: weight(codec, byte)), byte)
    assert sorted(byte_of) == codecs, f"no byte stands for {set(codecs) - set(byte_of)}"
    taken = {}
    suffixes = (".bin", ".ldb", ".sst", ".parquet", ".refused", ".invisible")
    files = [p for folder in ("golden/formats", "corrupt") for p in (TEST / folder).rglob("*") if p.suffix in suffixes]
    for path in sorted(files, key=lambda p: (p.stat().st_size, p)):
        system = path.parent.name
        family = [c for c in codecs if c == system or c.startswith(system + "-")]
        if system == "xor_singleheader":
            family = ["fuse8", "fuse16", "xor8", "xor16"]
        data = path.read_bytes()
        for codec in family if len(data) <= (160_000 if everything else 16_000) else []:
            # A table is no filter, and a filter no table, but for the first few.
            kind = path.suffix in (".ldb", ".sst", ".parquet"), codec.endswith(("-table", "-sst", "parquet"))
            taken[codec, kind] = taken.get((codec, kind), 0) + 1
            if taken[codec, kind] > (12 if kind[0] == kind[1] else 2) and not everything:
                continue
            for choice in (0, 255, *((1, 2, 4, 85, 170) if everything and len(data) < 16_000 else ())):
                to = family[(family.index(codec) + choice) % len(family)]
                what = choice % 5 * 4 + (2 if choice == 0 and (everything or taken[codec, kind] == 12) else 0)
                yield f"{codec}-{path.name}-{choice}", bytes([byte_of[codec], choice, byte_of[to], what]) + data
    assert {codec for codec, _ in taken} == set(codecs), f"no file for {set(codecs) - {c for c, _ in taken}}"
    stream = random.Random(3)
    for codec in codecs:
        for number in range(40 if everything else 4):
            keys = [stream.randbytes(stream.choice([4, 8, 16])) for _ in range(stream.choice([0, 1, 30, 300]))]
            choice = stream.randbytes(2) if number else bytes(2)
            yield f"{codec}-keys-{number}", bytes([byte_of[codec], *choice, 1]) + b"".join(
                bytes([len(key)]) + key for key in sorted(keys))


def packed(everything):
    stream = random.Random(1)
    for tag in range(256):
        for size in (0, 2, 9, 40, 300):
            yield f"{tag}-{size}", stream.randbytes(size) + bytes([tag])


def numbers(sizes):
    def made(everything):
        stream = random.Random(2)
        for i in range(2000 if everything else 300):
            yield str(i), stream.randbytes(sizes[i % len(sizes)])
    return made


TARGETS = {"container": container, "format": format_, "packed": packed, "redis": numbers([30, 120, 500]),
           "c_api": numbers([12, 60, 192]), "kernels": numbers([16, 32, 200, 1000])}


def main():
    target, folder = sys.argv[1].removesuffix("_fuzz"), Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    count = 0
    for name, data in TARGETS[target]("--all" in sys.argv):
        (folder / name).write_bytes(data)
        count += 1
    if count < 10:
        sys.exit(f"only {count} seeds for {target}")


main()
