"""What a node's configuration says of the device: who it is, and where it keeps what."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from flwr.app import Context

from fairwave.errors import FederationError
from fairwave.federate.protocol import Reason
from fairwave.privacy.privacy_filter import Budget


class Refused(FederationError):
    """What a device does not do, with the word that it says about it; the text stays on the device."""

    def __init__(self, reason: Reason, why: str) -> None:
        super().__init__(why)
        self.reason = reason


@dataclasses.dataclass(frozen=True)
class Node:
    """One device as its node is configured."""

    device: int
    home: Path
    """A private folder."""
    key: Path | None
    """Its private key."""
    data: str | None
    """A data set of its own."""
    account: Path
    """Folder of the privacy account of all federations."""
    budget: Budget | None
    """What all federations together may spend of its records, by its owner's will."""

    @classmethod
    def of(cls, context: Context, otherwise: Path | None) -> Node:
        """The node of a context; `otherwise` is the home of nodes that have none of their own."""
        config = context.node_config
        given, device = config.get("home", otherwise), config.get("partition-id")
        if given is None or not isinstance(device, int):
            raise Refused(
                Reason.CONFIGURATION,
                "node-config: no 'home' or no 'partition-id'; give the device a private folder and its number",
            )
        home = Path(str(given))
        key, data, account = (config.get(name) for name in ("key", "data", "account"))
        return cls(
            device=device,
            home=home,
            key=None if key is None else Path(str(key)),
            data=None if data is None else str(data),
            account=home / f"device-{device}" / "account" if account is None else Path(str(account)),
            budget=_budget(config.get("budget-epsilon"), config.get("budget-delta")),
        )

    @property
    def folder(self) -> Path:
        """The device's own part of its home."""
        return self.home / f"device-{self.device}"


def _budget(epsilon: object, delta: object) -> Budget | None:
    if epsilon is None and delta is None:
        return None
    if not (isinstance(epsilon, int | float) and epsilon > 0.0 and isinstance(delta, float) and 0.0 < delta < 1.0):
        raise Refused(
            Reason.CONFIGURATION,
            f"node-config: budget-epsilon={epsilon!r} and budget-delta={delta!r}; give both, such as 8.0 and 1e-5",
        )
    return Budget(float(epsilon), delta)
