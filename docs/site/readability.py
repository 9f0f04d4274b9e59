"""Check that the written pages read as easily as those of two projects whose documentation is praised.

Measured in the same way (docs/site/prose.py, then textstat 0.7.8) on three pages of each, as their repositories had
them in the commits named here. The columns are Flesch's reading ease, of which more is easier, and the mean number of
words in a sentence.

    httpx    docs/async.md 0162f3f4                 61.4    13.5 words
             docs/advanced/clients.md 041470bf      53.0    16.4
             docs/advanced/ssl.md 0f9cd3fd          50.1    12.7
    Flower   explanation-federated-evaluation.rst 7065c977    32.7    17.6
             explanation-differential-privacy.rst 02c62f28    31.1    19.5   (its first two thirds)
             how-to-design-stateful-clients.rst 1a336daf      60.8    17.0

A page has to be as easy as the hardest page of httpx, and its sentences no longer than in the longest-winded of Flower.
"""

from __future__ import annotations

import dataclasses

from docs.site.contents import DOCS, ROOT, source_of, written_pages
from docs.site.prose import prose

LEAST_EASE, MOST_WORDS = 50.0, 19.5
NOT_MEASURED = ("changelog.md",)
"""Lists of entries rather than prose."""
ALLOWED: dict[str, float] = {}
"""Pages whose sentences are longer still, and how long they may be. The list can only shrink: a page that no longer
needs its place here has to be removed from it, and no page can get a longer limit than it has."""


@dataclasses.dataclass(frozen=True)
class Reading:
    """How a page reads."""

    page: str
    ease: float
    words_per_sentence: float


def reading_of(page: str, markdown: str) -> Reading:
    """Reading ease, and the mean number of words in a sentence."""
    import textstat

    text = prose(markdown)
    return Reading(page, round(textstat.flesch_reading_ease(text), 1), round(textstat.words_per_sentence(text), 1))


def readings() -> list[Reading]:
    """Those of all written pages and of the README."""
    pages = [("README.md", ROOT / "README.md"), ("index.md", DOCS / "index.md")]
    pages += [(page, source_of(page)) for page in written_pages() if page not in NOT_MEASURED]
    return [reading_of(page, path.read_text("utf-8")) for page, path in pages]


def problems(measured: list[Reading] | None = None) -> list[str]:
    """One line for each page that is too hard to read, or that has an allowance it does not need."""
    found = []
    for each in readings() if measured is None else measured:
        limit = ALLOWED.get(each.page, MOST_WORDS)
        if each.ease < LEAST_EASE:
            found.append(
                f"{each.page}: reading ease {each.ease} is below {LEAST_EASE}; use shorter words and sentences"
            )
        if each.words_per_sentence > limit:
            found.append(
                f"{each.page}: {each.words_per_sentence} words per sentence are more than {limit}; split the longest"
            )
        elif each.page in ALLOWED and each.words_per_sentence <= MOST_WORDS:
            found.append(f"{each.page}: meets the limit now; remove it from ALLOWED in docs/site/readability.py")
    return found
