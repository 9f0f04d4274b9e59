"""What each audience has seen of a device's data, read off the ledger, and what that proves.

An audience is the access point, which hears every device; a device, which hears the access point; a coalition of
devices that pool what they hear; or the public, if all of that were published. Where a message carries no proven
sensitivity, nothing bounds what it tells: the cost is infinite, whatever noise is on it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np

from fairwave.privacy.ledger import ReleaseEvent
from fairwave.privacy.spending import Account, Spending, received_by

ACCESS_POINT = "access point"
"""The audience that hears every device."""


@dataclasses.dataclass(frozen=True)
class Exposure:
    """What one audience can learn about one unit of the device that it learns most about."""

    audience: str
    about: int | None
    """The device; None if it is the same for all."""
    account: Account
    epsilon: float
    reason: str
    """Why it is infinite; empty if it is not."""
    derived: bool = False
    """All that it hears is computed from what the access point received, which costs nothing more."""


def exposures(events: Sequence[ReleaseEvent], delta: float, coalition: int | None = None) -> list[Exposure]:
    """Access point, any other device, a coalition of so many others (left out: all), the public."""
    sent = [event for event in events if event.sender == "device"]
    received = [event for event in events if event.sender == "access point"]
    found = [worst_account(ACCESS_POINT, Spending().add(sent).accounts(), delta)]
    listeners = np.unique(np.concatenate([event.devices for event in received])) if received else np.array([], int)
    if found[0] is not None and listeners.size and all(event.basis == "messages" for event in received):
        found += [
            dataclasses.replace(found[0], audience=name, derived=True)
            for name in ("any other device", _together(coalition or listeners.size, listeners.size), "the public")
        ]
    elif listeners.size:
        # One more than asked for, in case the device in question is among the best placed: an upper bound.
        found += [
            worst_account(name, received_by(received, _best_placed(received, listeners, size + 1)), delta)
            for name, size in (
                ("any other device", 1),
                (_together(coalition or listeners.size, listeners.size), coalition or listeners.size),
                ("the public", listeners.size),
            )
        ]
    return [one for one in found if one is not None]


def _together(size: int, of: int) -> str:
    return "all other devices together" if size >= of - 1 else f"any {size} other devices together"


def _best_placed(received: Sequence[ReleaseEvent], listeners: np.ndarray, size: int) -> np.ndarray:
    """The coalition of a size to which `received_by` gives the largest total: who heard the latest copies, and most.

    Since every round is counted at the least noise in anybody's copy, and a model tells of all rounds before it, what
    members know follows from the last copy that any of them heard. No other coalition of the size is given more,
    whoever was least noisy when: an upper bound over time.
    """
    standing = {device: (-1, 0) for device in listeners.tolist()}
    for position, event in enumerate(received):
        for device in event.devices.tolist() if event.basis == "data" else ():
            standing[device] = (position, standing[device][1] + 1)
    return np.array(sorted(standing, key=standing.__getitem__, reverse=True)[:size])


def worst_account(audience: str, accounts: Mapping[int, Account], delta: float) -> Exposure | None:
    """A record belongs to one device, so that what is told about several does not add up: the worst counts."""
    costs = {device: accounts[device].epsilon(delta) for device in _candidates(accounts)}
    if not costs:
        return None
    device = max(costs, key=lambda each: (costs[each], accounts[each].messages))
    account = accounts[device]
    reason = f"no sensitivity is proved for {', '.join(account.unproven)}" if account.unproven else ""
    if account.lost_delta >= delta:
        reason = f"overfull batches and rounding use up all of delta ({account.lost_delta:.1e}); raise privacy.delta"
    alike = all((one.releases, one.unproven) == (account.releases, account.unproven) for one in accounts.values())
    return Exposure(audience, None if alike else device, account, costs[device], reason)


def _candidates(accounts: Mapping[int, Account]) -> list[int]:
    """Devices that may have spent most.

    Of devices with one kind of release and the same noise, one that samples no less and steps no less has spent no
    less: only those that nobody outdoes are worth a computation. All others stay in.
    """
    found, by_noise = list[int](), dict[float, list[tuple[float, int, int]]]()
    for device, account in accounts.items():
        if account.unproven or len(account.releases) != 1:
            found.append(device)
            continue
        ((multiplier, sampling), steps) = next(iter(account.releases.items()))
        by_noise.setdefault(multiplier, []).append((sampling, steps, device))
    for spent in by_noise.values():
        most = -1
        for _, steps, device in sorted(spent, reverse=True):
            if steps > most:
                most = steps
                found.append(device)
    return found
