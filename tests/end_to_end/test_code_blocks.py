"""Every code block of the pages is run, as far as a test can; a line that no test knows what to do with fails.

Commands that train for long are run with `--dry-run`, which checks everything but the training, or their options are
parsed only. What they would have written is stood in for by small runs under the same names. Python blocks are run
with fewer rounds. TOML blocks are read in tests/unit/scenario/test_file_schema.py; blocks that define plugins, in
tests/conformance.
"""

from __future__ import annotations

import dataclasses
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
import typer

import fairwave
from fairwave.cli.main import app
from tests.end_to_end import command_line

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]
PAGES = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")] + sorted((ROOT / "docs").glob("*.md"))
BLOCK = re.compile(r"^( *)```([\w.]*)\n(.*?)^\1```", re.MULTILINE | re.DOTALL)
PARSED_ONLY = (
    "audit",
    "reproduce",
    "study",
    "ui",
    "data get",
    "data add",
    "federate local",
    "federate status",
    "sweep study",
)
"""Commands that take minutes, do not end, or need a network, machines or a cluster: their options are read."""
ELSEWHERE = (
    "pip install",
    "export ",
    "docker ",
    "dask ",
    "tensorboard ",
    ".venv/bin/marimo ",
    "python3 -m venv",
    ".venv/bin/pip",
)
"""Programs that are not ours, or that install."""
PRINTED = {
    "README.md": ("proposed, seed 0, round 1: loss", "┃", "│"),
    "docs/plan.md": ("┃", "│"),
    "docs/getting_started.md": ("fairwave: mine.toml: radio.bandwith_hz",),
    "docs/extending.md": ("fairwave: runs/mine: was begun with plugin",),
}
"""Beginnings of lines that a page shows as output; this file and test_documented_output.py compare them."""
FEW = ["data.samples_per_device=40", "cell.num_devices=4"]
SMALL = ["learning.model=softmax", "learning.layer_sizes=[784, 10]", *FEW]
PRIVATE = ["data.samples_per_device=1000", "radio.payload_bits=unset", "compute.max_iterations=20"]


@dataclasses.dataclass(frozen=True)
class Block:
    """A block of code, and where it stands."""

    page: str
    line: int
    language: str
    text: str

    def commands(self) -> list[str]:
        """Its lines without comments, prompts and line breaks."""
        joined = self.text.replace("\\\n", " ")
        lines = [re.sub(r"^(\w+\$) +", "", line.strip()) for line in joined.splitlines()]
        return [line for line in lines if line and not line.startswith("#")]


def blocks() -> Iterator[Block]:
    for path in PAGES:
        text = path.read_text("utf-8")
        for found in BLOCK.finditer(text):
            line = text[: found.start()].count("\n") + 1
            yield Block(path.relative_to(ROOT).as_posix(), line, found[2], found[3])


def named(block: Block) -> str:
    return f"{block.page}:{block.line}"


BLOCKS = list(blocks())
SHELL = [block for block in BLOCKS if not block.language]
PYTHON = [block for block in BLOCKS if block.language == "python" and "import annotations" not in block.text]


def trained(folder: Path, source: str, *settings: str) -> None:
    """A small run as `fairwave run` stores it."""
    options = [part for setting in settings for part in ("--set", setting)]
    arguments = ["run", source, "--rounds", "10", "--out", str(folder), *options]
    subprocess.run([sys.executable, "-m", "fairwave", *arguments], check=True, capture_output=True, timeout=300)


