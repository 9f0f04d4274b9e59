"""docs/equations.md and the docstrings name the same functions, each equation once."""

from __future__ import annotations

import ast
import collections
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "fairwave"
IN_CODE = {*range(1, 6), *range(9, 17), *range(21, 34), *range(35, 42)}

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
    for number, function, _ in rows_in_docs(text):
        claims[int(number)].append(function)
    return dict(claims)


def rows_in_docs(text: str) -> list[tuple[str, str, str]]:
    """Number, function and use of every row."""
    return re.findall(r"^\| (\d+) \|[^|]*\| `([\w.]+)` \| ?([^|]*?) ?\|$", text, flags=re.MULTILINE)


def functions_called(package: Path) -> set[str]:
    """Functions that another function, or a module, uses. A function that only uncalled ones use counts as called."""
    called: set[str] = set()
    for path in sorted(package.rglob("*.py")):
        module, tree = ".".join(path.relative_to(package).with_suffix("").parts), ast.parse(path.read_text("utf-8"))
        known = {node.name: f"{module}.{node.name}" for node in tree.body if isinstance(node, ast.FunctionDef)}
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("fairwave."):
                origin = (node.module or "").removeprefix("fairwave.")
                known |= {alias.asname or alias.name: f"{origin}.{alias.name}" for alias in node.names}
        for statement in tree.body:
            own = statement.name if isinstance(statement, ast.FunctionDef) else None
            used = {node.id for node in ast.walk(statement) if isinstance(node, ast.Name)}
            called |= {known[name] for name in used & set(known) if name != own}
    return called


def test_every_equation_is_called_or_said_to_be_a_check():
    called = functions_called(PACKAGE)
    rows = rows_in_docs((ROOT / "docs" / "equations.md").read_text("utf-8"))
    assert {function for _, function, use in rows if use != "check only"} <= called
    checks = {function for _, function, use in rows if use == "check only"}
    assert checks - called == {function for function in checks if function != "wireless.rate.uplink_rate_bps"}
    assert {use for _, _, use in rows} == {"", "check only"}


def test_a_function_without_a_caller_is_noticed(tmp_path: Path):
    (tmp_path / "a.py").write_text("def f():\n    return f\n\n\ndef g():\n    return 1\n\n\nX = g()\n", "utf-8")
    (tmp_path / "b.py").write_text("from fairwave.a import f as h\n\n\ndef k():\n    return 2\n", "utf-8")
    assert functions_called(tmp_path) == {"a.g"}


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
