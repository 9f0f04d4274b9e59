"""The study of contribution on games that are known, and its files, rows and refusals."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from fairwave.engine.cell import SimulatedCell
from fairwave.errors import ArgumentError, ScenarioError, StoreError
from fairwave.extensions import SCHEMES
from fairwave.learning.models import model_of
from fairwave.policy.contribution import similarity
from fairwave.report.agreement_rows import Agreement, agreement_sheet, best_rule, read_agreements, write_agreements
from fairwave.report.contribution_page import verdict, write_contribution
from fairwave.scenario.cheating_parameters import Adversary
from fairwave.scenario.loading import load_scenario
from fairwave.studies import contribution_study as study
from fairwave.studies.contribution_scores import SCORE_RULES, RoundSeen, first_memories, scheme_rule, scores_of_all
from fairwave.studies.played_games import AGAIN, PlayedGames, read_games, write_games
from tests.builders import clusters, clusters_scenario

GAMES = study.Games(rounds=3, every=2, samples=20, measure="loss")
FEW = "defences.validation_samples=20"


@pytest.fixture(scope="module")
def saboteurs() -> PlayedGames:
    """Five devices, of which two train on wrong labels."""
    wrong = (Adversary(behaviour="label_flip", devices=(1, 3)),)
    scenario = clusters_scenario(FEW, devices=5, cheats=wrong)
    return study.play(SimulatedCell(scenario, SCHEMES["fedavg"], model_of(scenario.learning), clusters()), GAMES)


def test_wrong_labels_are_worth_least_and_rules_are_asked_in_the_same_rounds(saboteurs: PlayedGames):
    worth = saboteurs.shapley.sum(axis=0)
    assert set(np.argsort(worth)[:2]) == {1, 3}
    assert saboteurs.shapley.shape == saboteurs.shapley_again.shape == (2, 5)  # rounds 1 and 3
    assert list(saboteurs.scores) == [rule.name for rule in SCORE_RULES]
    assert all(values.shape == (2, 5) for values in saboteurs.scores.values())
    agreement = saboteurs.agreement()
    assert list(agreement) == [*saboteurs.scores, AGAIN]
    assert agreement["alone"] > 0.5 and np.isnan(agreement["iafl"])  # all hold the same number of samples


def test_more_players_than_all_coalitions_allow_are_estimated(monkeypatch: pytest.MonkeyPatch):
    scenario = clusters_scenario(FEW, devices=5, cheats=(Adversary(behaviour="label_flip", devices=(1, 3)),))
    one = dataclasses.replace(GAMES, rounds=1)

    def worth(**truncation: float) -> np.ndarray:
        cell = SimulatedCell(scenario, SCHEMES["fedavg"], model_of(scenario.learning), clusters())
        return study.play(cell, dataclasses.replace(one, **truncation)).shapley[0]

    exact = worth()
    monkeypatch.setattr(study, "MOST_EXACT", 4)
    estimate = worth()
    assert not np.array_equal(exact, estimate)
    # 40 drawn orders: errors of a tenth of the largest value are usual.
    np.testing.assert_allclose(estimate, exact, atol=0.3 * np.abs(exact).max())
    assert not worth(between=10.0).any()  # the grand coalition is worth less


def test_every_setting_changes_what_it_says():
    scenario = load_scenario("paper-clean", ["data.samples_per_device=900"])
    changed = {setting.name: setting.change(scenario) for setting in study.SETTINGS}
    laws = {name: each.data.partition.law for name, each in changed.items()}
    assert laws["label_skew"] == "dirichlet" and laws["unequal_data"] == "quantity" and laws["iid"] == "iid"
    flipped = changed["wrong_labels"].cheating.adversaries
    assert [entry.behaviour for entry in flipped] == ["label_flip"] and flipped[0].devices == (1, 4, 7)
    efforts = changed["unequal_effort"].cheating.adversaries
    assert [entry.devices[0] for entry in efforts] == [1, 3, 5, 7, 9]
    held = {name: each.data.samples_per_device for name, each in changed.items()}
    assert held.pop("unequal_data") is None and set(held.values()) == {900}


def test_rules_are_those_of_the_package(saboteurs: PlayedGames):
    """Similarities of rows that are known, and a reputation that a scheme's own steps give."""
    draw = np.random.default_rng(0)
    scenario = clusters_scenario(FEW, devices=5)
    cell = SimulatedCell(scenario, SCHEMES["fedavg"], model_of(scenario.learning), clusters())
    seen = []
    cell.witness = seen.append
    cell.round(cell.start(), 0)
    updates = study.received_updates(cell.access_point, seen[0], cell.access_point.test)
    settings = cell.access_point.rules.settings
    model, deviation = draw.normal(size=updates.rows.shape[1]).astype(np.float32), draw.random(5)
    scores, memories = scores_of_all(
        settings, RoundSeen(updates, model, deviation, None), first_memories(settings, 5, model)
    )
    for kind in ("literal", "update", "leave_one_out"):
        np.testing.assert_allclose(scores[kind], similarity(kind, model, updates.rows, updates.arrived), rtol=1e-6)
    np.testing.assert_allclose(scores["deviation"], 1.0 - deviation)
    cgsv = SCHEMES["cgsv"]
    np.testing.assert_allclose(scores["cgsv"], cgsv.combine(settings, updates, np.zeros(5))[1], rtol=1e-5)
    assert np.sum(scores["cffl"]) == pytest.approx(1.0) and len(memories) == len(SCORE_RULES)
    with pytest.raises(ArgumentError, match="no scores of contribution"):
        scheme_rule("fedavg")


