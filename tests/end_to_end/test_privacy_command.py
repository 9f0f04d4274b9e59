"""`fairwave privacy`, `audit` and the page: every epsilon is proved, infinite, or called nominal."""

from __future__ import annotations

import re
from pathlib import Path

import dp_accounting
import dp_accounting.pld
import numpy as np
import pytest

from fairwave.engine.end_reasons import EndReason
from fairwave.privacy.sampling import overflow_probability, sufficient_capacity
from fairwave.runs.order import Track
from fairwave.runs.store import RunStore
from tests.builders import SOFTMAX_MNIST, as_options
from tests.end_to_end.command_line import Outcome, fairwave

TINY = as_options(each for each in SOFTMAX_MNIST if not each.startswith("data."))


@pytest.fixture
def cli(capsys, monkeypatch):
    def call(*arguments: object) -> Outcome:
        return fairwave(capsys, monkeypatch, *map(str, arguments))

    return call


def run(cli, folder: Path, preset: str, *more: object, schemes: str = "proposed,max_power") -> Outcome:
    said = cli("run", preset, *TINY, "--rounds", 3, "--schemes", schemes, "--out", folder, *more)
    assert said.code == 0, said.err
    return said


def claims_in(text: str) -> list[str]:
    """Every sentence or line that speaks of epsilon, but for settings."""
    own = re.sub(r"<script>.*?</script>", "", text, flags=re.DOTALL)
    own = re.sub(r"(max_)?epsilon = [^\n]*|\"(max_)?epsilon\":", "", own)
    return re.findall(r"[^\n.<>]*\beps(?:ilon)?\b[^\n.<>]*", own)


@pytest.mark.slow
def test_the_papers_mode_never_shows_an_epsilon_that_is_not_called_nominal(cli, tmp_path):
    """Every form of output: commands, page, figures, exported files."""
    folder = tmp_path / "paper"
    outputs = [run(cli, folder, "paper", "--set", "data.samples_per_device=60").out]
    outputs += [cli(*words).out for words in (("privacy", folder), ("runs", "show", folder), ("report", folder))]
    outputs.append((folder / "report.html").read_text())
    outputs += [path.read_text() for path in (folder / "figures").glob("*.svg")]
    for name in ("r.csv", "r.nc", "r.parquet"):
        assert cli("export", folder, "--to", tmp_path / name).code == 0
        outputs.append((tmp_path / name).read_bytes().decode("latin-1"))
    said = [claim for text in outputs for claim in claims_in(text)]
    wrong = [claim for claim in said if "nominal" not in claim.lower() and "infinite" not in claim]
    assert len(said) > 20 and not wrong, wrong
    privacy = outputs[1]
    assert "This is nominal and not a guarantee" in privacy
    assert privacy.count("epsilon infinite") == 2 * 4 + 1 and privacy.count("nominal epsilon") == 2 * 2 + 3
    assert "for all devices together over time" in " ".join(privacy.split())
    assert "no sensitivity is proved for gradients (no noise), updates" in " ".join(privacy.split())


@pytest.mark.slow
def test_what_is_printed_is_what_dp_accounting_gives_for_the_steps_that_were_made(cli, tmp_path):
    folder = tmp_path / "fair"
    run(cli, folder, "fair-mlp", "--set", "data.samples_per_device=300", "--set", "privacy.noise_multiplier=2.5")
    said = cli("privacy", folder)
    assert said.code == 0 and "Protected: each training record" in said.out and "protects nobody" in said.out
    store = RunStore(folder)
    capacity = sufficient_capacity(8, 300, 1e-5)
    for scheme in ("proposed", "max_power"):
        steps = np.sum([record["local_iterations"] for record in store.records(Track(scheme, 0))], axis=0)
        block = said.out.split(f"{scheme}, 3 rounds")[1].split("max_power, 3")[0]
        printed = {int(row[0]): (int(row[1]), float(row[4])) for row in re.findall(ROW, block)}
        assert sorted(printed) == [0, 1, 2]
        for device, (told, epsilon) in printed.items():
            assert told == steps[device]
            accountant = dp_accounting.pld.PLDAccountant(value_discretization_interval=1e-3)
            sampled = dp_accounting.PoissonSampledDpEvent(8 / 300, dp_accounting.GaussianDpEvent(2.5))
            accountant.compose(sampled, int(steps[device]))
            lost = overflow_probability(300, 8 / 300, capacity) * int(steps[device])
            assert epsilon == pytest.approx(accountant.get_epsilon(1e-5 - lost), abs=6e-4)
    assert len(set(steps.tolist())) > 1  # devices that compute more spend more
    store.close()
    worst = max(epsilon for _, epsilon in printed.values())
    assert f"access point: epsilon {worst:.3f}" in said.out
    assert f"any other device: epsilon {worst:.3f}, no more than the access point" in said.out
    page = cli("report", folder)
    assert page.code == 0 and f"{worst:.3f}" in (folder / "report.html").read_text()


