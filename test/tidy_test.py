#!/usr/bin/env python3
"""Style as a unit test: tidy_test.py ROOT

Promises: dependencies point one way (hash <- sizing <- families <- any, file, format, engine <- surfaces), kernels are
private, headers have no third-party include, files are readable. Would notice: an #include against this direction, a
header without a rank, a tab, a long line, a header without an introduction, a path of somebody's machine, a large
file, a shell script in which a reader that stops early can fail its writer, a second file that knows the byte order of
the machine.
"""
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(sys.argv[1]).resolve()
errors = []

# The dependency rule as a table: a public header may include only headers of its own or a lower rank, never itself in a
# circle. A new header gets a rank here, which is the moment to think about it.
RANK = {
    0: ["detail/config.h", "detail/bits.h", "detail/isa.h", "detail/threads.h", "result.h",
        "memory.h", "engine/counters.h"],                                              # words, errors, memory
    1: ["hash.h", "sizing.h", "build_options.h", "family.h"],                          # key -> digest; shapes
    2: ["detail/kernels.h", "detail/batch.h", "detail/run_table.h", "detail/quotient_table.h",
        "detail/growing_table.h", "filter.h", "layout.h", "file/mapping.h", "file/writer.h"],  # what a filter is; files
    3: ["flat.h", "static.h", "range.h"],                                              # view, span, shared, owner
    4: ["engine/dense.h"],                                                             # and the header of each family
    5: ["bulk.h", "algebra.h", "exact.h", "ribbon_map.h", "scalable_bloom.h"],          # over every family
    6: ["any_filter.h", "coded_map.h", "engine/allocate.h"],                            # family known at run time
    7: ["any_map.h", "file/container.h", "file/exact_file.h", "file/range_file.h",      # bytes on disk
        "file/shards.h", "format/format.h", "format/leveldb.h", "format/rocksdb.h", "engine/set_index.h",
        "engine/packed.h", "engine/filter_block.h", "engine/filter_set.h"],
    8: ["perhaps.h"],
}


def family_headers():
    """The header of each layout in the list of families (family.h)."""
    rows = re.findall(r"^  FAMILY\(\w+, \d+, (\w+Layout)", (ROOT / "include/perhaps/family.h").read_text(), re.M)
    for path in (ROOT / "include/perhaps").glob("*.h"):
        if any(re.search(rf"^struct {layout}\b[^;]*\{{", path.read_text(), re.M) for layout in rows):
            yield path.name


RANK[4] += family_headers()
RANK_OF = {name: rank for rank, names in RANK.items() for name in names}

# Every folder with sources, and which others of ours each may include besides its own files. The longest name that
# fits applies. Tests, benchmarks and fuzz targets look behind the API. Nobody else does, but for some rooms with a
# door to the side: file/descriptor.h, which is header-only, redisbloom/, which the Redis module and the codecs share,
# and hash/, which `perhaps bench hash` measures. `perhaps explain` and the web module share any/explain.h, and the
# module looks into the handles of the C API. The Python extension hashes keys where they are.
BEHIND = ["perhaps/", "any/", "build/", "engine/", "exact/", "file/", "format/", "hash/", "kernel/", "redisbloom/",
          "sizing/"]
