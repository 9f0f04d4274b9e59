"""What all parties of a federation agree on, as two files that travel with the app: scenario and federation."""

from __future__ import annotations

import dataclasses
import tomllib
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError

from fairwave.errors import ScenarioError
from fairwave.federate.settings import Settings
from fairwave.runs.order import Order
from fairwave.scenario.complaints import one_line
from fairwave.scenario.group import Group
from fairwave.scenario.loading import load_scenario
from fairwave.scenario.show import to_toml

SCENARIO, FEDERATION = "scenario.toml", "federation.toml"


@dataclasses.dataclass(frozen=True)
class Brief:
    """What to do, and how to go about it on a network."""

    order: Order
    settings: Settings

    def __post_init__(self) -> None:
        scenario = self.order.scenario
        refuse_several(self.order)
        if scenario.run.target_loss is not None:
            raise ScenarioError(
                "run.target_loss: only devices know their losses, and a federation must not end on their word; set "
                "run.target_accuracy instead"
            )
        if scenario.cheating.adversaries:
            raise ScenarioError(
                f"cheating.adversaries: '{scenario.cheating.adversaries[0].behaviour}' is for simulations; real "
                "devices are honest or not by themselves: set cheating.adversaries=[]"
            )
        proves, source = scenario.privacy.mode != "paper", scenario.privacy.noise_source
        if proves and (source == "simulation") != (self.settings.noise == "simulation"):
            raise ScenarioError(
                f"privacy.noise_source: '{source}' in the scenario, and settings.noise is '{self.settings.noise}'; "
                "make both 'hardened', or both 'simulation' to repeat a simulation"
            )


def refuse_several(order: Order) -> None:
    """Each scheme and seed is one more release of the same data, and a proof is about one of them."""
    mode, tracks = order.scenario.privacy.mode, list(order.tracks())
    if mode != "paper" and len(tracks) > 1:
        raise ScenarioError(
            f"schemes and seeds: {len(tracks)} of them would each release the same data, and the account of "
            f"privacy.mode '{mode}' is of one; give one scheme and one seed, in a run of their own"
        )


class _Agreement(Group):
    """The file beside the scenario."""

    schemes: tuple[str, ...]
    seeds: tuple[int, ...]
    rounds: int = Field(ge=1)
    settings: Settings = Settings()


def read_brief(folder: Path) -> Brief:
    """The brief in an app's folder."""
    path = folder / FEDERATION
    try:
        agreed = _Agreement.model_validate(tomllib.loads(path.read_text("utf-8")))
    except FileNotFoundError:
        raise ScenarioError(f"{path}: no such file; 'fairwave federate init' writes one") from None
    except tomllib.TOMLDecodeError as error:
        raise ScenarioError(f"{path}: not valid TOML: {str(error).splitlines()[0]}; mend that line") from None
    except ValidationError as error:
        raise ScenarioError(f"{path}: {one_line(error, _Agreement)}") from None
    order = Order(load_scenario(folder / SCENARIO), agreed.schemes, agreed.seeds, agreed.rounds)
    return Brief(order, agreed.settings)


def write_brief(folder: Path, brief: Brief) -> None:
    """The two files of a brief."""
    import tomlkit

    document = tomlkit.document()
    document.add(tomlkit.comment("What access point and devices agree on, beside scenario.toml."))
    order = brief.order
    for name, value in (("schemes", list(order.schemes)), ("seeds", list(order.seeds)), ("rounds", order.rounds)):
        document.add(name, _item(value))
    table = tomlkit.table()
    for name, value in brief.settings.model_dump().items():
        item = _item(value)
        item.comment(Settings.model_fields[name].description or "")
        table.add(name, item)
    document.add("settings", table)
    (folder / FEDERATION).write_text(tomlkit.dumps(document), "utf-8")
    (folder / SCENARIO).write_text(to_toml(order.scenario), "utf-8")


def _item(value: Any) -> Any:
    import tomlkit

    return tomlkit.item(value)
