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
    """This table describes the cell and the length of a round."""

    num_devices: Annotated[int, *whole(1, 100_000_000)]
    """The cell has this many devices (K in the paper)."""
    placement: Placement
    """This law places the devices. Laws: linspace (near_m, far_m), list (distance_m), disc (radius_m, min_distance_m),
    file (file, column)."""
    deadline_s: Time
    """A device has to compute and upload within this time block (T in the paper)."""
    excess_loss: RatioEach = 1.0
    """This is the loss on top of the path loss, for example from walls or shadowing, as a ratio or in dB."""
    participants: Annotated[int, *whole(1, 100_000_000)] | None = None
    """In each round, this many devices are drawn to take part. Default: all devices."""
    straggler_probability: Annotated[float, *one(Limit(NUMBER, 0.0, 1.0, low_allowed=True))] = 0.0
    """A device's update misses the deadline with this probability. Its energy is spent all the same. The key
    learning.late_rounds says whether the late update is used."""
    mobility: Mobility = Still()
    """This law moves the devices between rounds. Laws: none, radial (max_speed_m_per_s, near_m, far_m)."""
    arrival_round: CountEach | None = None
    """A device joins the cell in this round. Default: it is there from the start."""
    departure_round: CountEach | None = None
    """A device leaves the cell after this round. Default: it stays until the end."""

    @model_validator(mode="after")
    def _participants_exist(self) -> Cell:
        if self.participants is not None and self.participants > self.num_devices:
            raise ValueError(
                f"participants {self.participants} exceeds num_devices {self.num_devices}; lower it or leave it out"
            )
        return self


class Radio(Group):
    """This table describes the uplink of one device."""

    bandwidth_hz: FrequencyEach
    """Each device's channel has this bandwidth (B in the paper)."""
    carrier_hz: Frequency
    """The channels are centred on this frequency (f_c in the paper)."""
    path_loss_exponent: Annotated[float, *one(Limit(NUMBER, 1.0, 8.0, low_allowed=True))]
    """Path loss grows with distance to the power of this exponent (alpha in the paper)."""
    noise_psd_w_per_hz: PowerDensity
    """This is the spectral density of the thermal noise (N_0 in the paper)."""
    modulation_gap: Ratio
    """This is the gap between channel capacity and practical modulation (Gamma in the paper)."""
    max_transmit_power_w: PowerEach
    """A device transmits with this power at most (P_max in the paper)."""
    amplifier_efficiency: ShareEach
    """This is the drain efficiency of the power amplifier (rho in the paper)."""
    circuit_power_w: PowerEach
    """The radio draws this static power while it transmits (P_cir in the paper)."""
    payload_bits: Information | None = None
    """One uploaded update has this many bits (V in the paper). If the key is unset, the size follows from the model."""
    charge_gradient_upload: bool = False
    """If true, the gradient exchange is charged as a second upload of the same size."""
    fading: Fading
    """This law draws the block fading. Laws: none, rayleigh (scale), rician (scale, k_factor), nakagami (scale,
    shape)."""
    doppler_hz: Frequency | None = None
    """This largest Doppler shift correlates the fading of a device over rounds. Default: rounds are independent."""
    channel_error_std: NonNegative = 0.0
    """This is the standard deviation of the channel estimate's error, in its real and in its imaginary part."""
    outage_probability: Annotated[float, *one(Limit(NUMBER, 1e-9, 0.999, low_allowed=True))] = 0.01
    """Devices plan so that an upload fails with this probability because the channel estimate was wrong."""

    @model_validator(mode="after")
    def _doppler_has_waves_to_shift(self) -> Radio:
        if self.doppler_hz is not None and not self.fading.scattered:
            raise ValueError(
                f"doppler_hz {self.doppler_hz:g} with fading law '{self.fading.law}', which has no correlation over "
                "time; choose rayleigh or rician, or leave doppler_hz out"
            )
        return self


class Utility(Group):
    """This table says what a device wants, and what the benchmark rules ask of it."""

    energy_reference_j: EnergyEach
    """This is the utility-energy parameter (varrho in the paper). The cost term of the utility peaks at half of it."""
    effort_scale: NonNegativeEach
    """The effort fit starts from this beta1, which is the deviation that a device expects without any work."""
    effort_decay_j: Annotated[PerDevice, *each(Limit(ENERGY, 1e-12, low_allowed=True))]
    """The effort fit starts from this beta2, which is the compute energy that divides the expected deviation by e."""
    effort_fit: Literal["paper", "prior", "window"]
    """The effort fit is the method by which a device estimates beta1 and beta2 from the deviations that it observed."""
    effort_window: Annotated[int, *whole(1, 1000)] = 8
    """The effort fit 'window' keeps this many observations."""
    effort_ridge: Annotated[float, *one(Limit(NUMBER, 1e-8, low_allowed=True))] = 0.01
    """The effort fit 'window' is pulled towards its first guess with this weight."""
    iteration_price_j: Energy
    """The rule 'priced' pays up to this energy for one more iteration."""
    energy_budget_j: EnergyEach | None = None
    """The rule 'equal_energy' spends this energy per round. Default: half of energy_reference_j."""
    required_iterations: CountEach
    """The rules 'least_energy' and 'fedl' make every device do this many iterations."""
    delay_price_w: Power = 1.0
    """The rule 'fedl' pays this energy for one second less of delay."""


