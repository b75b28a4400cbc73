#!/usr/bin/env python3
"""Promise: every link in a page leads to something that is there: a file, a folder, or a heading of a page. Would
notice: a page that was renamed, a heading that was reworded, a page that was not installed.

links_test.py FOLDER        looks at every *.md in and below it, build/ aside
"""
import re
import sys
from pathlib import Path

ROOT = Path(sys.argv[1]).resolve()


def prose(text):
    """Without what is code: brackets and parentheses mean something else there."""
    text = re.sub(r"^( *)(```|~~~).*?^\1\2[^\n]*$", "", text, flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"`[^`\n]*`", "``", text)


def anchors(page):
    """Of its headings: lower case, without punctuation, hyphens for spaces."""
    found = {}
    result = set()
    for heading in re.findall(r"^#+ +(.*)$", re.sub(r"^```.*?^```", "", page.read_text(), flags=re.M | re.S), re.M):
        name = re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")
        result.add(f"{name}-{found[name]}" if name in found else name)
        found[name] = found.get(name, 0) + 1
    return result


errors = []
count = 0
pages = [p for p in sorted(ROOT.rglob("*.md")) if p.relative_to(ROOT).parts[0] not in ("build", ".git")]
for page in pages:
    text = prose(page.read_text())
    targets = re.findall(r"\]\(([^)\s]*)\)", text) + re.findall(r"^\[[^\]]+\]: +(\S+)", text, re.MULTILINE)
    for target in targets:
        if re.match(r"[a-z]+:", target):
            continue  # elsewhere: no test of ours depends on the network
        count += 1
        path, _, anchor = target.partition("#")
        other = (page.parent / path).resolve() if path else page
        if not other.exists():
            errors.append(f"{page.relative_to(ROOT)}: {target} is not there")
        elif anchor and (other.suffix != ".md" or anchor not in anchors(other)):
            errors.append(f"{page.relative_to(ROOT)}: {target}: no such heading")

if not (ROOT / "README.md").exists() or count < 10:
    errors.append(f"only {count} links below {ROOT}: these are not our pages")
print("\n".join(errors + [f"links: {count} in {len(pages)} pages, {len(errors)} broken"]))
sys.exit(1 if errors else 0)