ROW = r"\n +(\d+) +(\d+) +([\d.]+) +([\d.]+) +([\d.]+)"


@pytest.mark.slow
def test_a_budget_stops_devices_and_then_the_run(cli, tmp_path):
    """A loose budget is never met; a tight one ends the run early, with nobody above it."""
    folder = tmp_path / "tight"
    said = run(cli, folder, "fair-mlp", "--set", "data.samples_per_device=300", "--set", "privacy.max_epsilon=1.5")
    assert "proposed with seed 0 ended after 2 of 3 rounds: no device has privacy budget left" in said.out
    store = RunStore(folder)
    summary = store.summary(Track("proposed", 0))
    assert summary.rounds < 3 and summary.ended is EndReason.BUDGET_SPENT
    store.close()
    told = cli("privacy", folder).out
    spent = [float(row[4]) for row in re.findall(ROW, told)]
    assert len(spent) == 6 and 1.3 < max(spent) <= 1.5
    assert cli("resume", folder).code == 0


@pytest.mark.slow
def test_noise_at_a_trusted_access_point(cli, tmp_path):
    folder = tmp_path / "central"
    said = run(
        cli,
        folder,
        "fair-mlp",
        "--set",
        "privacy.mode=device",
        "--set",
        "defences.use=[]",
        "--set",
        "privacy.noise_multiplier=4",
        "--set",
        "data.samples_per_device=60",
        schemes="max_power",
    )
    assert said.code == 0
    told = cli("privacy", folder, "--coalition", 2).out
    expected = dp_accounting.get_epsilon_gaussian(4 / np.sqrt(3), 1e-5)
    assert "access point: epsilon infinite" in told and "Access point: trusted" in told
    for audience in ("any other device", "all other devices together", "the public"):
        assert f"{audience}: epsilon {expected:.3f}" in told
    page = cli("report", folder)
    assert page.code == 0


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        (["learning.gradient_exchange=true"], "sends gradients without noise"),
        (["privacy.clip_norm=unset"], "privacy.clip_norm is unset"),
        (["privacy.noise_multiplier=unset"], "privacy.noise_multiplier is unset"),
        (["privacy.local_noise=true"], "rests on a nominal sensitivity"),
        (["run.target_loss=0.5"], "run.target_loss stops the run on the devices' own losses"),
        (["run.global_accuracy=0.5", "run.optimal_loss=0"], "run.global_accuracy stops the run on the devices'"),
        (["privacy.overwrite_model=true"], "privacy.overwrite_model is the paper's text to the letter"),
        (["privacy.sensitivity_spread=0.1"], "privacy.sensitivity_spread is the paper's text to the letter"),
        (["learning.gradient_exchange=true", "privacy.exchange_noise_multiplier=9"], "kept by counting local steps"),
        (["privacy.mode=device", "learning.gradient_exchange=true"], "tells every device the mean gradient"),
        (["privacy.mode=device", "privacy.copies=independent"], "average the noise away"),
        (["privacy.max_epsilon=0.01"], "pays for 0 local steps"),
        (["privacy.clip_norm=1e-9"], "out of range"),
        (["privacy.mode=paper"], "privacy.max_epsilon 8 cannot be kept"),
        (["privacy.mode=paper", "privacy.max_epsilon=unset", "privacy.noise_source=exact"], "guards a proof"),
    ],
)
def test_what_breaks_a_proof_is_refused_with_its_reason(cli, settings, reason):
    said = cli("run", "fair-mlp", *(word for each in settings for word in ("--set", each)))
    *warnings, error = said.err.splitlines()
    assert said.code == 2 and reason in error and all(line.startswith("warning: ") for line in warnings)


