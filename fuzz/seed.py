"""Seeds for format_fuzz: seed.py GOLDEN_FORMATS CORRUPT FOLDER

The smaller files that the systems themselves wrote, and the files named after their defect. Each is written twice,
after two bytes that select every codec and either its initial parameters or others.
"""
import sys
from pathlib import Path

golden, corrupt, folder = map(Path, sys.argv[1:4])
folder.mkdir(parents=True, exist_ok=True)
files = [p for p in golden.rglob("*") if p.is_file() and p.suffix in (".bin", ".ldb", ".sst", ".parquet")]
files += [p for p in corrupt.rglob("*") if p.suffix in (".refused", ".invisible")]
for path in files:
    data = path.read_bytes()
    if len(data) <= 16000:
        for choice in (0, 255):
            (folder / f"{path.parent.name}-{path.name}-{choice}").write_bytes(bytes([0, choice]) + data)
