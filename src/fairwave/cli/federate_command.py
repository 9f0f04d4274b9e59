"""`fairwave federate`: the same policies between processes and machines."""

from __future__ import annotations

import dataclasses
import enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fairwave.cli import fleet_command as fleet
from fairwave.cli.arguments import Seeds, names_in, warn
from fairwave.cli.fleet_command import need_flower, say_line
from fairwave.cli.run_command import Resumable, tell_results, this_command
from fairwave.cli.scenario_command import Overrides, Plugins
from fairwave.errors import ArgumentError
from fairwave.runs.seeds import seeds_in

if TYPE_CHECKING:
    from fairwave.federate.agreement import Agreement
    from fairwave.federate.settings import Settings

app = typer.Typer(
    help="Train between real processes and machines, on Flower. 'local' uses this machine, and 'init' prepares "
    "several. The other commands are for the operator of an access point.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


class Engine(enum.StrEnum):
    """What carries the messages."""

    DEPLOYMENT = "deployment"
    IN_PROCESS = "in-process"
    RAY = "ray"


class Noise(enum.StrEnum):
    """Where noise comes from."""

    HARDENED = "hardened"
    SIMULATION = "simulation"


Source = Annotated[
    str,
    typer.Argument(show_default=False, help="This is the scenario: a preset or a TOML file. Default: small."),
]
Preset = Annotated[str, typer.Option(show_default=False, help="Take this scenario, if SOURCE is not given.")]
Nodes = Annotated[
    int | None,
    typer.Option(min=1, show_default=False, help="Take this many devices. Default: the scenario's number of devices."),
]
Rounds = Annotated[int, typer.Option(help="Run this many communication rounds.")]
SchemeNames = Annotated[str, typer.Option(help="Run these schemes, separated by commas, one after the other.")]
NoiseSource = Annotated[
    Noise,
    typer.Option(
        help="Draw noise from this source. 'hardened' uses the operating system's randomness. 'simulation' can be "
        "repeated and protects nothing."
    ),
]
Deadline = Annotated[float, typer.Option(help="Wait this many seconds for the answers of each exchange.")]
Quorum = Annotated[float, typer.Option(help="A round needs answers from this share of its devices.")]


@app.command()
def local(
    source: Source = "",
    preset: Preset = "",
    nodes: Nodes = None,
    rounds: Rounds = 3,
    schemes: SchemeNames = "proposed",
    seeds: Seeds = "",
    overrides: Overrides = None,
    plugins: Plugins = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Store the run in this folder. Default: runs/federated-SCENARIO."),
    ] = None,
    engine: Annotated[
        Engine,
        typer.Option(
            help="Carry messages in this way. 'deployment' uses processes, sockets, TLS and keys. 'in-process' uses "
            "none of them. 'ray' is Flower's simulation engine."
        ),
    ] = Engine.DEPLOYMENT,
    noise: NoiseSource = Noise.HARDENED,
    deadline: Deadline = 120.0,
    quorum: Quorum = 0.5,
) -> None:
    """Run a whole federation on this machine, with an access point and a process per device.

    Devices have keys, and the access point has a certificate. Flower's telemetry is off, and all processes end with
    the command. Every finished round is stored. After Ctrl-C or a crash, the same command resumes the run. Devices
    that fail are started again. The result is a run like any other, for 'fairwave report' and 'fairwave privacy'.

    Examples:

      fairwave federate local --nodes 3

      fairwave federate local fair --nodes 2 --rounds 2 --out runs/two

      fairwave federate local paper --engine in-process --rounds 20 --noise simulation
    """
    need_flower()
    name = _one_source(source, preset)
    # Devices share this machine's energy counters, so that each takes what its model says.
    settings = settings_of(deadline_s=deadline, quorum=quorum, noise=noise.value, telemetry=True, energy="model")
    asked = _Asked(name, nodes, rounds, schemes, seeds, overrides or [], plugins or [])
    agreement = _agreement(asked, settings)
    if agreement.order.scenario.data.partition.law == "own":
        raise ArgumentError("data.partition: devices of 'federate local' have no data of their own; choose another law")
    folder = out or Path("runs") / f"federated-{Path(name).stem}"
    command = this_command()
    with Resumable(command):
        _run(engine, agreement, folder, command)
    tell_results(folder, worked=True)


