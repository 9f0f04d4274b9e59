"""What keeps the code readable, as far as a program can check it. Each check is tried on code that breaks it."""

from __future__ import annotations

import ast
import collections
import itertools
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "fairwave"
LONGEST, MOST_ARGUMENTS = 50, 6
FRAGMENT = re.compile(r"(Of|So many|Left out|Whose|Those|Likewise|Told|At which|By which|As in)\b")
"""Openings of docstrings that say nothing under `help()`."""
SAME_NAME_ON_PURPOSE = {"__init__.py", "__main__.py"}
MEMBERS = (PACKAGE / "schemes", PACKAGE / "policy" / "rules")
"""A scheme is called after the rule by which its devices plan."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


def functions(source: str) -> Iterator[Function]:
    return (node for node in ast.walk(ast.parse(source)) if isinstance(node, Function))


def too_long(source: str) -> list[str]:
    return [f.name for f in functions(source) if (f.end_lineno or f.lineno) - f.lineno + 1 > LONGEST]


def too_many_arguments(source: str) -> list[str]:
    def positional(f: Function) -> list[str]:
        return [arg.arg for arg in (*f.args.posonlyargs, *f.args.args) if arg.arg not in ("self", "cls")]

    return [f.name for f in functions(source) if len(positional(f)) > MOST_ARGUMENTS]


def fragments(source: str) -> list[str]:
    """Names whose documentation is a fragment: functions, classes, and values with a string after them."""
    tree = ast.parse(source)
    documented = {n.name: ast.get_docstring(n) or "" for n in ast.walk(tree) if isinstance(n, Function | ast.ClassDef)}
    for node in ast.walk(tree):
        body = getattr(node, "body", ())
        for before, after in itertools.pairwise(body if isinstance(body, list) else ()):
            if isinstance(before, ast.Assign | ast.AnnAssign) and isinstance(after, ast.Expr):
                target = before.targets[0] if isinstance(before, ast.Assign) else before.target
                if isinstance(after.value, ast.Constant) and isinstance(after.value.value, str):
                    documented[ast.unparse(target)] = after.value.value
    return [name for name, text in documented.items() if not name.startswith("_") and FRAGMENT.match(text)]


def sources(*folders: str) -> Iterator[tuple[Path, str]]:
    places = [PACKAGE / folder for folder in folders] if folders else [PACKAGE]
    return ((path, path.read_text("utf-8")) for place in places for path in sorted(place.rglob("*.py")))


def found(check, *folders: str) -> dict[str, list[str]]:
    return {str(path.relative_to(PACKAGE)): names for path, text in sources(*folders) if (names := check(text))}


def test_functions_of_the_trunk_fit_on_a_screen():
    assert found(too_long, "engine", "federate") == {}


def test_functions_of_the_trunk_take_few_positional_arguments():
    assert found(too_many_arguments, "engine", "federate") == {}


def test_public_docstrings_stand_alone():
    assert found(fragments) == {}


def test_nothing_is_kept_from_the_formatter():
    marker = "fmt: " + "skip"
    assert [path for path, text in sources() if marker in text] == []


def test_privacy_modes_are_asked_and_never_compared_by_name():
    compared = re.compile(r"""\bmode\s*[!=]=\s*["']|match [\w.]*privacy\.mode""")
    assert [str(path) for path, text in sources() if compared.search(text)] == []
    assert compared.search('if privacy.mode == "provable":') and not compared.search("mode.proves")


def test_double_precision_is_switched_on_in_one_module():
    places = [path.name for path, text in sources() for _ in re.findall(r"enable_x64\(", text)]
    assert set(places) == {"double_precision.py"} and len(places) <= 3


def test_file_names_differ_across_folders():
    names: dict[str, list[Path]] = collections.defaultdict(list)
    for path, _ in sources():
        if path.name not in SAME_NAME_ON_PURPOSE and path.parent not in MEMBERS:
            names[path.name].append(path)
    assert {name: paths for name, paths in names.items() if len(paths) > 1} == {}


LONG = "def f():\n" + "    x = 1\n" * 50
MANY = "def f(a, b, c, d, e, g, h):\n    pass\n"
METHOD = "class C:\n    def f(self, a, b, c, d, e, g, *, h):\n        pass\n"


@pytest.mark.parametrize(
    ("check", "source", "names"),
    [
        (too_long, LONG, ["f"]),
        (too_long, LONG.replace("    x = 1\n", "", 1), []),
        (too_many_arguments, MANY, ["f"]),
        (too_many_arguments, METHOD, []),
        (fragments, 'def f():\n    """Of a run."""\n', ["f"]),
        (fragments, 'class C:\n    """So many devices at a time; left out, all."""\n', ["C"]),
        (fragments, 'def _f():\n    """Of a run."""\n', []),
        (fragments, 'x = 1\n"""Of a run."""\n', ["x"]),
        (fragments, 'def f():\n    """The length of a run."""\n', []),
    ],
)
def test_the_checks_see_what_they_should(check, source, names):
    assert check(source) == names
