"""`device.toml`: what a resident device is told about itself, its access point and the agreement of its owner."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Annotated

from pydantic import Field, ValidationError

from fairwave.errors import ScenarioError
from fairwave.federate.agreement import Agreement, read_agreement
from fairwave.federate.node import Node
from fairwave.privacy.privacy_filter import Budget
from fairwave.scenario.complaints import one_line
from fairwave.scenario.group import Group

FILE = "device.toml"


class DeviceFile(Group):
    """The values of the file; relative paths are relative to its folder."""

    device: Annotated[int, Field(ge=0)]
    """The device has this number in the scenario."""
    access_point: Annotated[str, Field(pattern=r"^(\[[0-9a-fA-F:]+\]|[^\s:/\[\]]+):[0-9]{1,5}$")]
    """The access point is reached at this host and port, such as ap.example.org:8443 or [2001:db8::7]:8443."""
    authority: str = "ca.crt"
    """This is the certificate of the federation's authority. A server must have a certificate that it has signed."""
    key: str = "node.key"
    """The device has its private key in this file."""
    home: str = "home"
    """The device keeps its state, its log and its compiled programs in this private folder."""
    agreement: str = "agreement"
    """This folder has scenario.toml and federation.toml, to which the device's owner agrees."""
    account: str | None = None
    """This folder has the privacy account of the device's records, for all federations together. Default: in `home`."""
    data: str | None = None
    """The device brings this data set, if the scenario has data.partition = { law = "own" }."""
    budget_epsilon: Annotated[float, Field(gt=0.0)] | None = None
    """All federations together may spend at most this epsilon of the device's records, at `budget_delta`."""
    budget_delta: Annotated[float, Field(gt=0.0, lt=1.0)] | None = None
    """The budget is meant at this delta."""
    poll_s: Annotated[float, Field(ge=0.1, le=300.0)] = 15.0
    """The device asks for work at least once in this many seconds, and sooner if there was some a short time ago."""


class DeviceFolder:
    """A folder with a device.toml."""

    def __init__(self, folder: Path) -> None:
        self.file, self._folder = read_device_file(folder), folder.resolve()

    @property
    def authority(self) -> Path:
        """Certificate of the federation's authority."""
        return self._folder / self.file.authority

    @property
    def home(self) -> Path:
        """The device's private folder."""
        return self._folder / self.file.home

    @property
    def key(self) -> Path:
        """The device's private key."""
        return self._folder / self.file.key

    def agreement(self) -> Agreement:
        """What the device's owner agrees to."""
        return read_agreement(self._folder / self.file.agreement)

    def node(self) -> Node:
        """Who the device is, and where it keeps what."""
        file = self.file
        budget = None
        if file.budget_epsilon is not None and file.budget_delta is not None:
            budget = Budget(file.budget_epsilon, file.budget_delta)
        in_home = self.home / f"device-{file.device}" / "account"
        return Node(
            device=file.device,
            home=self.home,
            key=self.key,
            data=None if file.data is None else _data(self._folder, file.data),
            account=in_home if file.account is None else self._folder / Path(file.account).expanduser(),
            budget=budget,
        )


def read_device_file(folder: Path) -> DeviceFile:
    """The file of a folder, checked."""
    path = folder / FILE
    try:
        file = DeviceFile.model_validate(tomllib.loads(path.read_text("utf-8")))
    except FileNotFoundError:
        raise ScenarioError(
            f"{path}: no such file; give the folder of a device, as 'federate init' writes it"
        ) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ScenarioError(f"{path}: not valid TOML: {str(error).splitlines()[0]}; correct that line") from None
    except ValidationError as error:
        raise ScenarioError(f"{path}: {one_line(error, DeviceFile)}") from None
    if (file.budget_epsilon is None) != (file.budget_delta is None):
        raise ScenarioError(f"{path}: budget_epsilon and budget_delta: one without the other; give both, or neither")
    return file


def write_device_file(folder: Path, file: DeviceFile) -> None:
    """The file in a device's folder, every value with its meaning."""
    import tomlkit

    document = tomlkit.document()
    document.add(tomlkit.comment("One device of a federation; 'fairwave device run' reads this file."))
    for name, field in DeviceFile.model_fields.items():
        value, meaning = getattr(file, name), " ".join((field.description or "").split())
        document.add(tomlkit.comment(meaning))
        if value is None:
            document.add(tomlkit.comment(f"{name} = "))
        else:
            document.add(name, tomlkit.item(value))
    (folder / FILE).write_text(tomlkit.dumps(document), "utf-8")


def _data(folder: Path, source: str) -> str:
    """A data set by its path, or by its name where there is no such path."""
    path = folder / Path(source).expanduser()
    return str(path) if path.exists() else source
