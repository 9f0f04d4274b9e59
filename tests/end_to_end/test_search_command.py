"""`fairwave reproduce --search`, as a user meets it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fairwave.report.search_file import read_search
from fairwave.runs.database import FILE
from fairwave.studies import benchmark_search
from fairwave.studies.benchmark_search import jobs
from fairwave.studies.jobs import run_all
from tests.builders import SOFTMAX_MNIST, as_options
from tests.end_to_end.command_line import Outcome, fairwave

TINY = (*as_options(SOFTMAX_MNIST), "--rounds", "3")


@pytest.fixture
def cli(capsys, monkeypatch):
    def call(*arguments: object) -> Outcome:
        return fairwave(capsys, monkeypatch, "reproduce", *map(str, arguments))

    return call


@pytest.fixture
def small_family(monkeypatch):
    """Two readings of the noise, and one of everything else that takes training."""
    monkeypatch.setattr(benchmark_search, "BENCHMARKS", ("priced",))
    monkeypatch.setattr(benchmark_search, "FITS", ("paper",))
    monkeypatch.setattr(benchmark_search, "PRESETS", {"off": "paper-clean"})
    noise = {name: benchmark_search.NOISE[name] for name in ("one_copy", "overwrite")}
    monkeypatch.setattr(benchmark_search, "NOISE", noise | {"draw_each": ()})


class Stopped(Exception):
    pass


@pytest.mark.slow
@pytest.mark.usefixtures("small_family")
def test_an_interrupted_search_goes_on_to_the_same_file(cli, tmp_path):
    whole, halves = tmp_path / "whole", tmp_path / "halves"
    said = cli("--search", *TINY, "--jobs", 1, "--out", whole)
    assert said.code == 0 and "(13 of 15 rounds" in said.err, said.err
    assert "of 54 members" in said.out and f"report: {whole}/report.html" in said.out
    assert sorted(path.parent.name for path in whole.glob(f"*/{FILE}")) == [
        "paper-clean-draw_each-paper",
        "paper-clean-one_copy-paper",
        "paper-clean-overwrite-paper",
    ]
    found = read_search(whole / "search.csv")
    assert len(found) == 3 * 2 * 9 and {member.readings["energy_rounds"] for member in found} == {"3"}
    sentence = next(line for line in said.out.splitlines() if "everything that the paper publishes" in line)
    assert sentence.partition(":")[0] in (whole / "report.html").read_text("utf-8")

    steps = []

    def stop(name, step):
        steps.append(step)
        if len(steps) == 7:
            raise Stopped

    with pytest.raises(Stopped):
        run_all(jobs(SOFTMAX_MNIST, [0], 3), halves, "", 1, stop)
    assert [path.parent.name for path in halves.glob(f"*/{FILE}")] == ["paper-clean-draw_each-paper"]
    said = cli("--search", *TINY, "--jobs", 1, "--out", halves)
    assert said.code == 0 and "draw_each-paper: proposed" not in said.err and "overwrite-paper: proposed" in said.err
    assert (halves / "search.csv").read_bytes() == (whole / "search.csv").read_bytes()

    stored = {path: path.read_bytes() for path in halves.glob(f"*/{FILE}")}
    assert cli("--search", *TINY, "--jobs", 1, "--out", halves).code == 0
    assert {path: path.read_bytes() for path in halves.glob(f"*/{FILE}")} == stored


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--set", "cell.num_devices=3"), "--set: the study has its own; leave it out, or ask for --search"),
        (("--jobs", "2"), "--jobs: the study has its own; leave it out, or ask for --search"),
        (("--search", "--set", "privacy.broadcast=true"), "the search has values of its own for privacy.broadcast"),
        (("--search", "--jobs", "0"), "--jobs 0: at least one is needed"),
        (("--search", "--seeds", "a"), "--seeds 'a': cannot be read"),
        (("--search", "--rounds", "0"), "rounds: 0 is too few"),
    ],
)
def test_wrong_input_is_one_line(cli, tmp_path, monkeypatch, options, said):
    monkeypatch.chdir(tmp_path)
    outcome = cli(*options)
    assert outcome.code == 2 and said in outcome.err and outcome.err.count("\n") == 1
    assert not list(tmp_path.glob(f"**/{FILE}"))


def test_help_teaches(cli):
    said = " ".join(cli("--help").out.split())
    assert "fairwave reproduce --search --jobs 2" in said and "search.csv" in said


@pytest.mark.slow
def test_the_whole_family_killed_and_gone_on_with(tmp_path: Path):
    def started(folder: Path) -> subprocess.Popen[str]:
        command = [
            sys.executable,
            "-m",
            "fairwave",
            "reproduce",
            "--search",
            *TINY,
            "--jobs",
            "2",
            "--out",
            str(folder),
        ]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=os.environ)

    killed, whole = tmp_path / "killed", tmp_path / "whole"
    process = started(killed)
    while process.poll() is None and len(list(killed.glob(f"*/{FILE}"))) < 5:
        time.sleep(0.05)
    assert process.poll() is None, process.communicate()[0]
    process.send_signal(signal.SIGINT)
    said = process.communicate(timeout=120)[0]
    assert process.returncode == 130 and "the same command resumes" in said, said
    assert not (killed / "search.csv").exists()
    for folder in (killed, whole):
        process = started(folder)
        said = process.communicate(timeout=600)[0]
        assert process.returncode == 0 and "of 972 members" in said, said
    assert (killed / "search.csv").read_bytes() == (whole / "search.csv").read_bytes()