@app.command()
def init(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Write this folder, which must not exist yet.")],
    source: Source = "",
    preset: Preset = "",
    nodes: Nodes = None,
    rounds: Rounds = 50,
    schemes: SchemeNames = "proposed",
    seeds: Seeds = "",
    overrides: Overrides = None,
    plugins: Plugins = None,
    host: Annotated[
        list[str] | None,
        typer.Option(help="Devices reach the access point by this name or address. The option may be repeated."),
    ] = None,
    port: Annotated[
        int,
        typer.Option(
            min=1, max=65534, help="Devices connect to this port. The next one is used inside the machine only."
        ),
    ] = 8443,
    days: Annotated[
        int, typer.Option(min=1, max=1825, help="The access point's certificate is valid for this many days.")
    ] = 365,
    noise: NoiseSource = Noise.HARDENED,
    deadline: Deadline = 120.0,
    quorum: Quorum = 0.5,
) -> None:
    """Write everything that a real deployment needs: the app, certificates, a key per device, and start scripts.

    Each machine gets its own folder out of DIR. The file DIR/README.md says in which order the machines start. The
    page docs/federate.md shows the steps for three machines.

    Example:  fairwave federate init deployment fair --nodes 2 --host ap.example.org
    """
    need_flower()
    from fairwave.federate.kit import write_kit

    settings = settings_of(deadline_s=deadline, quorum=quorum, noise=noise.value)
    name = _one_source(source, preset)
    asked = _Asked(name, nodes, rounds, schemes, seeds, overrides or [], plugins or [])
    agreement = _agreement(asked, settings)
    write_kit(folder, agreement, host or ["localhost"], port, days)
    typer.echo(f"written: {folder}   (next: {folder / 'README.md'})")


def settings_of(**given: object) -> Settings:
    """Settings of a federation, as options give them."""
    from pydantic import ValidationError

    from fairwave.federate.settings import Settings
    from fairwave.scenario.complaints import one_line

    try:
        return Settings.model_validate(given)
    except ValidationError as error:
        raise ArgumentError(f"--{one_line(error, Settings).replace('_s:', ':', 1)}") from None


def _one_source(source: str, preset: str) -> str:
    if source and preset and source != preset:
        raise ArgumentError(f"--preset {preset}: and SOURCE is {source}; give one of them")
    return source or preset or "small"


@dataclasses.dataclass(frozen=True)
class _Asked:
    """What the two commands ask for alike."""

    source: str
    nodes: int | None
    rounds: int
    schemes: str
    seeds: str
    overrides: list[str]
    plugins: list[Path]


def _agreement(asked: _Asked, settings: Settings) -> Agreement:
    from fairwave.data.sources import load_for
    from fairwave.federate.agreement import Agreement
    from fairwave.privacy.modes.mode import mode_of
    from fairwave.runs.forewarnings import forewarnings, outlook_of_run
    from fairwave.runs.order import Order, fitting_schemes
    from fairwave.scenario.loading import load_scenario

    source, nodes = asked.source, asked.nodes
    given = [*asked.overrides, *([] if nodes is None else [f"cell.num_devices={nodes}"])]
    scenario = load_scenario(source, given, plugins=asked.plugins)
    if mode_of(scenario.privacy).proves and scenario.privacy.noise_source != "exact":
        scenario = load_scenario(source, [*given, f"privacy.noise_source={settings.noise}"], plugins=asked.plugins)
    names = names_in(asked.schemes, fitting_schemes(scenario))
    seeds = seeds_in(asked.seeds) if asked.seeds else (scenario.run.seed,)
    agreement = Agreement(Order.checked(scenario, names, seeds, asked.rounds), settings)
    data = None if scenario.data.partition.law == "own" else load_for(scenario.data)
    for sentence in forewarnings(outlook_of_run(scenario, asked.rounds, data)):
        warn(sentence)
    return agreement


def _run(engine: Engine, agreement: Agreement, folder: Path, command: str) -> None:
    match engine:
        case Engine.DEPLOYMENT:
            from fairwave.federate.deployment import federate_on_loopback

            typer.echo(f"starting the network: {agreement.order.scenario.cell.num_devices} devices", err=True)
            federate_on_loopback(agreement, folder, command, say_line)
        case Engine.IN_PROCESS:
            from fairwave.federate.in_process import federate_in_process

            federate_in_process(agreement, folder, command, say_line)
        case Engine.RAY:
            from fairwave.federate.ray_engine import federate_on_ray

            federate_on_ray(agreement, folder, command, say_line)


for _name, _command in fleet.COMMANDS.items():
    app.command(_name)(_command)
