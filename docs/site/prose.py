"""The prose of a Markdown page: what a reader reads as sentences, without code, tables, headings and addresses."""

from __future__ import annotations

import re

FENCED = re.compile(r"^ *(```|~~~).*?^ *\1 *$", re.MULTILINE | re.DOTALL)
COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
NOT_SENTENCES = re.compile(r"^ *(#|\||!\[|<|:::).*$", re.MULTILINE)
LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
CODE = re.compile(r"`+[^`]+`+")
ITEM = re.compile(r"^ *(?:[-*+]|\d+\.) +", re.MULTILINE)
ENDED = re.compile(r"[.!?:;…][)\"'*_]*$")


def prose(markdown: str) -> str:
    """Paragraphs and list items, one a line, each ended as a sentence. A piece of code counts as one short word."""
    text = COMMENT.sub("", FENCED.sub("\n\n", markdown))
    text = NOT_SENTENCES.sub("\n", text)
    text = CODE.sub("name", LINK.sub(r"\1", text))
    text = ITEM.sub("\n", text).replace("*", "").replace("_", " ")
    paragraphs = (" ".join(each.split()) for each in re.split(r"\n\s*\n", text))
    return "\n".join(each if ENDED.search(each) else f"{each}." for each in paragraphs if each).replace(":\n", ".\n")
