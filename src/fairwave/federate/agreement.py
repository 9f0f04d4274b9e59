"""What all parties of a federation agree on, as two files that travel with the app: scenario and federation."""

from __future__ import annotations

import dataclasses
import json
import shutil
import tomllib
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError

from fairwave.errors import ScenarioError
from fairwave.extensions import SCHEMES
from fairwave.federate.settings import Settings
from fairwave.federate.task_checks import agreement_digest
from fairwave.privacy.modes.mode import mode_of
from fairwave.runs.order import Order
from fairwave.scenario.complaints import one_line
from fairwave.scenario.group import Group
from fairwave.scenario.loading import load_scenario
from fairwave.scenario.parameters import Scenario
from fairwave.scenario.show import to_toml

SCENARIO, FEDERATION = "scenario.toml", "federation.toml"
DIGESTS = "digests.json"
"""For clients that are not fairwave's: the digest that tasks carry, by scheme and seed."""


@dataclasses.dataclass(frozen=True)
class Agreement:
    """What to do, and how to go about it on a network."""

    order: Order
    settings: Settings

    def __post_init__(self) -> None:
        scenario = self.order.scenario
        refuse_several(self.order)
        losses = [name for name in ("target_loss", "global_accuracy") if getattr(scenario.run, name) is not None]
        if losses:
            raise ScenarioError(
                f"run.{losses[0]}: only devices know their losses, and a federation must not end on their word; set "
                "run.target_accuracy instead"
            )
        if scenario.privacy.sensitivity_spread:
            raise ScenarioError(
                f"privacy.sensitivity_spread: {scenario.privacy.sensitivity_spread:g} is for simulations; devices and "
                "access point would each draw a sensitivity of their own: set it to 0"
            )
        if scenario.cheating.adversaries:
            raise ScenarioError(
                f"cheating.adversaries: '{scenario.cheating.adversaries[0].behaviour}' is for simulations; real "
                "devices are honest or not by themselves: set cheating.adversaries=[]"
            )
        carrying = [name for name in self.order.schemes if SCHEMES[name].drift is not None]
        if carrying:
            raise ScenarioError(
                f"schemes: '{carrying[0]}' corrects devices by vectors that messages of a federation do not carry; "
                "simulate it with 'fairwave run', or choose another scheme"
            )
        proves, source = mode_of(scenario.privacy).proves, scenario.privacy.noise_source
        if proves and (source == "simulation") != (self.settings.noise == "simulation"):
            raise ScenarioError(
                f"privacy.noise_source: '{source}' in the scenario, and settings.noise is '{self.settings.noise}'; "
                "make both 'hardened', or both 'simulation' to repeat a simulation"
            )


def refuse_several(order: Order) -> None:
    """Each scheme and seed is one more release of the same data, and a proof is about one of them."""
    privacy, tracks = order.scenario.privacy, list(order.tracks())
    if mode_of(privacy).proves and len(tracks) > 1:
        raise ScenarioError(
            f"schemes and seeds: {len(tracks)} of them would each release the same data, and the account of "
            f"privacy.mode '{privacy.mode}' is of one; give one scheme and one seed, in a run of their own"
        )


class _FederationFile(Group):
    """The file beside the scenario."""

    schemes: tuple[str, ...]
    """These schemes are run, one after the other."""
    seeds: tuple[int, ...]
    """Each scheme is run with each of these seeds."""
    rounds: int = Field(ge=1)
    """Each of these runs has this many communication rounds."""
    settings: Settings = Settings()
    """This table describes the network and the machines."""


def read_agreement(folder: Path) -> Agreement:
    """The agreement in an app's folder."""
    path = folder / FEDERATION
    try:
        agreed = _FederationFile.model_validate(tomllib.loads(path.read_text("utf-8")))
    except FileNotFoundError:
        raise ScenarioError(f"{path}: no such file; 'fairwave federate init' writes one") from None
    except tomllib.TOMLDecodeError as error:
        raise ScenarioError(f"{path}: not valid TOML: {str(error).splitlines()[0]}; correct that line") from None
    except ValidationError as error:
        raise ScenarioError(f"{path}: {one_line(error, _FederationFile)}") from None
    order = Order.checked(load_scenario(folder / SCENARIO), agreed.schemes, agreed.seeds, agreed.rounds)
    return Agreement(order, agreed.settings)


def write_agreement(folder: Path, agreement: Agreement) -> None:
    """The two files of an agreement, and the digests by which parties tell it from others."""
    import tomlkit

    document = tomlkit.document()
    document.add(tomlkit.comment("What access point and devices agree on, beside scenario.toml."))
    order = agreement.order
    for name, value in (("schemes", list(order.schemes)), ("seeds", list(order.seeds)), ("rounds", order.rounds)):
        document.add(name, _item(value))
    table = tomlkit.table()
    for name, value in agreement.settings.model_dump().items():
        item = _item(value)
        item.comment(Settings.model_fields[name].description or "")
        table.add(name, item)
    document.add("settings", table)
    (folder / FEDERATION).write_text(tomlkit.dumps(document), "utf-8")
    (folder / SCENARIO).write_text(to_toml(_with_plugins_beside(order.scenario, folder)), "utf-8")
    digests = {
        f"{track.scheme} {track.seed}": agreement_digest(
            order.seeded(track.seed), track.scheme, agreement.settings.noise
        ).hex()
        for track in order.tracks()
    }
    (folder / DIGESTS).write_text(json.dumps(digests, indent=1) + "\n", "utf-8")


def _with_plugins_beside(scenario: Scenario, folder: Path) -> Scenario:
    """The scenario with copies of its plugins in the folder, so that they travel with it."""
    names = []
    for number, path in enumerate(scenario.plugins):
        name = f"plugin_{number}_{Path(path).name}"
        shutil.copyfile(path, folder / name)
        names.append(name)
    return scenario.model_copy(update={"plugins": tuple(names)})


def _item(value: Any) -> Any:
    import tomlkit

    return tomlkit.item(value)
