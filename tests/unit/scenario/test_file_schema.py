"""The JSON schema agrees with what is loaded: files that load pass it, files with mistakes do not."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from fairwave.scenario.file_schema import file_schema
from fairwave.scenario.loading import load_scenario, preset_names
from fairwave.scenario.show import to_toml

ROOT = Path(__file__).parents[3]
PRESETS = ROOT / "src" / "fairwave" / "scenario" / "presets"
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
NO_SCENARIO = ("[grid]", "[random]", "[project")
"""Blocks of TOML that describe a study or a package."""
BLOCKS = {
    f"{page.name} {place}": block
    for page in PAGES
    for place, block in enumerate(re.findall(r"```toml\n(.*?)```", page.read_text("utf-8"), re.DOTALL))
    if not any(head in block for head in NO_SCENARIO)
}
CHECK = Draft202012Validator(file_schema())
START = 'extends = "paper"\n'
MISTAKES = {
    "unknown group": START + "[radios]\nx = 1\n",
    "unknown key": START + "[radio]\nbandwith_hz = 1e6\n",
    "unknown nested key": START + '[cell]\nplacement = { law = "disc", radius_m = 10, inner_m = 1 }\n',
    "unknown law": START + '[radio]\nfading = { law = "raleigh", scale = 1 }\n',
    "out of range": START + "[radio]\namplifier_efficiency = 1.5\n",
    "no whole number": START + "[cell]\nnum_devices = 2.5\n",
    "another kind of value": START + "[cell]\ndeadline_s = true\n",
    "extends a number": "extends = 3\n",
    "nothing to start from": "[run]\nseed = 1\n",
    "another word for unset": START + '[run]\nseed = "none"\n',
}


def test_it_is_a_schema():
    Draft202012Validator.check_schema(file_schema())


@pytest.mark.parametrize("name", preset_names())
def test_presets_pass_as_files_and_in_full(name):
    CHECK.validate(tomllib.loads((PRESETS / f"{name}.toml").read_text("utf-8")))
    whole = tomllib.loads(to_toml(load_scenario(name)))
    CHECK.validate(whole)
    assert not CHECK.is_valid({**whole, "radio": {}})  # a file that starts from nothing needs every key


def test_there_are_blocks_to_check():
    assert len(BLOCKS) > 10 and any(name.startswith("getting_started.md") for name in BLOCKS)


@pytest.mark.parametrize("block", BLOCKS.values(), ids=BLOCKS)
def test_scenarios_of_the_documents_pass(block):
    tables = tomllib.loads(block)
    CHECK.validate(tables if "extends" in tables else {"extends": "paper", **tables})


@pytest.mark.parametrize("content", MISTAKES.values(), ids=MISTAKES)
def test_mistakes_do_not_pass(content):
    assert not CHECK.is_valid(tomllib.loads(content))


def test_a_value_can_be_dropped_and_names_are_suggested():
    CHECK.validate({"extends": "paper", "radio": {"payload_bits": "unset"}})
    assert "softmax" in file_schema()["$defs"]["Learning"]["properties"]["model"]["examples"]
    assert "fair" in file_schema()["properties"]["extends"]["examples"]
