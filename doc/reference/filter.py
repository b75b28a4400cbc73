#!/usr/bin/env python3
"""A header or a page as Doxygen wants to read it: filter.py FILE

Our headers carry plain comments. What a comment belongs to follows from where it stands:
  - the comment at the top of a file is about the file
  - a comment right above a declaration is about it, and about those that follow without a blank line between
  - a comment behind a declaration, in its last line, is about it
  - a type that has the name of the file, and no comment, is what the top of the file is about
Comments inside functions, and those with a blank line below, are left alone. Lines are neither added nor removed above
a declaration except for comments that are repeated, so Doxygen's line numbers stay close. A page that links to a header
links to its page in the reference.
"""
import re
import sys
from pathlib import Path

TYPE = re.compile(r"\b(class|struct|union|enum|namespace)\b")


def without_templates(text):
    """Drops `template <...>`, whose parameters are declared with `class`."""
    while (found := re.search(r"\btemplate\s*<", text)):
        depth, at = 1, found.end()
        while at < len(text) and depth:
            depth += {"<": 1, ">": -1}.get(text[at], 0)
            at += 1
        text = text[:found.start()] + text[at:]
    return text


def opens_scope(text):
    """Whether `{` after this text opens a namespace, class, enum or `extern "C"`, not a body or an initialiser."""
    text = without_templates(text)
    text = re.sub(r"__attribute__\(\(.*?\)\)|alignas\(.*?\)", "", text)
    return bool(TYPE.search(text) or re.search(r'\bextern ""\s*$', text)) and not re.search(r"[=(]", text)


class Line:
    def __init__(self, text):
        self.text = text
        self.code = text       # without its comment
        self.comment = None    # the words of a // comment
        self.between = True    # begins between declarations
        self.starts = False    # a declaration begins here
        self.ends = False      # and the last one that is touched ends here
        self.opens = False     # a namespace, class or enum begins or ends here


def read(source):
    """Splits code from comments, and finds where declarations begin and end."""
    lines = [Line(text) for text in source.split("\n")]
    scopes = []          # True: a namespace, class or enum; False: a body or an initialiser
    text = ""            # of the declaration so far
    parentheses = 0
    directive = False
    for line in lines:
        raw = line.text
        line.between = all(scopes) and not text.strip()
        if directive or raw.lstrip().startswith("#"):
            directive = raw.endswith("\\")
            continue
        i = 0
        while i < len(raw):
            c = raw[i]
            if raw.startswith("//", i):
                line.code, line.comment = raw[:i], raw[i + 2:]
                break
            if c == '"' or (c == "'" and not (i and raw[i - 1].isalnum())):  # not the ' of 1'000
                j = i + 1
                while j < len(raw) and raw[j] != c:
                    j += 2 if raw[j] == "\\" else 1
                text += '""'
                i = j + 1
                continue
            if all(scopes) and not text.strip() and not c.isspace() and c not in "};" and not re.match(
                    r"(public|private|protected):", raw[i:]):
                line.starts, line.ends = True, False
            parentheses += (c in "([") - (c in ")]")
            ended = False
            if c == "{":
                scopes.append(parentheses == 0 and all(scopes) and opens_scope(text))
                if scopes[-1]:
                    line.opens, text = True, ""
                    i += 1
                    continue
            elif c == "}" and scopes:
                if scopes.pop():
                    if text.strip():  # the last enumerator
                        line.ends = True
                    line.opens, text = not line.starts, ""
                    i += 1
                    continue
                # The body of a function ends it; an initialiser goes on to its semicolon.
                ended = all(scopes) and parentheses == 0 and not re.match(r"\s*[;,(){}&|.]", raw[i + 1:])
            elif all(scopes) and parentheses == 0:
                ended = c == ";" or (c == "," and re.fullmatch(r"\s*\w+\s*(=[^,]*)?", text))  # an enumerator
                if re.fullmatch(r"\s*(public|private|protected)", text) and c == ":":
                    text = ""
                    i += 1
                    continue
            if ended:
                line.ends, text = True, ""
            else:
                text += c
            i += 1
        if text.strip():
            text += " "
            line.ends = line.ends and not all(scopes)
            if re.fullmatch(r"\s*\w+\s*(=.*)?", text) and line.starts:
                line.ends = True  # an enumerator without a comma
    return lines


def words(comment):
    """What Doxygen would take for commands, as it is."""
    return re.sub(r"([\\@#<>&|])", r"\\\1", comment)


def block(comments, indent, first="///"):
    """Comment lines as documentation. What is indented is a picture, and stays as it is."""
    out, picture = [], False
    for comment in comments:
        drawn = comment.startswith("   ") and comment.strip()
        if drawn and not picture:
            out.append(f"{indent}/// @verbatim")
        if picture and not drawn and comment.strip():
            out.append(f"{indent}/// @endverbatim")
        picture = drawn or (picture and not comment.strip())
        out.append(f"{indent}///{comment if picture else words(comment)}")
    if picture:
        out.append(f"{indent}/// @endverbatim")
    return out


def named_after(text, file):
    """For LineBloom, LineBloomView and BasicLineBloom in line_bloom.h."""
    name = "".join(part.capitalize() for part in Path(file).stem.split("_"))
    if re.match(rf"\s*(template.*|class|struct|using) *\w*{name}\w*", text):
        return [f" See {Path(file).name}, whose introduction is about it."]
    return []


def documented(source, file):
    lines = read(source)
    out = []
    last = []          # the comment of the declaration before, as long as nothing separates them
    i = 0
    while i < len(lines) and is_comment(lines[i]):
        i += 1
    if i:
        out += ["/// @file"] + block([line.comment for line in lines[:i]], "")
    while i < len(lines):
        indent = re.match(r"\s*", lines[i].text).group()
        above = i
        while i < len(lines) and is_comment(lines[i]) and lines[i].between:
            i += 1
        line = lines[i] if i < len(lines) else None
        if i > above:
            last = [comment.comment for comment in lines[above:i]]
            if line is None or not line.starts or not line.between:
                out += [comment.text for comment in lines[above:i]]
                last = []
                continue
        if line.starts and line.between and not (i == above and line.comment is not None and line.ends):
            # If nothing stands above it, what was said above the one before holds for it too.
            out += block(last or named_after("".join(after.text for after in lines[i:i + 2]), file), indent)
        if not line.text.strip() or line.opens:
            last = []
        if line.comment is not None and line.starts and line.ends and line.code.strip():
            out.append(f"{line.code}///<{words(line.comment)}")
        else:
            out.append(line.text)
        i += 1
    return "\n".join(out)


def is_comment(line):
    return line.comment is not None and not line.code.strip()


if __name__ == "__main__":
    with open(sys.argv[1]) as header:
        text = header.read()
    if sys.argv[1].endswith(".md"):
        # Doxygen has names of its own for headings; test/links_test.py looks at them.
        text = re.sub(r"(\]\([\w./-]+\.md)#[\w-]+\)", r"\1)", text)
        sys.stdout.write(re.sub(r"\]\((?:\.\./)*include/([\w/]+\.h)\)", r"](@ref \1)", text))
    else:
        sys.stdout.write(documented(text, sys.argv[1]))
