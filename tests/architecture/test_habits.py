"""Files that only other programs read: hooks, templates and the development container."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import yaml
from pre_commit.clientlib import load_config

ROOT = Path(__file__).parents[2]


def test_hooks_are_programs_of_the_environment():
    """Nothing is fetched for a hook, and the checks are those of `make test` that take seconds."""
    path = ROOT / ".pre-commit-config.yaml"
    load_config(str(path))  # raises if it is none
    config = yaml.safe_load(path.read_text("utf-8"))
    hooks = [hook for repository in config["repos"] for hook in repository["hooks"]]
    assert {repository["repo"] for repository in config["repos"]} == {"local"}
    assert {hook["language"] for hook in hooks} == {"system"}
    programs = {hook["entry"].split()[0] for hook in hooks}
    assert programs == {f".venv/bin/{name}" for name in ("codespell", "hadolint", "lint-imports", "mypy", "ruff")}
    makefile = (ROOT / "Makefile").read_text("utf-8")
    assert all(program.replace(".venv/bin", "$(BIN)") in makefile for program in programs)


def test_issue_templates_ask_for_something():
    for path in sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml")):
        form = yaml.safe_load(path.read_text("utf-8"))
        if path.stem == "config":
            continue
        fields = [part for part in form["body"] if part["type"] != "markdown"]
        assert form["name"] and form["description"] and len({part["id"] for part in fields}) == len(fields) > 0
        assert any(part["validations"]["required"] for part in fields if "validations" in part)


def test_links_of_the_security_page_lead_somewhere():
    targets = re.findall(r"\]\(([^)#]+)", (ROOT / "SECURITY.md").read_text("utf-8"))
    assert targets and all((ROOT / target).is_file() for target in targets)


def test_the_development_container_has_the_oldest_python_and_sets_up_what_tests_need():
    container = json.loads((ROOT / ".devcontainer" / "devcontainer.json").read_text("utf-8"))
    dockerfile = (ROOT / ".devcontainer" / container["build"]["dockerfile"]).read_text("utf-8")
    oldest = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["requires-python"]
    assert f"ARG PYTHON={oldest.removeprefix('>=')}" in dockerfile
    assert "make .venv/tested" in container["postCreateCommand"]
