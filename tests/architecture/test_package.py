"""What the package promises about itself."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import fairwave

ROOT = Path(__file__).parents[2]
HEAVY = {"jax", "numpy", "xarray", "pandas", "matplotlib", "pyarrow", "scipy", "equinox", "pydantic"}


def test_public_names():
    errors = {name for name in vars(fairwave.errors) if name.endswith("Error")}
    to_run = {"Run", "Scenario", "Simulation", "__version__", "load_scenario", "open_run", "plan", "simulate"}
    to_extend = {"Aggregator", "Behaviour", "DataSet", "DataSource", "Defence", "FadingLaw"}
    to_extend |= {"Model", "ModelKind", "Rule", "Scheme", "Tracker", "Updates", "add"}
    to_follow = {"Callback", "RoundValues", "Training"}
    assert set(fairwave.__all__) == errors | to_run | to_extend | to_follow
    assert fairwave.__all__ == sorted(fairwave.__all__) == dir(fairwave)
    for name in fairwave.__all__:
        assert isinstance(getattr(fairwave, name), str) or getattr(fairwave, name).__doc__


def test_help_imports_nothing_heavy():
    probe = (
        "import sys, json\n"
        "sys.argv = ['fairwave', '--help']\n"
        "from fairwave.cli.main import main\n"
        "try:\n    main()\nexcept SystemExit as stop:\n    assert not stop.code, stop.code\n"
        "print(json.dumps(sorted({name.split('.')[0] for name in sys.modules})), file=sys.stderr)\n"
    )
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, timeout=60, check=True)
    assert "plan" in done.stdout
    assert HEAVY & set(json.loads(done.stderr)) == set()


def test_files_name_no_registry_and_no_home():
    tracked = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, timeout=60, check=True
    ).stdout.split("\0")
    addresses = tuple(
        "".join(parts) for parts in (("pypi", ".org"), ("pythonhosted", ".org"), ("/ro", "ot/"), ("/ho", "me/"))
    )
    for name in filter(None, tracked):
        text = (ROOT / name).read_bytes().decode("utf-8", errors="ignore")
        assert not any(address in text for address in addresses), name
