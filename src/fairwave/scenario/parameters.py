"""The paper's parameter table, grouped, frozen and checked. Numbers live in the presets, not here.

A field without a default must be given by the file or by the preset it extends. SI units throughout.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, ValidationInfo, model_validator

from fairwave.extensions import DATA, PRIVACY_MODES
from fairwave.plugins import load_plugins
from fairwave.scenario.cheating_parameters import Cheating
from fairwave.scenario.compute import Compute
from fairwave.scenario.defence_parameters import Defences
from fairwave.scenario.fading_laws import Fading
from fairwave.scenario.group import Group
from fairwave.scenario.html_card import html_card
from fairwave.scenario.learning_parameters import Learning
from fairwave.scenario.mobility_laws import Mobility, Still
from fairwave.scenario.model_keeping import LONGEST_RUN, KeepModels
from fairwave.scenario.names import named
from fairwave.scenario.partition_laws import Own, Partition
from fairwave.scenario.peers import Peers
from fairwave.scenario.placement_laws import Placement
from fairwave.scenario.privacy_parameters import Privacy
from fairwave.scenario.quantity import (
    CountEach,
    Energy,
    EnergyEach,
    Frequency,
    FrequencyEach,
    Information,
    Limit,
    NonNegative,
    NonNegativeEach,
    OffsetEach,
    PartEach,
    PerDevice,
    Positive,
    PositiveEach,
    Power,
    PowerDensity,
    PowerEach,
    Ratio,
    RatioEach,
    ShareEach,
    Time,
    each,
    one,
    whole,
)
from fairwave.scenario.targets import Target, target_objections
from fairwave.units import ENERGY, NUMBER

STORED = "stored"
"""Validation context of a scenario that comes out of a run's file."""


class Cell(Group):
    """Who is in the cell and how long a round lasts."""

    num_devices: Annotated[int, *whole(1, 100_000_000)]
    """Number of devices, K."""
    placement: Placement
    """Where the devices stand. Laws: linspace (near_m, far_m), list (distance_m), disc (radius_m), file (file)."""
    deadline_s: Time
    """Time block T in which a device computes and uploads."""
    excess_loss: RatioEach = 1.0
    """Loss beyond the distance law (walls, shadowing), as a ratio or in dB."""
    participants: Annotated[int, *whole(1, 100_000_000)] | None = None
    """Devices drawn to take part in each round. Default: all."""
    straggler_probability: Annotated[float, *one(Limit(NUMBER, 0.0, 1.0, low_allowed=True))] = 0.0
    """Chance that a device's update misses the deadline: its energy is spent; see learning.late_rounds."""
    mobility: Mobility = Still()
    """How devices move between rounds. Laws: none, radial (max_speed_m_per_s, near_m, far_m)."""
    arrival_round: CountEach | None = None
    """First round in which a device is there. Default: from the start."""
    departure_round: CountEach | None = None
    """Last round in which a device is there. Default: it stays."""

    @model_validator(mode="after")
    def _participants_exist(self) -> Cell:
        if self.participants is not None and self.participants > self.num_devices:
            raise ValueError(
                f"participants {self.participants} exceeds num_devices {self.num_devices}; lower it or leave it out"
            )
        return self


class Radio(Group):
    """The uplink of one device."""

    bandwidth_hz: FrequencyEach
    """Bandwidth B of each device's channel."""
    carrier_hz: Frequency
    """Centre frequency f_c."""
    path_loss_exponent: Annotated[float, *one(Limit(NUMBER, 1.0, 8.0, low_allowed=True))]
    """Path loss exponent alpha."""
    noise_psd_w_per_hz: PowerDensity
    """Noise spectral density N_0."""
    modulation_gap: Ratio
    """Gap Gamma between capacity and practical modulation."""
    max_transmit_power_w: PowerEach
    """Largest transmit power P_max."""
    amplifier_efficiency: ShareEach
    """Drain efficiency rho of the power amplifier."""
    circuit_power_w: PowerEach
    """Static power P_cir of the radio while it transmits."""
    payload_bits: Information | None = None
    """Size V of one uploaded update; "unset", it follows from the model."""
    charge_gradient_upload: bool = False
    """Charge the gradient exchange as a second upload of the same size."""
    fading: Fading
    """Block fading. Laws: none, rayleigh (scale), rician (scale, k_factor), nakagami (scale, shape)."""
    doppler_hz: Frequency | None = None
    """Largest Doppler shift, which correlates the fading of a device's rounds. Default: rounds are independent."""
    channel_error_std: NonNegative = 0.0
    """Error of the channel estimate: std of its real and of its imaginary part."""
    outage_probability: Annotated[float, *one(Limit(NUMBER, 1e-9, 0.999, low_allowed=True))] = 0.01
    """Chance that an upload fails because the estimate was wrong."""

    @model_validator(mode="after")
    def _doppler_has_waves_to_shift(self) -> Radio:
        if self.doppler_hz is not None and not self.fading.scattered:
            raise ValueError(
                f"doppler_hz {self.doppler_hz:g} with fading law '{self.fading.law}', which has no correlation over "
                "time; choose rayleigh or rician, or leave doppler_hz out"
            )
        return self


