from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

from fairwave.errors import ScenarioError
from fairwave.scenario.loading import load_scenario, preset_names, preset_summary
from fairwave.scenario.parameters import Scenario
from fairwave.scenario.show import to_toml


def test_presets():
    assert preset_names() == ["cifar10", "fair", "fair-mlp", "har", "paper", "paper-clean", "paper-literal", "small"]
    assert all(preset_summary(name).endswith(".") for name in preset_names())


def test_paper_preset_is_the_table_in_si_units():
    s = load_scenario("paper")
    assert s.cell.num_devices == 10 and s.cell.deadline_s == 0.75
    assert s.radio.max_transmit_power_w == 1.0
    assert s.radio.noise_psd_w_per_hz == pytest.approx(3.981e-21, rel=1e-3)
    assert s.radio.modulation_gap == pytest.approx(9.550, rel=1e-4)
    assert s.radio.circuit_power_w == pytest.approx(0.0825)
    assert s.compute.seconds_per_bit == pytest.approx(7.5e-9)
    assert s.batch_bits() == 128 * 784 * 8
    assert s.payload_bits() == 875e3


def test_presets_differ_as_they_say():
    paper, clean, fair = (load_scenario(name) for name in ("paper", "paper-clean", "fair"))
    assert paper.privacy.local_noise and not clean.privacy.local_noise
    assert clean.model_copy(update={"privacy": paper.privacy}) == paper
    assert (fair.privacy.mode, fair.privacy.similarity, fair.privacy.copies) == ("provable", "training", "nested")
    assert fair.payload_bits() == 8 * (39_700 + 156)
    assert load_scenario("fair-mlp").payload_bits() == 109_386 * 8
    assert load_scenario("fair-mlp", ["learning.update_bits=8"]).payload_bits() == 8 * (109_386 + 428)
    assert load_scenario("cifar10").payload_bits() == 78_042 * 8
    literal = load_scenario("paper-literal")
    assert literal.privacy.overwrite_model and literal.privacy.broadcast and literal.privacy.sensitivity_spread == 0.1
    assert (literal.learning.first_model, literal.learning.convergence) == ("zero", "printed")
    assert literal.model_copy(update={"privacy": paper.privacy, "learning": paper.learning}) == paper
    assert load_scenario("small").cell.num_devices < paper.cell.num_devices


@pytest.mark.parametrize("name", preset_names())
def test_shown_scenario_loads_again(name, tmp_path: Path):
    shown = tmp_path / "shown.toml"
    shown.write_text(to_toml(load_scenario(name)), "utf-8")
    assert load_scenario(shown) == load_scenario(name)
    assert "# Each device's channel has this bandwidth (B in the paper)." in shown.read_text("utf-8")


def test_file_extends_preset_and_file(tmp_path: Path):
    (tmp_path / "base.toml").write_text('extends = "paper"\n[radio]\nbandwidth_hz = "1 MHz"\n', "utf-8")
    (tmp_path / "mine.toml").write_text('extends = "base.toml"\n[cell]\nnum_devices = 3\n', "utf-8")
    scenario = load_scenario(tmp_path / "mine.toml")
    assert (scenario.radio.bandwidth_hz, scenario.cell.num_devices) == (1e6, 3)
    assert scenario.radio.carrier_hz == 32e6


def test_a_tagged_table_is_replaced_whole(tmp_path: Path):
    file = tmp_path / "disc.toml"
    file.write_text('extends = "paper"\n[cell]\nplacement = { law = "disc", radius_m = "300 m" }\n', "utf-8")
    assert load_scenario(file).cell.placement.law == "disc"


@pytest.mark.parametrize(
    ("override", "read"),
    [
        ("radio.bandwidth_hz=500e3", lambda s: s.radio.bandwidth_hz == 500e3),
        ("radio.bandwidth_hz=500 kHz", lambda s: s.radio.bandwidth_hz == 500e3),
        ("radio.bandwidth_hz='500 kHz'", lambda s: s.radio.bandwidth_hz == 500e3),
        ("radio.fading.scale=2", lambda s: s.radio.fading.mean_power == 8.0),
        ("radio.fading={law='rician', scale=1, k_factor=3}", lambda s: s.radio.fading.law == "rician"),
        ("compute.compute_power_w=[0.1, '50 mW']", lambda s: s.compute.compute_power_w == (0.1, 0.05)),
        ("radio.payload_bits=unset", lambda s: s.payload_bits() == 109_386 * 8),
        ("learning.update_bits=8", lambda s: s.payload_bits() == 875e3),
        ("radio.charge_gradient_upload=true", lambda s: s.payload_bits() == 2 * 875e3),
        ("utility.effort_fit=window", lambda s: s.utility.effort_fit == "window"),
    ],
)
def test_overrides(override, read):
    assert read(load_scenario("paper", [override]))


def test_scenarios_are_frozen_and_hashable():
    scenario = load_scenario("paper")
    assert hash(scenario) == hash(load_scenario("paper"))
    with pytest.raises(Exception, match="frozen"):
        scenario.cell.num_devices = 3


def test_extends_in_a_circle_is_refused(tmp_path: Path):
    (tmp_path / "a.toml").write_text('extends = "b.toml"\n', "utf-8")
    (tmp_path / "b.toml").write_text('extends = "a.toml"\n', "utf-8")
    with pytest.raises(ScenarioError, match="extends itself"):
        load_scenario(tmp_path / "a.toml")


def test_schema_knows_every_group_and_the_presets_fit_it():
    schema = Scenario.model_json_schema()
    groups = {
        "cell",
        "radio",
        "compute",
        "utility",
        "privacy",
        "learning",
        "data",
        "run",
        "cheating",
        "defences",
        "peers",
    }
    assert set(schema["properties"]) == groups | {"plugins"}
    laws = {law["properties"]["law"]["const"] for law in schema["$defs"]["FadingLaw"]["oneOf"]}
    assert laws == {"none", "rayleigh", "rician", "nakagami"}
    assert json.dumps(schema)
    shown = tomllib.loads(to_toml(load_scenario("fair")))
    for group, content in shown.items():
        definition = schema["$defs"][schema["properties"][group]["$ref"].rsplit("/", 1)[1]]
        assert set(content) <= set(definition["properties"])
        assert definition["additionalProperties"] is False
