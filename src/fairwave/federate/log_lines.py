"""Lines of a federation's log, for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def in_words(line: dict[str, Any]) -> str:
    """What a line says, safe for a terminal; nothing for those that need not be read."""
    return plain(_said(line))


def plain(text: str) -> str:
    """A text with every control character replaced: whoever sent it must not move the cursor or change colours."""
    return "".join(sign if sign.isprintable() else "\ufffd" for sign in text)


def _said(line: dict[str, Any]) -> str:
    match line["event"]:
        case "joined":
            return f"device {line['device']} joined"
        case "left":
            return f"device {line['device']} left{_because(line)}"
        case "refused":
            return f"refused {line['why']}"
        case "round":
            known = (("test accuracy", line["test_accuracy"]), ("test RMSE", line.get("test_rmse")))
            tested = "".join(f", {name} {value:.3f}" for name, value in known if value is not None)
            return (
                f"{line['scheme']}, seed {line['seed']}, round {line['round']}: {line['delivered']} updates"
                f"{tested}, {line['seconds']:.1f} s{faults_in_words(line['faults'])}"
            )
        case "device error":
            return f"device {line['device']} says: {line['why']}"
        case "no quorum":
            faults = faults_in_words(line["faults"])
            return f"round {line['round']}: too few answers in the {line['phase']} exchange{faults}"
        case "restarted":
            return "the SuperLink died; starting it again"
        case _:
            return ""


def _because(line: dict[str, Any]) -> str:
    return f": {line['why']}" if line.get("why") else ""


def faults_in_words(faults: Mapping[str, list[int]]) -> str:
    """Which fault came from which devices, in brackets; nothing if there was none."""
    listed = "; ".join(f"{name} from device {', '.join(map(str, who))}" for name, who in faults.items())
    return f" ({listed})" if listed else ""
