"""Seeds for format_fuzz: seed.py GOLDEN_FORMATS CORRUPT FOLDER

The smaller files that the systems themselves wrote, and the files named after their defect, each after three bytes that
select the codec, its initial parameters or others, and the codec to convert to: itself, or another of its family.
"""
import sys
from pathlib import Path


def weight(codec, byte):
    """As in format_fuzz.cc."""
    value = 2166136261
    for c in codec.encode() + bytes([byte]):
        value = (value ^ c) * 16777619 & 0xFFFFFFFF
    return value ^ value >> 15


golden, corrupt, folder = map(Path, sys.argv[1:4])
folder.mkdir(parents=True, exist_ok=True)
codecs = sorted(p.name for p in corrupt.iterdir() if p.is_dir() and p.name != "perhaps")
byte_of = {}
for byte in range(256):
    byte_of.setdefault(max(codecs, key=lambda codec: weight(codec, byte)), byte)
assert sorted(byte_of) == codecs, f"no byte stands for {set(codecs) - set(byte_of)}"

written = 0
for path in [*golden.rglob("*"), *corrupt.rglob("*")]:
    system = path.parent.name
    family = [c for c in codecs if c == system or c.startswith(system + "-")]
    if system == "xor_singleheader":
        family = ["fuse8", "fuse16", "xor8", "xor16"]
    if path.suffix not in (".bin", ".ldb", ".sst", ".parquet", ".refused", ".invisible") or not family:
        continue
    data = path.read_bytes()
    if len(data) > 16000:
        continue
    for codec in family:
        for choice in (0, 255):
            to = family[(family.index(codec) + choice) % len(family)]
            head = bytes([byte_of[codec], choice, byte_of[to]])
            (folder / f"{codec}-{path.name}-{choice}").write_bytes(head + data)
            written += 1
assert written > 500, f"only {written} seeds from {golden} and {corrupt}"