class Utility(Group):
    """What a device wants, and what the comparison rules ask of it."""

    energy_reference_j: EnergyEach
    """Utility-energy parameter varrho; the utility's cost term peaks at half of it."""
    effort_scale: NonNegativeEach
    """First guess of beta1, the deviation expected without any work."""
    effort_decay_j: Annotated[PerDevice, *each(Limit(ENERGY, 1e-12, low_allowed=True))]
    """First guess of beta2, the compute energy that divides the deviation by e."""
    effort_fit: Literal["paper", "prior", "window"]
    """How beta1 and beta2 follow the observed deviations."""
    effort_window: Annotated[int, *whole(1, 1000)] = 8
    """Observations kept by the fit 'window'."""
    effort_ridge: Annotated[float, *one(Limit(NUMBER, 1e-8, low_allowed=True))] = 0.01
    """Pull of the fit 'window' towards the first guess."""
    iteration_price_j: Energy
    """Rule priced: joules that one iteration is worth."""
    energy_budget_j: EnergyEach | None = None
    """Rule equal_energy: joules per round. Default: half of energy_reference_j."""
    required_iterations: CountEach
    """Rules least_energy and fedl: iterations that every device must do."""
    delay_price_w: Power = 1.0
    """Rule fedl: joules that one second of delay is worth."""


CHANGING = ("label_noise", "input_gain", "input_offset")
"""Parameters of data by which devices hold other samples than the data set has."""


class Data(Group):
    """What the devices learn from."""

    source: Annotated[str, named(DATA), Field(min_length=1)]
    """Data set: a name ('fairwave data list'), an .npz file, a folder of idx or CSV files, 'hf:NAME', a plugin's."""
    bits_per_feature: Annotated[int, *whole(1, 64)]
    """Bits of one input value as stored on the device."""
    partition: Partition
    """Who holds which. Laws: iid, dirichlet (alpha), shards (per_device), quantity (alpha), rare, file, users, own."""
    samples_per_device: Annotated[int, *whole(1, 10**9)] | None = None
    """Samples each device holds. Default: the data set is shared out equally."""
    refreshed_samples: Annotated[int, *whole(0, 10**9)] = 0
    """Samples that each device replaces every round by others of its share; needs samples_per_device below that."""
    label_noise: PartEach = 0.0
    """Share of a device's labels that are replaced by another class, drawn at random. Default: 0, none are."""
    input_gain: PositiveEach = 1.0
    """Factor of a device's inputs, such as the contrast of its camera. Default: 1."""
    input_offset: OffsetEach = 0.0
    """What is added to a device's inputs after that, such as brightness; bytes are values from 0 to 1. Default: 0."""
    target: Target = "class"
    """What labels are: 'class' (whole numbers from 0, or names) or 'number' (any number, in your unit, to predict)."""
    classes: tuple[str, ...] = ()
    """Names of the classes in the order of their numbers, where CSV files have names as labels."""

    @model_validator(mode="after")
    def _classes_differ(self) -> Data:
        twice = [name for name in self.classes if self.classes.count(name) > 1]
        if twice:
            raise ValueError(f"classes names '{twice[0]}' twice; give every class a name of its own")
        return self

    @model_validator(mode="after")
    def _own_data_are_counted(self) -> Data:
        if isinstance(self.partition, Own) and (self.samples_per_device is None or self.refreshed_samples):
            raise ValueError(
                "partition 'own' needs samples_per_device, the number that all devices hold, and no refreshed_samples"
            )
        return self

    @model_validator(mode="after")
    def _own_data_are_left_alone(self) -> Data:
        changing = [name for name in CHANGING if getattr(self, name) != type(self).model_fields[name].default]
        if isinstance(self.partition, Own) and changing:
            raise ValueError(
                f"{changing[0]} changes samples, and with partition 'own' they are the devices'; leave it out"
            )
        return self


class Run(Group):
    """How long, and from which seed."""

    seed: Annotated[int, *whole(0, 2**53)]
    """Root of all randomness."""
    num_rounds: Annotated[int, *whole(1, LONGEST_RUN)]
    """Communication rounds M."""
    evaluate_every: Annotated[int, *whole(1, 1_000_000)] = 1
    """Rounds between evaluations of the models; in the others nothing but the devices' own losses is known."""
    keep_models: KeepModels = "last"
    """Models that stay in the run: 'last', 'all', or a number N: those of rounds N, 2 N, ... and of the last."""
    target_loss: Positive | None = None
    """Stop when the mean device loss reaches this."""
    target_accuracy: Annotated[float, *one(Limit(NUMBER, 0.0, 1.0))] | None = None
    """Stop when the test accuracy reaches this."""
    global_accuracy: Annotated[float, *one(Limit(NUMBER, 0.0, 1.0 - 1e-12))] | None = None
    """Accuracy Psi of the global problem at which Algorithm 1 stops: the share that is left of the first model's loss
    above optimal_loss."""
    optimal_loss: NonNegative | None = None
    """Least global loss that any model has, if known; needed together with global_accuracy."""

    @model_validator(mode="after")
    def _accuracy_has_its_constant(self) -> Run:
        if (self.global_accuracy is None) != (self.optimal_loss is None):
            raise ValueError("global_accuracy and optimal_loss go together; give both or neither")
        return self


