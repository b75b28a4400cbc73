#!/usr/bin/env python3
"""What a family, a format, a kernel and a command consist of: extending_test.py PERHAPS ROOT

Promises: doc/extending.md lists every place that has to change when one of these is added; names, numbers and abilities
are the same in the declaration, the tool, the documents and the completions. Would notice: a family that is missing in
README.md, in doc/container.md or in a word list; a place that is listed but does not hold what the page says; a file
that enumerates all families, formats or commands and is not listed; an ability that README.md denies or invents.
"""
import json
import re
import subprocess
import sys
import unittest
from pathlib import Path

PERHAPS = sys.argv[1]
ROOT = Path(sys.argv[2])

# A list is found as a few lines with most of the names. These may hold one, and why.
MAY_LIST = {
    "family": {
        "bench/families.cc": "entries with limits of their own; the others are measured with defaults",
        "include/perhaps/perhaps.h": "includes",
        "src/any/families.cc": "derives",
    },
    "format": {"test/golden/formats/manifest.json": "cases, not formats"},
    "command": {"test/cli/document_test.py": "what help, man page and completions must show; doc/extending.md says so"},
}


SUFFIXES = (".h", ".cc", ".inc", ".py", ".sh", ".cmake", ".txt", ".in", ".js", ".mjs", ".ts", "")


def text_of(path):
    return (ROOT / path).read_text()


def run(*args):
    return subprocess.run([PERHAPS, *args], check=True, capture_output=True, text=True).stdout


def sources():
    """Every text in which a list of names would have to be kept up to date."""
    for folder in ["include", "src", "cli", "bench", "plugins", "fuzz", "examples", "test", "cmake", "scripts", "web"]:
        for path in sorted((ROOT / folder).rglob("*")):
            name = str(path.relative_to(ROOT))
            if path.is_file() and path.suffix in SUFFIXES \
                    and "/golden/" not in name and "/corrupt/" not in name and "/soak/" not in name:
                yield name, path.read_text(errors="replace")


def places(title):
    """The rows of a section's table: (path, pattern, what happens if it is left out)."""
    section = re.search(rf"^## {title}\n(.*?)(?=^## |\Z)", text_of("doc/extending.md"), re.M | re.S)
    rows = re.findall(r"^\| `([^`]+)` \| (?:`` (.+?) ``|`([^`]+)`) \| (.+?) \|$", section[1], re.M)
    return [(path, double or single, left_out) for path, double, single, left_out in rows]