@pytest.fixture(scope="module")
def ready(tmp_path_factory) -> Path:
    """A folder with what the pages assume: examples, runs, and the files of a reader."""
    folder = tmp_path_factory.mktemp("pages")
    shutil.copytree(ROOT / "examples", folder / "examples")
    trained(folder / "runs" / "paper", "small", *SMALL, "run.keep_models=all")
    for name in ("clean", "small", "worst-off", "federated-small"):
        shutil.copytree(folder / "runs" / "paper", folder / "runs" / name)
    trained(folder / "runs" / "fair", "fair-mlp", *SMALL, *PRIVATE)
    trained(folder / "any", "paper", *FEW)
    shutil.copytree(folder / "runs" / "fair", folder / "run")  # the access point's
    key = folder / "statement.key"
    subprocess.run(["openssl", "genpkey", "-algorithm", "ed25519", "-out", str(key)], check=True, capture_output=True)
    public = ["openssl", "pkey", "-in", str(key), "-pubout", "-out", str(folder / "statement.pub")]
    subprocess.run(public, check=True, capture_output=True)
    key.chmod(0o600)
    export = ["export", "any", "--scheme", "proposed", "--to", "pretrained.safetensors"]
    subprocess.run([sys.executable, "-m", "fairwave", *export], cwd=folder, check=True, capture_output=True)
    machines = ["federate", "init", "machines", "fair", "--nodes", "2", "--host", "ap.example.org"]
    subprocess.run([sys.executable, "-m", "fairwave", *machines], cwd=folder, check=True, capture_output=True)
    (plugin,) = (block.text for block in BLOCKS if block.page == "docs/schemes.md" and block.language == "python")
    (folder / "median.py").write_text(plugin, "utf-8")
    (folder / "mine.py").write_text(plugin.replace("median = ", "mine = ").replace('name="median"', 'name="mine"'))
    return folder


def parsed(arguments: list[str]) -> None:
    """Read the options of a command as the program does, and do not run it."""
    command: click.Command = typer.main.get_command(app)
    context = command.make_context("fairwave", arguments.copy())
    while isinstance(command, click.Group):
        name, command, arguments = command.resolve_command(context, arguments)
        context = command.make_context(name, arguments.copy(), parent=context)


def run_line(line: str, capsys, monkeypatch) -> None:
    words = shlex.split(line, comments=True)
    if "&&" in words:
        for part in line.split("&&"):
            run_line(part.strip(), capsys, monkeypatch)
        return
    if line.startswith(ELSEWHERE):
        return
    if words[0] == "make" and words[1].startswith((".venv", "dist", "run", "test")):
        subprocess.run(["make", "-n", words[1]], cwd=ROOT, check=True, capture_output=True)
        return
    if words[:2] == ["python", "examples/verify_statement.py"]:
        subprocess.run([sys.executable, *words[1:]], check=True, capture_output=True, timeout=300)
        return
    if words[0].startswith("./"):
        assert list(Path().glob(f"machines/*/{words[0]}")), f"no machine has {words[0]}"
        return
    assert words[0] in ("fairwave", ".venv/bin/fairwave"), f"no test knows what to do with: {line}"
    arguments = words[1:]
    command = " ".join(arguments)
    if command.startswith(PARSED_ONLY) or "fashion-mnist" in command:  # which nobody may fetch here
        parsed(arguments)
        return
    if arguments[0] in ("run", "sweep") and "--dry-run" not in arguments:
        arguments.append("--dry-run")
    if arguments[:2] == ["federate", "init"]:  # on several pages
        shutil.rmtree(arguments[2], ignore_errors=True)
    said = command_line.fairwave(capsys, monkeypatch, *arguments)
    assert said.code == 0, f"{line}\n{said.out}{said.err}"


@pytest.mark.parametrize("block", SHELL, ids=named)
def test_commands(block, ready, capsys, monkeypatch):
    monkeypatch.chdir(ready)
    for line in block.commands():
        if not line.startswith(PRINTED.get(block.page, ())):
            run_line(line, capsys, monkeypatch)


@pytest.mark.parametrize("block", PYTHON, ids=named)
def test_python(block, ready, monkeypatch):
    simulate = fairwave.simulate

    def shorter(scenario, *arguments, **options):
        return simulate(fairwave.load_scenario(scenario, SMALL), *arguments, **{**options, "rounds": 2})

    monkeypatch.chdir(ready)
    monkeypatch.setattr(fairwave, "simulate", shorter)
    exec(compile(block.text, named(block), "exec"), {"fairwave": fairwave})