class Scenario(Group):
    """Everything that defines an experiment, apart from which schemes are compared."""

    cell: Cell
    radio: Radio
    compute: Compute
    utility: Utility
    privacy: Privacy
    learning: Learning
    data: Data
    run: Run
    cheating: Cheating = Cheating()
    defences: Defences = Defences()
    peers: Peers = Peers()
    plugins: tuple[str, ...] = ()
    """Python files whose schemes, rules, behaviours, defences, models, data sets and laws this scenario may name."""

    @model_validator(mode="before")
    @classmethod
    def _plugins_are_loaded(cls, tables: Any, info: ValidationInfo) -> Any:
        """What plugins define has to be known before the rest can be checked; a stored scenario executes none."""
        if isinstance(tables, dict) and not (info.context or {}).get(STORED):
            load_plugins(tables.get("plugins", ()))
        return tables

    @model_validator(mode="after")
    def _channel_error_leaves_a_signal(self) -> Scenario:
        error_power = 2.0 * self.radio.channel_error_std**2
        if error_power >= self.radio.fading.mean_power:
            raise ValueError(
                f"radio.channel_error_std {self.radio.channel_error_std:g} drowns the channel, whose mean power is "
                f"{self.radio.fading.mean_power:g}; keep 2 * std^2 below it"
            )
        return self

    @model_validator(mode="after")
    def _adversaries_exist(self) -> Scenario:
        for entry in self.cheating.adversaries:
            missing = [device for device in entry.devices if device >= self.cell.num_devices]
            if missing:
                raise ValueError(
                    f"cheating.adversaries: device {missing[0]} for '{entry.behaviour}', and the cell has "
                    f"{self.cell.num_devices}, numbered from 0; choose among them"
                )
        return self

    @model_validator(mode="after")
    def _training_answers_its_copy(self) -> Scenario:
        if self.privacy.similarity == "training" and self.learning.gradient_exchange:
            raise ValueError(
                "privacy.similarity 'training' looks for how training takes back the noise in a device's copy, which "
                "learning.gradient_exchange subtracts; set gradient_exchange to false, or choose another similarity"
            )
        return self

    @model_validator(mode="after")
    def _global_problem_stays_the_same(self) -> Scenario:
        if self.run.global_accuracy is not None and self.data.refreshed_samples:
            raise ValueError(
                f"run.global_accuracy {self.run.global_accuracy:g} with data.refreshed_samples "
                f"{self.data.refreshed_samples}: other data are another problem with another optimum; leave one out"
            )
        return self

    @model_validator(mode="after")
    def _features_are_of_the_data_set(self) -> Scenario:
        if self.learning.features != "none" and (self.data.input_gain != 1.0 or self.data.input_offset != 0.0):
            raise ValueError(
                f"data.input_gain or data.input_offset with learning.features '{self.learning.features}', which are "
                "computed of the data set; leave the former out, or set learning.features to 'none'"
            )
        return self

    @model_validator(mode="after")
    def _labels_fit(self) -> Scenario:
        found = list(target_objections(self))
        if found:
            raise ValueError(". Also: ".join(found))
        return self

    @model_validator(mode="after")
    def _proves_what_it_claims(self) -> Scenario:
        found = list(PRIVACY_MODES[self.privacy.mode].obstacles(self))
        if found:
            raise ValueError(". Also: ".join(found))
        return self

    def __repr__(self) -> str:
        layers = " x ".join(map(str, self.learning.layer_sizes))
        return (
            f"<Scenario: {self.cell.num_devices} devices; {self.run.num_rounds} rounds; {self.data.source}; "
            f"{self.learning.model} {layers}; privacy mode '{self.privacy.mode}'>"
        )

    __str__ = __repr__

    def _repr_html_(self) -> str:
        """All parameters behind a click, for notebooks."""
        from fairwave.scenario.show import to_toml

        return html_card(repr(self)[1:-1], more=to_toml(self))

    def payload_bits(self) -> float:
        """Bits that one device uploads in a round."""
        once = self.radio.payload_bits or float(self.learning.upload_bits())
        return 2.0 * once if self.radio.charge_gradient_upload else once

    def batch_bits(self) -> float:
        """Bits of data that one iteration works through: those of a batch, once for every view of it."""
        values = self.learning.batch_size * self.learning.views * self.learning.layer_sizes[0]
        return float(values * self.data.bits_per_feature)
