"""documents.py - what the documents say, for the tests that hold them to it:
commands.t runs it, docs.t compares it with the sources."""
import glob
import os
import re

from harness import SRC, text_of

DOCUMENTS = sorted(
    os.path.relpath(p, SRC) for folder in ("", "docs") for p in glob.glob(os.path.join(SRC, folder, "*.md")))


def blocks(language, *names):
    """The fenced blocks of a language: document and text."""
    found = []
    for name in names or DOCUMENTS:
        for indent, block in re.findall(r"^( *)```%s\n(.*?)^\1```$" % language, text_of(name), re.M | re.S):
            found.append((name, re.sub("^" + indent, "", block, flags=re.M)))
    return found


def prose(name):
    """A document without its fenced blocks."""
    return re.sub(r"^( *)```\w*\n.*?^\1```$", "", text_of(name), flags=re.M | re.S)


def shell_lines(*names):
    """Every line that is there to be pasted, without its comment: document and line."""
    found = []
    for name, block in blocks("sh", *names):
        for line in block.replace("\\\n", "").splitlines():
            line = re.sub(r"(^|\s)#.*$", "", line).strip()
            if line:
                found.append((name, line))
    return found


def part(name, heading):
    """What is below a heading, as far as the next one of its rank."""
    rank, text = re.search(r"^(##+) %s\n(.*)" % re.escape(heading), text_of(name), re.M | re.S).groups()
    return re.split(r"^#{2,%d} " % len(rank), text, flags=re.M)[0]


def block(name, heading, language):
    """The first fenced block of a language below a heading."""
    return re.search(r"^```%s\n(.*?)^```$" % language, part(name, heading), re.M | re.S).group(1)


def tables(name, heading):
    """The rows of each table below a heading; cells without blanks and backquotes."""
    found, table = [], []
    for line in part(name, heading).splitlines() + [""]:
        if line.startswith("|"):
            table.append([c.strip().strip("`").strip() for c in re.split(r"(?<!\\)\|", line)[1:-1]])
        elif table:
            found.append(table[2:])  # without head and rule
            table = []
    return found
