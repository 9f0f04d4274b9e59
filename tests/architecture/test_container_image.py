"""What the Dockerfile promises, read from it: no Docker is needed here."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def _instructions(text: str) -> list[tuple[str, str]]:
    """Name and arguments of every instruction, with continued lines joined."""
    joined = re.sub(r"\\\n", " ", "\n".join(line for line in text.splitlines() if not line.startswith("#")))
    return [(name, rest.strip()) for name, _, rest in (line.partition(" ") for line in joined.splitlines() if line)]


def _hadolint(path: Path) -> subprocess.CompletedProcess[str]:
    command = [str(Path(sys.executable).parent / "hadolint"), "--no-color", str(path)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def test_the_linter_finds_nothing_and_would(tmp_path: Path):
    done = _hadolint(ROOT / "Dockerfile")
    assert done.returncode == 0 and done.stdout == "", done.stdout
    broken = tmp_path / "Dockerfile"
    broken.write_text(
        (ROOT / "Dockerfile").read_text().replace("USER 1000:1000", "USER root\nRUN cd /work && apt-get update")
    )
    assert "DL3002" in _hadolint(broken).stdout


def test_it_is_built_from_the_wheel_for_two_variants():
    instructions = _instructions((ROOT / "Dockerfile").read_text())
    stages = [rest for name, rest in instructions if name == "FROM"]
    assert stages == ["python:${PYTHON}-slim AS cpu", "cpu AS cuda", "${VARIANT} AS final"]
    before = instructions[: next(i for i, (name, _) in enumerate(instructions) if name == "FROM")]
    assert ("ARG", "VARIANT=cpu") in before  # only arguments before the first FROM can be used in one
    copied = {part for name, rest in instructions if name == "COPY" for part in rest.split()[:-1]}
    assert copied == {"constraints.txt", "dist/*.whl", "docker/healthcheck.py"}
    sent = [line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")]
    assert set(sent) == {"dist/*.whl", "docker/", "constraints.txt"}
    assert all((ROOT / name).exists() for name in copied if "*" not in name)


def test_it_runs_as_a_user_without_privileges_and_says_how_it_is():
    instructions = _instructions((ROOT / "Dockerfile").read_text())
    users = [rest for name, rest in instructions if name == "USER"]
    assert users == ["1000:1000"]
    after = [name for name, _ in instructions[instructions.index(("USER", "1000:1000")) + 1 :]]
    assert "RUN" not in after and "COPY" not in after and after[-1] == "CMD"
    (health,) = [rest for name, rest in instructions if name == "HEALTHCHECK"]
    (target,) = [rest.split()[-1] for name, rest in instructions if name == "COPY" and "healthcheck" in rest]
    assert target in health