CHANGING = ("label_noise", "input_gain", "input_offset")
"""Parameters of data by which devices hold other samples than the data set has."""


class Data(Group):
    """This table says what the devices learn from."""

    source: Annotated[str, named(DATA), Field(min_length=1)]
    """This is the data set: a name from 'fairwave data list', an .npz file, a folder of idx or CSV files, 'hf:NAME', or
    a plugin's name."""
    bits_per_feature: Annotated[int, *whole(1, 64)]
    """A device stores one input value in this many bits."""
    partition: Partition
    """This law decides which device holds which samples. Laws: iid, dirichlet (alpha), shards (per_device), quantity
    (alpha), rare, file, users, own."""
    samples_per_device: Annotated[int, *whole(1, 10**9)] | None = None
    """Each device holds this many samples. Default: the data set is shared out equally."""
    refreshed_samples: Annotated[int, *whole(0, 10**9)] = 0
    """Each device replaces this many samples every round by others of its share. The number has to be below
    samples_per_device, which has to be set."""
    label_noise: PartEach = 0.0
    """This share of a device's labels is replaced by another class, which is drawn at random. Default: 0."""
    input_gain: PositiveEach = 1.0
    """A device's inputs are multiplied by this factor, for example for the contrast of its camera. Default: 1."""
    input_offset: OffsetEach = 0.0
    """This value is added to a device's inputs after the gain, for example for brightness. Bytes are read as values
    from 0 to 1. Default: 0."""
    target: Target = "class"
    """Labels are classes ('class': whole numbers from 0, or names) or numbers to predict ('number': any values, in your
    unit)."""
    classes: tuple[str, ...] = ()
    """These are the names of the classes in the order of their numbers. They are needed if a CSV file has names as
    labels."""

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
    """This table says how long the run is and which seed it has."""

    seed: Annotated[int, *whole(0, 2**53)]
    """All random numbers of the run follow from this seed."""
    num_rounds: Annotated[int, *whole(1, LONGEST_RUN)]
    """The run has this many communication rounds (M in the paper)."""
    evaluate_every: Annotated[int, *whole(1, 1_000_000)] = 1
    """Models are evaluated every time this many rounds have passed. In the other rounds only the devices' own losses
    are known."""
    keep_models: KeepModels = "last"
    """These models stay in the run: 'last', 'all', or a number N, which keeps those of rounds N, 2 N, ... and of the
    last."""
    target_loss: Positive | None = None
    """The run stops when the mean loss of the devices reaches this value."""
    target_accuracy: Annotated[float, *one(Limit(NUMBER, 0.0, 1.0))] | None = None
    """The run stops when the test accuracy reaches this value."""
    global_accuracy: Annotated[float, *one(Limit(NUMBER, 0.0, 1.0 - 1e-12))] | None = None
    """Algorithm 1 stops at this accuracy of the global problem (Psi in the paper). It is the share that is left of the
    first model's loss above optimal_loss."""
    optimal_loss: NonNegative | None = None
    """This is the least global loss that any model has, if it is known. It has to be given together with
    global_accuracy."""

    @model_validator(mode="after")
    def _accuracy_has_its_constant(self) -> Run:
        if (self.global_accuracy is None) != (self.optimal_loss is None):
            raise ValueError("global_accuracy and optimal_loss go together; give both or neither")
        return self


class Scenario(Group):
    """A scenario is everything that defines an experiment, apart from which schemes are compared."""

    cell: Cell
    """This table describes the cell and the length of a round."""
    radio: Radio
    """This table describes the uplink of a device."""
    compute: Compute
    """This table describes the processor of a device."""
    utility: Utility
    """This table says what a device wants."""
    privacy: Privacy
    """This table says how much noise is added and what is proved."""
    learning: Learning
    """This table describes the model and its local training."""
    data: Data
    """This table says what the devices learn from."""
    run: Run
    """This table says how long the run is and which seed it has."""
    cheating: Cheating = Cheating()
    """This table says which devices misbehave."""
    defences: Defences = Defences()
    """This table says what the access point does about devices that misbehave."""
    peers: Peers = Peers()
    """This table has the settings of schemes from other papers."""
    plugins: tuple[str, ...] = ()
    """These Python files define schemes, rules, behaviours, defences, models, data sets or laws that this scenario may
    name."""

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
                "computed from the data set; remove the former, or set learning.features to 'none'"
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
