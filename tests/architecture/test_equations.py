"""docs/equations.md and the docstrings name the same functions, each equation once."""

from __future__ import annotations

import ast
import collections
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "fairwave"
IN_CODE = {*range(1, 6), *range(9, 17), *range(22, 34), *range(35, 42)}

Claims = dict[int, list[str]]


def claims_in_code(package: Path) -> Claims:
    claims: Claims = collections.defaultdict(list)
    for path in sorted(package.rglob("*.py")):
        module = ".".join(path.relative_to(package).with_suffix("").parts)
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef):
                match = re.search(r"Paper: Eq\. \((\d+)\)\.?$", ast.get_docstring(node) or "")
                if match:
                    claims[int(match[1])].append(f"{module}.{node.name}")
    return dict(claims)


def claims_in_docs(text: str) -> Claims:
    claims: Claims = collections.defaultdict(list)
    for number, function in re.findall(r"^\| (\d+) \|[^|]*\| `([\w.]+)` \|$", text, flags=re.MULTILINE):
        claims[int(number)].append(function)
    return dict(claims)


def test_map_and_code_agree():
    documented = claims_in_docs((ROOT / "docs" / "equations.md").read_text("utf-8"))
    assert documented == claims_in_code(PACKAGE)
    assert set(documented) == IN_CODE


def test_each_equation_lives_once():
    assert {number: places for number, places in claims_in_code(PACKAGE).items() if len(places) > 1} == {}


CLAIM = '    """{}\n\n    Paper: Eq. (7).\n    """\n'


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("def f():\n" + CLAIM.format("Says so."), {7: ["m.f"]}),
        ('def f():\n    """Mentions Paper: Eq. (7). in passing."""\n', {}),
        ("def f():\n" + CLAIM.format("A.") + "def g():\n" + CLAIM.format("B."), {7: ["m.f", "m.g"]}),
    ],
)
def test_the_check_sees_what_it_should(tmp_path: Path, source: str, expected: Claims):
    (tmp_path / "m.py").write_text(source, "utf-8")
    assert claims_in_code(tmp_path) == expected


def test_a_missing_or_moved_row_is_noticed():
    text = (ROOT / "docs" / "equations.md").read_text("utf-8")
    without = "\n".join(line for line in text.splitlines() if not line.startswith("| 39 |"))
    moved = text.replace("`policy.utility.utility`", "`policy.utility.worth`")
    code = claims_in_code(PACKAGE)
    assert claims_in_docs(without) != code
    assert claims_in_docs(moved) != code