MAY_INCLUDE = {
    "include": [],  # perhaps.h, the C API, includes <stddef.h> and <stdint.h> and nothing else
    "include/perhaps": ["perhaps/"],
    "src": ["perhaps/", "kernel/", "sizing/"],
    "src/hash": ["perhaps/", "hash/"],
    "src/sizing": ["perhaps/", "sizing/", "build/"],
    "src/kernel": ["perhaps/", "kernel/"],
    "src/build": ["perhaps/", "build/", "file/descriptor.h", "kernel/", "sizing/"],
    # format/bit_positions.h: an interface, by which explain() asks other formats.
    "src/any": ["perhaps/", "any/", "build/", "format/bit_positions.h", "sizing/"],
    "src/c": ["perhaps.h", "perhaps/", "any/", "c/", "file/"],
    "src/engine": ["perhaps/", "any/", "hash/", "sizing/", "kernel/"],
    "src/exact": ["perhaps/", "build/", "exact/"],
    "src/file": ["perhaps/", "any/", "file/", "hash/"],
    "src/redisbloom": ["perhaps/", "format/", "hash/", "redisbloom/"],
    "src/format": ["perhaps/", "build/", "format/", "hash/", "redisbloom/", "sizing/"],
    "cli": ["perhaps/", "cli/", "any/explain.h", "file/descriptor.h", "hash/"],
    "plugins/leveldb": ["perhaps/", "support/"],
    "plugins/rocksdb": ["perhaps/", "support/"],
    "plugins/redis": ["perhaps/", "redis/", "redisbloom/"],
    "python": ["perhaps.h", "perhaps/any_filter.h", "c/digests.h"],
    "web": ["perhaps.h", "perhaps/", "any/explain.h", "any/other_kinds.h", "c/handle.h", "cli/", "web/",
            "kernel/instruction_set.h"],
    "examples": ["perhaps/"],
    "bench": ["perhaps/", "perhaps.h", "kernel/", "cli/", "filter_bits.h", "perhaps_leveldb.h",
              "perhaps_rocksdb.h", "perhaps_rocksdb_ranges.h"],
    "fuzz": [*BEHIND, "perhaps.h", "redis/"],
    "test": [*BEHIND, "perhaps.h", "conformance/", "interop/", "support/"],
    "test/cli": [*BEHIND, "cli/", "perhaps.h", "support/", "perhaps_leveldb.h", "perhaps_rocksdb.h"],
    "test/redis": ["perhaps/", "redis/"],
}
# Who comes in by the public doors alone: no perhaps/detail/, no detail::.
PUBLIC_ONLY = ("cli/", "examples/", "plugins/")
# One file knows the byte order of the machine. A word that is copied to or from bytes elsewhere has that order.
SHIPPED = ("include/", "src/", "cli/", "plugins/")
BYTE_ORDER = "include/perhaps/detail/bits.h"
KNOWS_BYTE_ORDER = (r"std::endian|bswap|__BYTE_ORDER__|\b[hn]to[hn][sl]\b|\b[hlb]e?(16|32|64)toh\b|"
                    r"memcpy\(&|memcpy\([^;]*, &\w+, sizeof")
STANDARD_WITH_DOT = {"emmintrin.h", "immintrin.h", "arm_neon.h"}


def error(path, line, text):
    errors.append(f"{path}:{line}: {text}")


def tracked_files():
    try:
        listing = ["git", "ls-files", "-co", "--exclude-standard", "-z"]
        names = subprocess.run(listing, cwd=ROOT, capture_output=True, check=True).stdout.decode().split("\0")
    except (OSError, subprocess.CalledProcessError):  # no git here, or a release archive
        names = [str(p.relative_to(ROOT)) for p in ROOT.rglob("*")]
        names = [n for n in names if Path(n).parts[0] not in (".git", "build") and not n.endswith(".swp")]
    return sorted(n for n in names if n and (ROOT / n).is_file())


def check_includes(name, lines):
    for number, line in enumerate(lines, 1):
        found = re.match(r'\s*#\s*include\s*([<"])([^>"]+)[>"]', line)
        if not found:
            continue
        quote, target = found.groups()
        folder = max((f for f in MAY_INCLUDE if name.startswith(f + "/")), key=len, default=None)
        if folder is None and quote == '"':
            error(name, number, "its folder has no row in MAY_INCLUDE (test/tidy_test.py)")
        elif folder == "include" and (quote, target) not in (("<", "stddef.h"), ("<", "stdint.h")):
            error(name, number, f"{target} in a C99 header")
        elif folder == "include/perhaps":
            own = name.removeprefix("include/perhaps/")
            if quote == "<":
                if "/" in target or ("." in target and target not in STANDARD_WITH_DOT):
                    error(name, number, f"third-party include <{target}> in a public header")
                continue
            other = target.removeprefix("perhaps/")
            if not target.startswith("perhaps/") or other not in RANK_OF:
                error(name, number, f'"{target}" has no rank (test/tidy_test.py)')
            elif own in RANK_OF and (RANK_OF[other] > RANK_OF[own] or other == own):
                error(name, number, f'"{target}" (rank {RANK_OF[other]}) is above {own} (rank {RANK_OF[own]})')
        elif quote == '"':
            beside = (ROOT / name).parent / target
            if not any(target.startswith(p) for p in MAY_INCLUDE[folder]) and not beside.exists():
                error(name, number, f'{folder}/ may not include "{target}"')


def check_circles():
    """Equal ranks may include each other, but not in a circle."""
    graph = {}
    for own in RANK_OF:
        path = ROOT / "include/perhaps" / own
        text = path.read_text() if path.exists() else ""
        graph[own] = re.findall(r'#include "perhaps/([^"]+)"', text)
    done, active = set(), []

    def visit(own):
        if own in active:
            error(f"include/perhaps/{own}", 1, "includes itself: " + " -> ".join(active[active.index(own):] + [own]))
        if own in done or own in active:
            return
        active.append(own)
        for other in graph.get(own, []):
            visit(other)
        active.pop()
        done.add(own)

    for own in graph:
        visit(own)


