"""The manual page (:manpage:`man(7)`), made from the Markdown of docs/cli.md.

It knows only the Markdown that this page has: headings, paragraphs, tables of two columns, indented code, lists, and
within a line code, bold text and links. A table becomes a list of terms with explanations.
"""

import re
from collections.abc import Iterator

import vfsd

_NAME = "vfsd - ordinary files for agent runs, mounted through FUSE and written through to a store"
_SYNOPSIS = r"\fBvfsd\fR \fICOMMAND\fR [\fIOPTION\fR]... [\fIARGUMENT\fR]..."

_COMMENT = re.compile(r"<!--.*?-->\n*", re.DOTALL)
_INLINE = re.compile(r"`([^`]+)`|\*\*([^*]+)\*\*|\[([^\]]+)\]\(([^)]+)\)")
_AFTER_HEADING = re.compile(r"(\.S[HS](?: .*)?\n)\.PP\n")
"""A paragraph after a heading needs no request of its own."""
_CELLS = re.compile(r"(?<!\\)\|")


def manual(page: str) -> str:
    """Return the manual page for the Markdown *page*."""
    title, *blocks = re.split(r"\n{2,}", _COMMENT.sub("", page).strip())
    assert title.startswith("# ")
    lines = [f'.TH VFSD 1 "" "vfsd {vfsd.__version__}" "User Commands"', ".nh", ".ad l", ".SH NAME", _escaped(_NAME)]
    lines += [".SH SYNOPSIS", _SYNOPSIS, ".SH DESCRIPTION"]
    for block in blocks:
        lines += _block(block)
    return _AFTER_HEADING.sub(r"\1", "\n".join(lines) + "\n")


def _block(block: str) -> Iterator[str]:
    """Yield the lines of roff for one *block* of Markdown."""
    if block.startswith("## "):
        yield f".SH {_inline(block[3:].upper())}"
    elif block.startswith("### "):
        yield f".SS {_inline(block[4:])}"
    elif block.startswith("|"):
        yield from _table(block)
    elif block.startswith("    "):
        yield from (".PP", ".RS 4", ".nf", *(_escaped(line[4:]) for line in block.splitlines()), ".fi", ".RE")
    elif block.startswith("- "):
        for item in re.split(r"^- ", block, flags=re.MULTILINE)[1:]:
            yield from (r".IP \(bu 2", _paragraph(item))
    else:
        yield from (".PP", _paragraph(block))


def _table(block: str) -> Iterator[str]:
    """Yield a term with its explanation for each row of a table, without its two lines of heading."""
    for row in block.splitlines()[2:]:
        _, term, explanation, _ = (cell.strip().replace("\\|", "|") for cell in _CELLS.split(row))
        yield from (".TP", _inline(term if "`" in term else f"**{term}**"), _paragraph(explanation))


def _paragraph(text: str) -> str:
    """Return *text* as lines that are no requests of roff, a sentence in each."""
    sentences = re.split(r"(?<=[.!?]) +", " ".join(text.split()))
    return "\n".join(map(_inline, sentences))


def _inline(text: str) -> str:
    parts, end = [], 0
    for match in _INLINE.finditer(text):
        parts += [_escaped(text[end : match.start()]), _marked(match)]
        end = match.end()
    line = "".join([*parts, _escaped(text[end:])])
    return f"\\&{line}" if line.startswith((".", "'")) else line


def _marked(match: re.Match[str]) -> str:
    code, bold, label, target = match.groups()
    if label is None:
        return f"\\fB{_escaped(code or bold)}\\fR"
    return _escaped(f"docs/{target}" if label.endswith(".md") else label)


def _escaped(text: str) -> str:
    r"""Return *text* as roff reads it back. ``\-`` is the hyphen that can be pasted into a shell."""
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("…", "...")
    return "".join(letter if letter.isascii() else f"\\[u{ord(letter):04X}]" for letter in text)
