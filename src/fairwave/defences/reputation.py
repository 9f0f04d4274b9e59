"""Whoever is caught again and again is not asked any more."""

from __future__ import annotations

from fairwave.defences.defence import Defence

reputation = Defence(
    name="reputation",
    summary="removes devices that other defences catch again and again: not asked, no more copies",
    removes=True,
)
