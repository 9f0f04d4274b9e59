"""What only a federation has to tell: who was there, answers that were no good, times, and what uploads took."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairwave.report.statistics import labelled
from fairwave.report.tables import Piece, Sheet

if TYPE_CHECKING:
    import xarray as xr

_EXCHANGES = (("gradient", "gradient_fault"), ("update", "update_fault"))
_TIMES = (("gradient_exchange_s", "gradient exchange"), ("update_exchange_s", "update exchange"), ("round_s", "round"))


def federation_section(results: xr.Dataset) -> list[Piece]:
    """Four tables, or nothing for a simulation."""
    if "update_fault" not in results:
        return []
    caption = (
        "Devices were processes, and messages went over a network. An answer that arrived too late, could not "
        "be read or did not follow the agreement is not used. Its device keeps its copy and its deviation. "
        "The access point has no training data, so it does not know the loss of its own model on them."
    )
    faults = _faults(results) or [("", "none", "", "")]
    attended = ("scheme", "rounds", "devices in all of them", "in fewest", "in none")
    timed = ("scheme", *(f"{title} (s), median" for _, title in _TIMES))
    return [
        Sheet("faults", "Federation", caption, ("scheme", "fault", "answers", "devices"), faults),
        Sheet("attendance", "Who was there", "", attended, _attendance(results)),
        Sheet("times", "How long it took", "", timed, _times(results)),
        *_uplink(results),
    ]


def _uplink(results: xr.Dataset) -> list[Piece]:
    """What plans charge for uploads beside what arrived; nothing for runs that have not counted."""
    if "uplink_bytes" not in results:
        return []
    caption = (
        "For each update that arrived in time, the table has the bytes that its device's plan charges in a "
        "round, and the bytes of its answers as Flower serialised them, including an exchanged gradient. "
        "Handshakes, polling and retransmissions are not counted. If the ratio is far from 1, three settings "
        'make plans charge what is sent: learning.update_bits = 8, radio.payload_bits = "unset" and, with '
        "exchanged gradients, radio.charge_gradient_upload."
    )
    rows: list[tuple[str, ...]] = []
    for scheme in map(str, results["scheme"].values):
        sent, planned = (results[name].sel(scheme=scheme) for name in ("uplink_bytes", "planned_uplink_bytes"))
        count, measured_sum, planned_sum = int((planned > 0).sum()), float(sent.sum()), float(planned.sum())
        if count:
            each = (f"{planned_sum / count:,.0f}", f"{measured_sum / count:,.0f}", f"{measured_sum / planned_sum:.2f}")
            rows.append((labelled(results, scheme), str(count), *each))
    header = ("scheme", "updates", "planned (bytes), mean", "on the wire (bytes), mean", "ratio")
    return [Sheet("uplink", "What uploads took", caption, header, rows or [("", "none", "", "", "")])]


def _faults(results: xr.Dataset) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for scheme in map(str, results["scheme"].values):
        for exchange, name in _EXCHANGES:
            codes, meanings = results[name].sel(scheme=scheme), str(results[name].attrs["flag_meanings"]).split()
            for code, meaning in zip(results[name].attrs["flag_values"], meanings, strict=True):
                met = codes == code
                if code and bool(met.any()):
                    who = [str(device) for device in results["device"].values if bool(met.sel(device=device).any())]
                    rows.append(
                        (labelled(results, scheme), f"{exchange}: {meaning}", str(int(met.sum())), ", ".join(who))
                    )
    return rows


def _attendance(results: xr.Dataset) -> list[tuple[str, ...]]:
    """How many devices took part in every round, the one that did least often, and those that never did.

    A device takes no part where it is not connected, is not drawn, or has no budget or battery left.
    """
    rows: list[tuple[str, ...]] = []
    for scheme in map(str, results["scheme"].values):
        taken = results["participating"].sel(scheme=scheme).isel(seed=0).dropna("round", how="all")
        rounds, often = taken.sizes["round"], (taken > 0).sum("round")
        fewest = int(often.argmin("device"))
        never = [str(device) for device in results["device"].values if int(often.sel(device=device)) == 0]
        least = "" if int(often[fewest]) == rounds else f"device {fewest}: {int(often[fewest])}"
        always = str(int((often == rounds).sum()))
        rows.append((labelled(results, scheme), str(rounds), always, least, ", ".join(never)))
    return rows


def _times(results: xr.Dataset) -> list[tuple[str, ...]]:
    return [
        (labelled(results, scheme), *(f"{float(results[name].sel(scheme=scheme).median()):.2f}" for name, _ in _TIMES))
        for scheme in map(str, results["scheme"].values)
    ]