# Split so that this file does not accuse itself.
FORBIDDEN = [
    (r"/home/[a-z]|/ro" r"ot/|/wo" r"rk/|\.\./sha" r"red", "a path of somebody's machine"),
    (r"TO" r"DO(?!\([^)]+\): \S)|FIX" r"ME|XX" r"X\b(?!_)", "say why and who waits for it: TO" "DO(reason): what"),
]


def check_pipes(name, lines):
    """Under pipefail, `writer | grep -q` fails whenever grep is done before the writer has written everything."""
    if not re.search(r"^set -\w*o pipefail", "\n".join(lines), re.M):
        return
    for number, line in enumerate(lines, 1):
        if re.search(r"\|\s*(grep -\w*q|head\b)", line):
            error(name, number, "the reader stops early, and under pipefail its writer fails: read the whole output")


def check_text(name, data):
    try:
        text = data.decode()
    except UnicodeDecodeError:
        error(name, 1, "not UTF-8")
        return []
    if text and not text.endswith("\n"):
        error(name, text.count("\n") + 1, "no newline at the end")
    lines = text.split("\n")
    for number, line in enumerate(lines, 1):
        if "\t" in line and Path(name).name != "Makefile" and not name.endswith((".tsv", ".svg", ".go")):
            error(name, number, "a tab")
        if line.rstrip() != line:
            error(name, number, "space at the end of the line")
        if len(line) > 120 and not name.endswith((".md", ".svg", ".json", ".abi")):
            error(name, number, f"{len(line)} columns; 120 is the limit")
        for pattern, why in FORBIDDEN:
            if re.search(pattern, line):
                error(name, number, why)
        if name.startswith(PUBLIC_ONLY) and re.search(r"\bdetail::|perhaps/detail/", line):
            error(name, number, "detail is private to the library: use, or make, a public door")
        if name.startswith(SHIPPED) and name != BYTE_ORDER and re.search(KNOWS_BYTE_ORDER, line):
            error(name, number, f"only {BYTE_ORDER} knows the byte order of the machine: load, store, byte_swapped")
        exact = "exact" in name or name == "include/perhaps/filter.h"  # whose concept ExactSet has it
        if name.startswith(("include/", "src/", "cli/")) and not exact and re.search(r"\bcontains\(", line):
            error(name, number, "may_contain, never contains, but for exact sets: the name carries the meaning")
    return lines


def main():
    names = tracked_files()
    if not any(n.startswith("include/perhaps/") for n in names):
        error(".", 0, "no public header found: nothing was checked")
    for name in names:
        path = ROOT / name
        if path.stat().st_size > 2_000_000:
            error(name, 1, "larger than 2 MB")
        parts = Path(name).parts
        if "util" in parts or "utils" in parts or parts[-1] in ("common.h", "util.h", "utils.h", "helpers.h"):
            error(name, 1, "named after nothing: name it after the thing")
        data = path.read_bytes()
        if len(parts) > 2 and parts[:2] in (("test", "golden"), ("test", "corrupt"), ("fuzz", "corpus")):
            continue  # bytes, not text
        if b"\0" in data:
            error(name, 1, "binary file outside test/golden, test/corrupt and fuzz/corpus")
            continue
        lines = check_text(name, data)
        check_pipes(name, lines)
        if name.endswith((".cc", ".h", ".inc")):
            check_includes(name, lines)
            # A .cc whose first line includes its own header is introduced there.
            own_header = rf'#include "([\w/]+/)?{re.escape(Path(name).stem)}\.h"'
            if not (lines[0].startswith("// ") or (name.endswith(".cc") and re.match(own_header, lines[0]))):
                error(name, 1, "begins without saying what it is")
        if name.endswith(".h") and not any(line.startswith("#pragma once") for line in lines[:80]):
            error(name, 1, "no #pragma once")
        if name.startswith("include/perhaps/"):
            own = name.removeprefix("include/perhaps/")
            if own not in RANK_OF:
                error(name, 1, "not in the table of ranks (test/tidy_test.py)")
            if not own.endswith(".h"):
                error(name, 1, "only *.h is installed")
        if name.startswith("test/") and re.search(r"_(test|soak)\.cc$", name):
            if not re.search(r"Promise|promise", "\n".join(lines[:12])):
                error(name, 1, "does not begin with what it promises")
    for own in RANK_OF:
        if not (ROOT / "include/perhaps" / own).exists():
            error(f"include/perhaps/{own}", 1, "is ranked but does not exist")
    check_circles()

    for text in errors:
        print(text)
    print(f"tidy: {len(names)} files, {len(errors)} errors")
    return 1 if errors else 0


sys.exit(main())