def test_schemes_that_break_a_proof_are_refused(cli):
    said = cli("run", "fair-mlp", "--set", "privacy.mode=device", "--schemes", "proposed")
    assert said.code == 2 and "choose among max_power, amplifier_cap" in said.err


@pytest.mark.slow
def test_all_means_all_that_keep_the_proof(cli, tmp_path):
    said = run(cli, tmp_path / "all", "fair-mlp", "--set", "data.samples_per_device=60", "--rounds", 1, schemes="all")
    assert "fair_noise_only" in said.out and "no_privacy" not in said.out


@pytest.mark.slow
def test_a_gradient_exchange_with_noise_is_charged(cli, tmp_path):
    folder = tmp_path / "exchange"
    run(
        cli,
        folder,
        "fair-mlp",
        "--set",
        "privacy.max_epsilon=unset",
        "--set",
        "learning.gradient_exchange=true",
        "--set",
        "privacy.exchange_noise_multiplier=6",
        "--set",
        "data.samples_per_device=300",
        schemes="proposed",
    )
    told = cli("privacy", folder).out
    assert re.search(r"\n +0 +3 +1\.00000 +6\.0000", told) and "exchanged gradient" in told


@pytest.mark.slow
def test_a_run_without_a_single_message_has_nothing_to_account_for(cli, tmp_path):
    folder = tmp_path / "outage"
    run(cli, folder, "fair-mlp", "--set", "radio.max_transmit_power_w=1e-12", "--set", "data.samples_per_device=60")
    assert cli("privacy", folder).code == 0 and cli("report", folder).code == 0


@pytest.mark.slow
def test_audit_says_what_it_found_and_exits_accordingly(cli):
    said = cli("audit")  # the preset fair, and what the access point releases
    assert said.code == 0 and said.out.count(": not refuted") == 11 and "That is no proof" in said.out
    assert said.out.count("false alarms 1e-06") > 35 and "no false alarms" in said.out
    wrong = cli("audit", "paper")
    assert wrong.code == 2 and "nothing to audit" in wrong.err


def test_settings_for_a_budget_are_proposed(cli):
    few = ("--records", 64, "--set", "run.num_rounds=2", "--epsilon", 8)
    said = cli("privacy", "plan", "fair", *few)
    assert said.code == 0
    assert "epsilon 8 at delta 1e-05, 64 records a device, 2 rounds" in said.out
    assert "least noise:  fairwave run fair --set learning.batch_size=64 --set learning.learning_rate=" in said.out
    assert "as the scenario is, with noise multiplier 0.9: the budget lasts for 0 of 2 rounds" in said.out
    assert "of 3" in said.err  # progress
    trusted = ("privacy.mode=device", "defences.use=[]", "defences.aggregator=mean")
    central = cli("privacy", "plan", "fair", "--epsilon", 4, *(word for each in trusted for word in ("--set", each)))
    assert central.code == 0 and "the budget lasts for 0 of 100 rounds\nleast noise multiplier" in central.out
    nothing = cli("privacy", "plan", "paper", "--epsilon", 8)
    assert nothing.code == 2 and "privacy.mode: 'paper' proves nothing, so that no budget can be" in nothing.err
    none_given = cli("privacy", "plan", "paper")
    assert none_given.code == 2 and "give --epsilon" in none_given.err


def test_a_run_called_as_a_command_is_reached_by_the_long_form(cli, tmp_path):
    said = cli("privacy", "account", tmp_path / "plan")
    assert said.code != 0 and "no run there" in said.err
    assert cli("privacy", tmp_path / "nowhere").err == said.err.replace("plan", "nowhere")
    help_text = cli("privacy", "--help").out
    assert "account" in help_text and "plan" in help_text