class Extending(unittest.TestCase):
    def check_places(self, title, items, skip=lambda item, path: False):
        rows = places(title)
        self.assertGreaterEqual(len(rows), 3, f"the table of '{title}' was not found")
        self.assertGreater(len(items), 3)
        for path, pattern, _ in rows:
            text = text_of(path).lower()
            for item in items:
                if not skip(item, path):
                    wanted = re.sub(r"\{(\w+)\}", lambda m: item[m[1]], pattern).lower()
                    with self.subTest(place=path, missing=wanted):
                        self.assertTrue(wanted in text, f"{path} has no '{wanted}' (doc/extending.md, {title})")

    def check_no_other_list(self, title, key, tokens):
        """No few lines of a file that the page does not list have most of the names."""
        listed = {path for path, _, _ in places(title)} | set(MAY_LIST[key])
        for name, text in sources():
            if name in listed or name == "test/cli/extending_test.py":
                continue
            lines = text.split("\n")
            for i in range(len(lines)):
                window = "\n".join(lines[i : i + 12])
                found = [item for item, words in tokens.items() if any(word in window for word in words)]
                if len(found) > 0.75 * len(tokens):
                    self.fail(f"{name}:{i + 1}: lists {', '.join(found)}; derive it, or name it in doc/extending.md")

    def families(self):
        """By the declaration: name, number and type, and the header that defines the type."""
        declaration = text_of("include/perhaps/family.h")
        rows = re.findall(r"^  FAMILY\((\w+), (\d+), ([\w<>]+), \"([^\"]+)\"\)", declaration, re.M)
        result = []
        for name, number, type_, summary in rows:
            plain = type_.split("<")[0]
            found = [str(p.relative_to(ROOT / "include/perhaps")) for p in (ROOT / "include/perhaps").rglob("*.h")
                     if re.search(rf"^(struct|using) {plain}\b[^;]*?[{{=]", p.read_text(), re.M)]
            self.assertEqual(len(found), 1, f"{plain} is defined in {found}")
            result.append({"name": name, "number": number, "type": plain, "stem": plain.replace("Layout", ""),
                           "header": found[0], "summary": summary})
        return result

    def test_families_are_in_every_place_that_the_page_lists(self):
        families = self.families()
        bits = {f["name"] for f in families
                if re.search(r"insert_shared\(", text_of("include/perhaps/" + f["header"])) and f["name"] != "window"}

        def skip(family, path):
            return path == "test/support/families.h" and family["name"] not in bits

        self.check_places("A family", families, skip)

    def test_nothing_else_lists_families(self):
        self.check_no_other_list("A family", "family", {
            f["name"]: [f'"{f["name"]}"', f"Kind::{f['name']},", f"Kind::{f['name']}:", f["type"]]
            for f in self.families()})

    def test_families_of_the_tool_are_those_of_the_declaration(self):
        declared = self.families()
        sizes = json.loads(run("size", "--keys", "1000000", "--json"))
        self.assertEqual([(f["name"], int(f["number"]), f["summary"]) for f in declared],
                         [(s["family"], s["kind"], s["summary"]) for s in sizes])
        words = "|".join(f["name"] for f in declared) + "|smallest"
        self.assertIn(words.replace("|", " "), run("completion", "bash"))
        help_text = re.sub(r"\s+", " ", run("build", "--help"))
        for family in declared:
            self.assertIn(f"{family['name']}: {family['summary']}.", help_text)

    def test_readme_says_what_each_family_can_do(self):
        table = {}
        for line in text_of("README.md").split("\n"):
            found = re.match(r"\| `\w+` \(`(?:--filter )?(\w+)`\) \| [\d.]+ \| ([^|]+) \|", line)
            if found:
                table[found[1]] = re.split(r",\s*|: ", found[2].strip())
        sizes = json.loads(run("size", "--keys", "10000000", "--json"))
        self.assertEqual(sorted(table), sorted(s["family"] for s in sizes))
        for size in sizes:
            can = table[size["family"]]
            self.assertEqual((size["add"], size["remove"], size["merge"]),
                             ("insert" in can, "erase" in can, "merge" in can), f"{size['family']}: {can}")

    def test_formats_are_in_every_place_that_the_page_lists(self):
        declared = re.findall(r"^extern const Codec (\w+);", text_of("src/format/registry.h"), re.M)
        registered = re.findall(r"^ +&(\w+),", text_of("src/format/registry.cc"), re.M)
        self.assertEqual(declared, registered)
        names = [f["name"] for f in json.loads(run("formats", "--json"))]
        self.assertEqual(len(names), len(registered))
        self.check_places("A foreign format",
                          [{"name": name, "codec": codec} for name, codec in zip(names, registered)])
        for name in names:
            self.assertTrue((ROOT / f"doc/formats/{name}.md").exists(), name)
        self.check_no_other_list("A foreign format", "format", {n: [f'"{n}"'] for n in names})

    def test_kernels_are_in_every_place_that_the_page_lists(self):
        # Set by the family's file: set.line_query = ..
        files = [p for p in (ROOT / "src/kernel").iterdir() if p.suffix in (".cc", ".inc")]
        kernels = sorted({(k, p.stem.split("_")[0]) for p in files
                          for k in re.findall(r"^  set\.(\w+) = ", p.read_text(), re.M) if p.stem != "dispatch"
                          and k in text_of("include/perhaps/detail/kernels.h")})
        self.assertGreater(len(kernels), 10)
        self.check_places("A kernel", [{"kernel": k, "family": family} for k, family in kernels])
        walks = [p.read_text().lower() for p in (ROOT / "test").glob("*_test.cc")
                 if re.search(r"kernel::instruction_sets\(\)|with_every_kernel\(", p.read_text())]
        for kernel, family in kernels:
            self.assertTrue(any(family in text for text in walks), f"no test compares {kernel} on every machine")

    def test_commands_are_in_every_place_that_the_page_lists(self):
        declared = re.findall(r"^Command::Run (\w+)_command\(CLI::App&\);", text_of("cli/command.h"), re.M)
        items = []
        for command in declared:
            found = [p.name for p in (ROOT / "cli").rglob("*.cc")
                     if re.search(rf"^Command::Run {command}_command\(CLI::App& ", p.read_text(), re.M)]
            self.assertEqual(len(found), 1, f"{command}_command is defined in {found}")
            items.append({"command": command, "source": found[0]})
        self.check_places("A command", items)
        shown = re.findall(r"^  (\w+)  ", run("--help"), re.M)
        self.assertEqual(sorted(set(declared) - {"man", "completion"}), sorted(set(shown) & set(declared)))
        self.check_no_other_list("A command", "command", {c: [f'"{c}"'] for c in declared})


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
