"""Mode 'device': all data of a device are protected from the others by noise that a trusted access point adds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar

import jax.numpy as jnp
import numpy as np

from fairwave.double_precision import double_precision
from fairwave.extensions import SCHEMES
from fairwave.privacy.budget import most_releases
from fairwave.privacy.central_release import CentralRelease, central_release
from fairwave.privacy.disclosure import Source
from fairwave.privacy.ledger import ReleaseEvent, RoundMessages, event
from fairwave.privacy.modes.enforcement import Enforcement
from fairwave.privacy.modes.mode import PrivacyMode, SchemeTraits, Trust
from fairwave.privacy.modes.wording import (
    CONCLUSION,
    NOT_COVERED,
    about_budget,
    about_noise_source,
    about_rounding,
    composed_as_in_the_paper,
    missing_parts,
)
from fairwave.privacy.noise import floating_point_delta
from fairwave.privacy.nominal_totals import RealisedNominal
from fairwave.privacy.sampling import sampling_probability
from fairwave.privacy.spending import Account
from fairwave.scenario.parameters import Scenario
from fairwave.scenario.privacy_parameters import Privacy
from fairwave.types import FlagPerDevice, Key, Params, UpdatePerDevice


class DeviceLevel(PrivacyMode):
    """Updates are clipped, and noise goes into the access point's own model."""

    name: ClassVar[str] = "device"
    summary: ClassVar[str] = "Noise of a trusted access point protects all data of a device."
    proves: ClassVar[bool] = True
    unit: ClassVar[str] = "all data"
    scores_devices: ClassVar[bool] = False
    access_point: ClassVar[Trust | None] = "trusted"
    adversary: ClassVar[str] = (
        "Access point: trusted. It receives every update without noise. A curious access point learns "
        "everything that updates reveal, and a malicious one could also omit the noise or pass updates on."
    )
    uncovered: ClassVar[frozenset[Source]] = PrivacyMode.uncovered | {Source.UPDATES}

    def obstacles(self, scenario: Scenario) -> Iterator[str]:
        """What would tell devices more than the noised model does."""
        yield from missing_parts(scenario)
        if scenario.learning.gradient_exchange:
            yield (
                "learning.gradient_exchange tells every device the mean gradient without noise, so that privacy.mode "
                "'device' would prove nothing; set it to false"
            )
        if scenario.privacy.copies != "nested":
            yield (
                "privacy.copies 'independent' lets devices average the noise away, so that privacy.mode 'device' would "
                "prove less than it says; set it to 'nested'"
            )
        if scenario.learning.late_rounds:
            yield (
                f"learning.late_rounds {scenario.learning.late_rounds} mixes updates of several rounds, and "
                "privacy.mode 'device' has a proof for those of one; set it to 0"
            )

        if scenario.defences.aggregator != "mean":
            yield (
                f"defences.aggregator '{scenario.defences.aggregator}' lets one device's update decide how others' "
                "are used, for which privacy.mode 'device' has no proof; set it to 'mean'"
            )

    def refuses_scheme(self, scheme: SchemeTraits) -> str | None:
        """Schemes that do more than send everybody the mean of the updates."""
        if not (scheme.same_noise_for_all and scheme.noisy_updates):
            fitting = [name for name, each in SCHEMES.items() if each.same_noise_for_all and each.noisy_updates]
            return (
                f"'{scheme.name}' sends copies whose noise depends on the device, or has none, so that privacy.mode "
                f"'device' would prove nothing; choose among {', '.join(fitting)} (--schemes)"
            )
        if scheme.combine is not None or scheme.personal_models is not None:
            return (
                f"'{scheme.name}' does more than take the mean of updates, and privacy.mode 'device' has a proof for "
                "that alone; choose another scheme"
            )
        return None

    def refuses_defence(self, name: str) -> str | None:
        """Any defence: it would let one device's update change how another's is used."""
        return (
            f"'{name}' judges one device's update by others', for which privacy.mode 'device' has no proof; it clips "
            "updates and drops what is not finite anyway: set defences.use=[]"
        )

    def enforcement(self, scenario: Scenario, counts: np.ndarray, num_parameters: int) -> Enforcement:
        """Nothing on devices; a budget of rounds for each."""
        privacy = scenario.privacy
        rounding = floating_point_delta(privacy.noise_source, num_parameters)
        return Enforcement(
            clip_norm=privacy.clip_norm or 0.0,
            noise_multiplier=privacy.noise_multiplier or 0.0,
            exchange_noise_multiplier=privacy.exchange_noise_multiplier or 0.0,
            rounding_delta=rounding,
            sampling=np.asarray(sampling_probability(scenario.learning.batch_size, jnp.asarray(counts))),
            lost_delta=np.full(counts.shape, rounding),
            protection=None,
            work_out_budget=lambda: _rounds(privacy, counts, rounding),
        )

    def noised_model(
        self, privacy: Privacy, model: Params, rows: UpdatePerDevice, arrived: FlagPerDevice, key: Key
    ) -> CentralRelease:
        """The model moved by the mean of the clipped updates, with noise."""
        return central_release(
            model,
            rows,
            arrived,
            key,
            clip_norm=privacy.clip_norm or 0.0,
            noise_multiplier=privacy.noise_multiplier or 0.0,
            source=privacy.noise_source,
        )

    def events(self, enforced: Enforcement, messages: RoundMessages) -> list[ReleaseEvent]:
        """Updates, which only the access point hears, and the noised model, which is what proves."""
        events = [event("update", "device", messages.sent)]
        if messages.delivered.size:  # copies may have more noise than the model itself, and no device's has less
            model = event(
                "model",
                "access point",
                messages.served,
                messages.model_std,
                messages.model_sensitivity,
                subjects=messages.delivered,
                lost_delta=enforced.rounding_delta,
            )
            events.append(model)
        return events

    def claims(self, scenario: Scenario) -> list[str]:
        """Device-level privacy, against everybody but the access point."""
        privacy = scenario.privacy
        return [
            "Protected: all data of one device, over the whole run, against the other devices, any coalition of them, "
            "and the public.",
            self.adversary,
            "Adjacent: a device's updates are there, or they are zero. It is public that the device takes part.",
            f"How: each update is clipped to {privacy.clip_norm:g}. Noise of {privacy.noise_multiplier:g} times "
            "what one update can change of their mean is added to the access point's own model, from which the "
            "next round starts. No device learns its deviation, and all devices get the same copy.",
            about_budget(privacy, "Rounds in which a device was heard are counted"),
            about_noise_source(privacy),
            *about_rounding(
                scenario,
                "A rounded update may be longer than the one that was computed. The access point clips what it has "
                "received, so one device can still change no more than the clip length.",
            ),
            NOT_COVERED,
        ]

    def conclusion(self) -> str:
        """Where to read what is proved."""
        return CONCLUSION

    def quoted(
        self, scenario: Scenario, rounds: int, nominal: Mapping[str, RealisedNominal], proved: Sequence[Account]
    ) -> list[str]:
        """The paper's composition rules, applied to the exact cost of one release."""
        return composed_as_in_the_paper(proved, scenario.privacy.delta)


@double_precision()
def _rounds(privacy: Privacy, counts: np.ndarray, lost: float) -> np.ndarray | None:
    """The rounds in which each device may be heard; None without a limit."""
    if privacy.max_epsilon is None:
        return None
    kind = (privacy.noise_multiplier or 0.0, 1.0)
    return np.full(counts.shape, most_releases(kind, privacy.max_epsilon, privacy.delta, lost))


device_level = DeviceLevel()
