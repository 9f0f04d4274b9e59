"""Lines of a federation's log, for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def in_words(line: dict[str, Any]) -> str:
    """What a line says; nothing for those that need not be read."""
    match line["event"]:
        case "joined":
            return f"device {line['device']} joined"
        case "refused":
            return f"refused {line['why']}"
        case "round":
            accuracy = "" if line["test_accuracy"] is None else f", test accuracy {line['test_accuracy']:.3f}"
            return (
                f"{line['scheme']}, seed {line['seed']}, round {line['round']}: {line['delivered']} updates"
                f"{accuracy}, {line['seconds']:.1f} s{faults_in_words(line['faults'])}"
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


def faults_in_words(faults: Mapping[str, list[int]]) -> str:
    """Which fault came from which devices, in brackets; nothing if there was none."""
    listed = "; ".join(f"{name} from device {', '.join(map(str, who))}" for name, who in faults.items())
    return f" ({listed})" if listed else ""
