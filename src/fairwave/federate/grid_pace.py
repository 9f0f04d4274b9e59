"""How soon Flower's grid looks again for a part of a reply that a device is just uploading.

Flower waits for a second. An upload of a small model takes a tenth of that, so that with ten devices nearly every
exchange would take a second longer. Like `fleet_link` and `control_link`, this reaches into modules that Flower does
not document.
"""

from __future__ import annotations

from flwr.supercore.inflatable.inflatable_utils import pull_objects

_FIRST_LOOK_S = 0.1
"""The pauses after that double, as Flower has it, up to 10 s."""


def look_again_soon() -> None:
    """Let this process look again after a tenth of a second."""
    defaults = pull_objects.__kwdefaults__
    assert defaults is not None
    defaults["initial_backoff"] = _FIRST_LOOK_S
