#!/usr/bin/env python3
"""Promise: libperhaps.so exports the public API and nothing else, and every PERHAPS_API function is there, as is every
symbol of the last release of this SONAME (`make abi` compares their types as well). Would notice: a standard-library
template, a Highway or xxHash symbol, an internal of ours, a declaration without definition, a removed function.

exports_test.py LIBRARY INCLUDE_FOLDER DUMP
"""
import re
import subprocess
import sys
from pathlib import Path

library, include, dump = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])


def symbols(*options):
    out = subprocess.run(["nm", "-D", *options, "--defined-only", library], check=True, capture_output=True, text=True)
    return [line.split(" ", 2)[2] for line in out.stdout.splitlines()]


exported = symbols("-C")

declared = set()
for header in include.rglob("*.h"):
    text = re.sub(r"//[^\n]*|^\s*#[^\n]*", "", header.read_text(), flags=re.MULTILINE)
    for found in re.finditer(r"PERHAPS_API\b[^;{]*?(operator\s*\(\)|operator=|~?\w+)\s*\(", text):
        declared.add(re.sub(r"\s", "", found.group(1)))

errors = []
seen = set()
for symbol in exported:
    if re.fullmatch(r"perhaps_\w+", symbol) and symbol in declared:  # of the C API
        seen.add(symbol)
        continue
    qualified = re.sub(r"\[abi:\w+\]", "", symbol)
    match = re.match(r"(perhaps::(?:[^()]|operator\(\))*?)(operator\(\)|operator=|~?\w+)\(", qualified)
    if re.match(r"(typeinfo|typeinfo name|vtable) for perhaps::\w+$", symbol):
        continue
    if not match or "::kernel::" in qualified.split("(")[0]:
        errors.append(f"exported, but not ours to export: {symbol}")
    elif match.group(2) not in declared:
        errors.append(f"exported, but no public header declares it PERHAPS_API: {symbol}")
    else:
        seen.add(match.group(2))
for name in sorted(declared - seen):
    errors.append(f"declared PERHAPS_API, but not exported: {name}")
released = set(re.findall(r"<elf-symbol name='([^']+)'", dump.read_text()))
for name in sorted(released - {symbol.split("@")[0] for symbol in symbols()}):
    errors.append(f"in {dump.name}, but no longer exported: {name}")
if len(released) < 20:
    errors.append(f"{dump.name}: only {len(released)} symbols: this is not a dump")
if len(exported) < 20:
    errors.append(f"only {len(exported)} symbols: this is not the library")

print("\n".join(errors))
print(f"{len(exported)} symbols, {len(errors)} errors")
sys.exit(1 if errors else 0)
