"""Everything that comes with fairwave under a name, on one page. A new member is one small file and one name here.

The command line, the documentation and the conformance tests read these lists. Members from outside the package join
them through entry points (group `fairwave.schemes` and so on), plugin files, or `add`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from fairwave.errors import ArgumentError
from fairwave.registry import Registry


def _members(package: str, names: str) -> dict[str, str]:
    """Members that are defined in a file of their own name, under their own name."""
    return {name: f"fairwave.{package}.{name}:{name}" for name in names.split()}


SCHEMES: Registry[Any] = Registry(
    "scheme",
    "schemes",
    _members(
        "schemes",
        "proposed max_power amplifier_cap priced equal_energy least_energy no_privacy fedavg fair_noise_only "
        "fair_energy_only fedavgm fedadam fedyogi fedadagrad fedprox fednova scaffold feddyn q_fedavg afl term ditto "
        "mr_mtl cgsv rffl cffl iafl fedl",
    ),
)
RULES: Registry[Any] = Registry(
    "policy",
    "rules",
    _members("policy.rules", "proposed max_power amplifier_cap priced equal_energy least_energy fedl"),
)
BEHAVIOURS: Registry[Any] = Registry(
    "behaviour",
    "behaviours",
    _members(
        "adversaries",
        "fewer_iterations part_of_data replay quantised sparsified zero_update noise_update echo_model echo_update "
        "disguised label_flip sign_flip scaled misreport lazy coalition alie inner_product min_max fang sybils "
        "backdoor adds_noise adds_last_update adds_first_update adds_echo adds_path",
    ),
)
DEFENCES: Registry[Any] = Registry(
    "defence",
    "defences",
    _members(
        "defences",
        "validation watermark replay_check held_out noise_check length_credit norm_clipping projection "
        "median_yardstick reputation",
    ),
)
AGGREGATORS: Registry[Any] = Registry(
    "aggregator",
    "aggregators",
    _members(
        "aggregators",
        "mean coordinate_median trimmed_mean krum multi_krum bulyan geometric_median centred_clipping fltrust "
        "norm_bounding",
    ),
)
MODELS: Registry[Any] = Registry(
    "model",
    "models",
    {
        name: f"fairwave.learning.models:{name}"
        for name in ("mlp", "softmax", "cnn", "pooled_cnn", "series_cnn", "resnet", "gru", "regression")
    },
)
FEATURES: Registry[Any] = Registry(
    "kind of features", "features", {name: f"fairwave.learning.features:{name}" for name in ("none", "scattering")}
)
DATA: Registry[Any] = Registry(
    "data set",
    "data",
    {
        "mnist": "fairwave.data.sources:mnist",
        "fashion-mnist": "fairwave.data.fashion_mnist:fashion_mnist",
        "cifar10": "fairwave.data.cifar10:cifar10",
        "har": "fairwave.data.har:har",
    },
)
FADING: Registry[Any] = Registry(
    "law",
    "fading",
    {
        "none": "fairwave.wireless.fading:NoFading",
        "rayleigh": "fairwave.wireless.fading:Rayleigh",
        "rician": "fairwave.wireless.fading:Rician",
        "nakagami": "fairwave.wireless.fading:Nakagami",
    },
)
PRIVACY_MODES: Registry[Any] = Registry(
    "privacy mode",
    "privacy_modes",
    {
        "paper": "fairwave.privacy.modes.nominal:nominal",
        "provable": "fairwave.privacy.modes.record_level:record_level",
        "device": "fairwave.privacy.modes.device_level:device_level",
    },
)
ACCOUNTANTS: Registry[Any] = Registry(
    "accountant",
    "accountants",
    {
        "tight": "fairwave.privacy.accountants:tight",
        "renyi": "fairwave.privacy.accountants:renyi",
    },
)
TRACKERS: Registry[Any] = Registry(
    "tracker", "trackers", {name: f"fairwave.trackers.{name}:{name}" for name in ("tensorboard", "mlflow", "wandb")}
)

COMPARED = ("proposed", "max_power")
"""Schemes, and policies, that are compared where none are named: the paper's, and its benchmark."""

ALL: dict[str, Registry[Any]] = {
    registry.group: registry
    for registry in (
        *(
            SCHEMES,
            RULES,
            BEHAVIOURS,
            DEFENCES,
            AGGREGATORS,
            MODELS,
            FEATURES,
            DATA,
            FADING,
            PRIVACY_MODES,
            ACCOUNTANTS,
            TRACKERS,
        ),
    )
}

OF_CLASSES = (FADING.group, ACCOUNTANTS.group)
"""Registries whose members are classes; those of the others are objects."""


def add(*members: Any) -> None:
    """Add schemes, rules, behaviours, defences, models, data sets, fading laws and the like under their own names.

    Args:
        members: Objects of the types that docs/extending.md lists; of a fading law or an accountant, the class.

    Example:
        >>> class Silence(fairwave.Callback):
        ...     '''Follows training and says nothing.'''
        >>> add(fairwave.Tracker("silence", "nowhere", "fairwave", lambda folder: Silence()))
        >>> "silence" in TRACKERS
        True
    """
    for member in members:
        group = getattr(member, "extends", None)
        if group not in ALL or isinstance(member, type) != (group in OF_CLASSES):
            raise ArgumentError(f"add: {member!r} is nothing that fairwave can be extended by; see docs/extending.md")
        ALL[group].add(member, member.name)


def listed(registry: Registry[Any], names: Iterable[str] | None = None) -> str:
    """The names of a registry's members, or some of them, as help texts show them."""
    return ", ".join(registry.builtin_names() if names is None else names)
