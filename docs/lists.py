"""Write the tables of the documentation that list what fairwave has, from its registries.

A table stands between `<!-- list: NAME -->` and `<!-- end -->`. `python docs/lists.py` writes all of them anew;
`--check` says whether they are up to date, for the tests.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from fairwave.extensions import AGGREGATORS, BEHAVIOURS, DATA, DEFENCES, PRIVACY_MODES, SCHEMES
from fairwave.studies.contribution_scores import SCORE_RULES

DOCS = Path(__file__).parent
FILES = tuple(DOCS / f"{page}.md" for page in ("schemes", "adversaries", "privacy", "data", "contribution"))
PLACE = re.compile(r"(<!-- list: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def table(name: str) -> str:
    """One list as a table."""
    if name == "not_private":
        return _not_private()
    if name == "score_rules":
        return _as_table(["Name", "What it looks at"], [[f"`{rule.name}`", rule.summary] for rule in SCORE_RULES])
    members = {
        "schemes": SCHEMES,
        "behaviours": BEHAVIOURS,
        "defences": DEFENCES,
        "aggregators": AGGREGATORS,
        "data": DATA,
    }[name]
    builtin = [members[each] for each in members.builtin_names()]
    if name == "defences":
        builtin.sort(key=lambda defence: defence.order)
    heads, rows = ["Name", "What it is"], [[f"`{each.name}`", each.summary] for each in builtin]
    if name == "behaviours":
        heads.append("Strength by default")
        for row, each in zip(rows, builtin, strict=True):
            row.append("" if each.strength is None else f"{each.strength:g}")
    return _as_table(heads, rows)


def _not_private() -> str:
    """What modes that prove something leave uncovered, field by field."""
    modes = [mode for mode in PRIVACY_MODES.values() if mode.proves]
    reasons = {name: reason for mode in modes for name, reason in mode.not_private().items()}
    rows = [
        [f"`{name}`", reason, ", ".join(f"`{mode.name}`" for mode in modes if name in mode.not_private())]
        for name, reason in reasons.items()
    ]
    return _as_table(["Field", "Why it is not private", "In mode"], rows)


def _as_table(heads: list[str], rows: list[list[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def written(text: str) -> str:
    """A page with its lists as they should be."""
    return PLACE.sub(lambda found: found[1] + table(found[2]) + found[3], text)


def main() -> None:
    """Write, or check."""
    stale = [path for path in FILES if written(path.read_text("utf-8")) != path.read_text("utf-8")]
    if "--check" in sys.argv:
        sys.exit(f"out of date: {', '.join(path.name for path in stale)}; run: python docs/lists.py" if stale else 0)
    for path in stale:
        path.write_text(written(path.read_text("utf-8")), "utf-8")


if __name__ == "__main__":
    main()