def test_games_are_kept_and_those_of_something_else_refused(saboteurs: PlayedGames, tmp_path: Path):
    path, made_with = tmp_path / "iid" / "seed-0.json", {"scenario": {"a": (1, 2)}, "rounds": 3}
    assert read_games(path, made_with) is None
    write_games(path, saboteurs, made_with)
    again = read_games(path, made_with)
    assert again is not None
    assert {
        name: pytest.approx(value, nan_ok=True) for name, value in again.agreement().items()
    } == saboteurs.agreement()
    with pytest.raises(StoreError, match="holds games of rounds 3, not 4"):
        read_games(path, {**made_with, "rounds": 4})
    with pytest.raises(StoreError, match="another scenario"):
        read_games(path, {**made_with, "scenario": {}})
    path.write_text("{}")
    with pytest.raises(StoreError, match="no games"):
        read_games(path, made_with)


def test_what_cannot_be_played_is_refused():
    scenario = load_scenario("paper-clean")
    for change, option in (({"rounds": 0}, "--rounds 0"), ({"every": 0}, "--every 0"), ({"samples": 0}, "--samples 0")):
        with pytest.raises(ArgumentError, match=option):
            dataclasses.replace(GAMES, **change).check(scenario, 10_000)
    with pytest.raises(ArgumentError, match="--within nan"):
        dataclasses.replace(GAMES, within=float("nan")).check(scenario, 10_000)
    with pytest.raises(ArgumentError, match="540 test samples are needed"):
        GAMES.check(scenario, 539)
    with pytest.raises(ScenarioError, match="three or more devices"):
        GAMES.check(load_scenario("paper-clean", ["cell.num_devices=2"]), 10_000)


ROWS = [
    Agreement("paper-clean", setting, rule, seed, value + 0.1 * seed)
    for setting in ("iid", "wrong_labels")
    for rule, value in (("literal", 0.1), ("update", 0.6), ("iafl", float("nan")), (AGAIN, 0.85))
    for seed in (0, 1)
]


def test_rows_become_a_table_a_file_and_a_page(tmp_path: Path):
    sheet = agreement_sheet(ROWS, "paper-clean")
    assert list(sheet.heads) == ["rule", "iid", "wrong_labels"]
    # Two seeds: half the interval is 12.706 times 0.05.
    assert list(sheet.rows[0]) == ["literal", "0.15 ± 0.64", "0.15 ± 0.64"]
    assert sheet.rows[2][1] == "no order"
    some = [row._replace(correlation=0.5) if row[2:4] == ("iafl", 1) else row for row in ROWS]
    assert agreement_sheet(some, "paper-clean").rows[2][1] == "0.50 (1 of 2 seeds)"
    best, mean = best_rule(ROWS, "paper-clean", AGAIN)
    assert best == "update" and mean == pytest.approx(0.65)
    page = write_contribution(ROWS, {"literal": "cosine < 1"}, AGAIN, "about", tmp_path)
    text = page.read_text("utf-8")
    assert "cosine &lt; 1" in text and verdict(ROWS, AGAIN).split(":")[0] in text
    assert (tmp_path / "figures" / "contribution-paper-clean.svg").exists()
    kept = read_agreements(tmp_path / "contribution.csv")
    assert [row[:4] for row in kept] == [row[:4] for row in ROWS]
    np.testing.assert_allclose([row.correlation for row in kept], [row.correlation for row in ROWS], atol=1e-6)
    write_agreements(kept, tmp_path / "again.csv")
    assert (tmp_path / "again.csv").read_bytes() == (tmp_path / "contribution.csv").read_bytes()
    with pytest.raises(ArgumentError, match="no file of that study"):
        (tmp_path / "bad.csv").write_text("a,b\n1,2\n")
        read_agreements(tmp_path / "bad.csv")
