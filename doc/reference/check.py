#!/usr/bin/env python3
"""Promise: every public symbol of the reference has a sentence, and every link in it leads somewhere. Would notice: a
function, type, concept, constant or alias that nobody described, a page that is not there.

check.py FOLDER      with the html and xml that Doxygen wrote

No sentence of its own is asked of what is described elsewhere, or says all itself: members that a concept asks for (its
definition describes them), the fields and enumerators of a type, special members that are defaulted or deleted,
destructors, moves, copies, comparison.
"""
import re
import sys
import xml.etree.ElementTree as ET
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

FOLDER = Path(sys.argv[1])
errors = []


def described(element):
    return any("".join(element.find(tag).itertext()).strip() for tag in ("briefdescription", "detaileddescription")
               if element.find(tag) is not None)


def place(element):
    location = element.find("location")
    return f"{location.get('file')}" if location is not None else "?"


def speaks_for_itself(member, owner):
    name = member.findtext("name")
    arguments = member.findtext("argsstring") or ""
    if re.match(r"operator(==|!=|<=>|=$)|~", name):
        return True
    if name == re.sub(r"<.*", "", owner).rsplit("::", 1)[-1]:
        own = rf"(const )?{re.escape(name)}\b[^,()]*&&?\s*\w*"
        return bool(re.search(r"=\s*(default|delete)", arguments) or re.fullmatch(rf"\({own}\)[^()]*", arguments))
    return False


compounds = [compound for file in sorted((FOLDER / "xml").glob("*.xml"))
             for compound in ET.parse(file).getroot().findall("compounddef")]
# f.hasher(), L::insert(..), typename H::word: the names that concepts ask for.
in_concepts = set()
for concept in compounds:
    if concept.get("kind") == "concept" and described(concept):
        definition = "".join(concept.find("initializer").itertext())
        in_concepts |= set(re.findall(r"(?:\b[a-zA-Z]\w*\.|\b[A-Z]\w*::)(\w+)", definition))

count = 0
missing = set()
for compound in compounds:
    kind, name = compound.get("kind"), compound.findtext("compoundname")
    if "detail" in name.split("::") or compound.get("prot") in ("private", "protected"):
        continue
    if kind in ("class", "struct", "union", "concept"):
        count += 1
        if not described(compound):
            missing.add(f"{place(compound)}: {kind} {name}")
    if kind not in ("class", "struct", "union", "namespace"):
        continue
    for member in compound.iter("memberdef"):
        what = member.get("kind")
        if member.get("prot") in ("private", "protected") or what == "friend":
            continue
        if what == "variable" and kind != "namespace" and member.get("static") == "no":
            continue  # a field
        if kind != "namespace" and member.findtext("name") in in_concepts:
            continue
        count += 1
        if not described(member) and not speaks_for_itself(member, name):
            missing.add(f"{place(member)}: {what} {name}::{member.findtext('name')}")


class Page(HTMLParser):
    def __init__(self, path):
        super().__init__()
        self.links, self.names = [], set()
        self.feed(path.read_text(errors="replace"))

    def handle_starttag(self, tag, attrs):
        for key, value in attrs:
            if key in ("href", "src") and value:
                self.links.append(value)
            elif key in ("id", "name") and value:
                self.names.add(value)


html = FOLDER / "html"
pages = {path.name: Page(path) for path in html.glob("*.html")}
links = 0
for name, page in pages.items():
    for link in page.links:
        if re.match(r"[a-z]+:", link):
            continue
        links += 1
        path, _, anchor = unquote(link).partition("#")
        path = path or name
        if not (html / path).exists():
            errors.append(f"html/{name}: {link} is not there")
        elif re.match(r"index|md_", name) and anchor and path in pages and anchor not in pages[path].names:
            errors.append(f"html/{name}: {link}: no such place")

errors += [f"no sentence: {symbol}" for symbol in missing]
if count < 200 or links < 1000:
    errors.append(f"only {count} symbols and {links} links: this is not the reference")
for text in sorted(set(errors)):
    print(text)
print(f"reference: {count} public symbols, {links} links, {len(set(errors))} errors")
sys.exit(1 if errors else 0)
