"""`fairwave study`: questions that take many runs, answered on one page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fairwave.cli.arguments import Seeds, names_in
from fairwave.cli.job_runs import Jobs, results_of, run_jobs
from fairwave.cli.scenario_command import Overrides, Source
from fairwave.runs.seeds import seeds_in

if TYPE_CHECKING:
    import xarray as xr

    from fairwave.studies.jobs import Job

app = typer.Typer(
    help="Answer questions that take many runs. You may interrupt a study at any time. The same command resumes it.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

Rounds = Annotated[int, typer.Option(help="Give every run this many communication rounds.")]
Out = Annotated[
    Path | None, typer.Option(help="Store the runs and the page in this folder. Default: runs/study-QUESTION.")
]
FEW_SAMPLES = "data.samples_per_device=900"
ATTACKED = ("cell.num_devices=20", "data.samples_per_device=300")


@app.command()
def incentives(
    source: Source = "paper-clean",
    behaviours: Annotated[
        str,
        typer.Option(help="Try these behaviours, separated by commas (see 'fairwave scenario behaviours'), or 'all'."),
    ] = "all",
    rounds: Rounds = 20,
    seeds: Seeds = "0..2",
    overrides: Overrides = None,
    out: Out = None,
    jobs: Jobs = None,
) -> None:
    """Does cheating pay? Try every behaviour under max_power, the literal rule, the defended rule, and CGSV.

    Devices hold 900 samples each unless --set data.samples_per_device says otherwise. The study sets the similarity,
    the defences and the devices that misbehave, whatever the scenario says. The page opens with the verdict.

    Example:  fairwave study incentives --behaviours echo_model,lazy --seeds 0..4
    """
    from fairwave.errors import ArgumentError, did_you_mean
    from fairwave.report.incentives_page import verdict, write_incentives
    from fairwave.scenario.loading import load_scenario
    from fairwave.studies import incentives as study
    from fairwave.studies.answers import advantages

    scenario = load_scenario(source, [FEW_SAMPLES, *(overrides or ())])
    known = study.known(scenario)
    chosen = names_in(behaviours, known)
    for name in chosen:
        if name not in known:
            raise ArgumentError(f"--behaviours: '{name}' is unknown here; {did_you_mean(name, known)}")
    planned = list(study.jobs(scenario, seeds_in(seeds), rounds, chosen))
    folder = out or Path("runs/study-incentives")
    found = _run(planned, folder, jobs)
    answers = advantages(found, chosen)
    titles = [setting.title for setting in study.SETTINGS]
    judged = next(setting.title for setting in study.SETTINGS if setting.defended)
    page = write_incentives(answers, chosen, titles, judged, _about(source, planned), folder)
    typer.echo(verdict(answers, chosen, judged))
    typer.echo(f"report: {page}")


@app.command()
def pareto(
    source: Source = "paper-clean",
    schemes: Annotated[
        str,
        typer.Option(
            show_default=False, help="Compare these schemes, separated by commas, or 'all'. Default: eight schemes."
        ),
    ] = "",
    rounds: Rounds = 30,
    seeds: Seeds = "0..2",
    overrides: Overrides = None,
    out: Out = None,
    jobs: Jobs = None,
) -> None:
    """Compare loss with energy: run every scheme over a range of the setting that limits its energy.

    This setting is the energy budget for proposed and equal_energy, the iterations for least_energy and fedl, the price
    for priced, and the transmit power for all others.

    Example:  fairwave study pareto --schemes proposed,max_power --rounds 20
    """
    from fairwave.extensions import SCHEMES
    from fairwave.report.study_panels import write_pareto
    from fairwave.studies import pareto as study

    chosen = names_in(schemes, SCHEMES.names()) or study.DEFAULT
    planned = list(study.jobs(source, [FEW_SAMPLES, *(overrides or ())], chosen, seeds_in(seeds), rounds))
    folder = out or Path("runs/study-pareto")
    typer.echo(f"report: {write_pareto(_run(planned, folder, jobs), _about(source, planned), folder)}")


@app.command()
def responses(
    source: Source = "paper-clean",
    rounds: Rounds = 30,
    seeds: Seeds = "0..2",
    overrides: Overrides = None,
    out: Out = None,
    jobs: Jobs = None,
) -> None:
    """Do best responses settle? Devices respond to their deviations over a constant channel.

    Example:  fairwave study responses --set privacy.similarity=leave_one_out
    """
    from fairwave.report.study_panels import write_responses
    from fairwave.studies import responses as study

    planned = list(study.jobs(source, [FEW_SAMPLES, *(overrides or ())], seeds_in(seeds), rounds))
    folder = out or Path("runs/study-responses")
    typer.echo(f"report: {write_responses(_run(planned, folder, jobs), _about(source, planned), folder)}")


@app.command()
def attacks(
    source: Source = "paper-clean",
    attacks: Annotated[
        str,
        typer.Option(
            show_default=False,
            help="Try these behaviours, separated by commas. Default: those that harm the model.",
        ),
    ] = "",
    aggregators: Annotated[
        str,
        typer.Option(
            help="Try these aggregators, separated by commas (see 'fairwave scenario aggregators'), or 'all'."
        ),
    ] = "all",
    share: Annotated[float, typer.Option(help="This share of the devices attacks. It has to be below 0.5.")] = 0.2,
    scheme: Annotated[
        str, typer.Option(help="Run this scheme, which has to take the mean of the updates.")
    ] = "no_privacy",
    rounds: Rounds = 20,
    seeds: Seeds = "0..2",
    overrides: Overrides = None,
    out: Out = None,
    jobs: Jobs = None,
) -> None:
    """Which aggregator withstands which attack? Show the test accuracy under every attack, as a table and as CSV.

    Twenty devices hold 300 samples each unless --set says otherwise. Attackers stand evenly in the cell and attack from
    the first round on. The study sets the attackers and the aggregator, whatever the scenario says.

    Example:  fairwave study attacks --attacks sign_flip,min_max --aggregators mean,krum,fltrust --share 0.4
    """
    from rich.console import Console

    from fairwave.extensions import AGGREGATORS, BEHAVIOURS
    from fairwave.report.attacks_table import attacks_table, outcomes, write_outcomes
    from fairwave.runs.order import Order
    from fairwave.scenario.loading import load_scenario
    from fairwave.studies import attacks as study

    scenario = load_scenario(source, [*ATTACKED, *(overrides or ())])
    played = names_in(attacks, BEHAVIOURS.names()) or study.harmful(scenario)
    met = names_in(aggregators, AGGREGATORS.names())
    asked = Order(scenario, (scheme,), tuple(seeds_in(seeds)), rounds)
    planned = list(study.jobs(scenario, played, met, share, asked))
    folder = out or Path("runs/study-attacks")
    runs = _run(planned, folder, jobs)
    found = [
        outcome
        for attack in (study.NOBODY, *played)
        for aggregator in met
        for outcome in outcomes(attack, aggregator, runs[study.job_name(attack, aggregator)])
    ]
    Console().print(attacks_table(found))
    typer.echo(f"table: {write_outcomes(found, folder)}")


@app.command("best-response")
def best_response(
    source: Source = "fair",
    scheme: Annotated[str, typer.Option(help="The device knows the rules of this scheme.")] = "proposed",
    tries: Annotated[
        int, typer.Option(help="Try this many random strategies, and half as many near the best one.", min=2)
    ] = 24,
    rounds: Rounds = 25,
    seeds: Seeds = "0",
    fresh_seeds: Annotated[
        str, typer.Option(help="Judge the best strategy on these seeds, as in 100..104.")
    ] = "100..104",
    overrides: Overrides = None,
    out: Out = None,
    jobs: Jobs = None,
) -> None:
    """What is the best response of a device that knows the rules? Search for it, and compute the price of honesty.

    A strategy has a share of the iterations and of the data, a scale, noise, and a round in which it begins. It also
    has shares of the device's last and first update, and of its copy's change in the last round and since the start.

    Example:  fairwave study best-response small --tries 6 --rounds 8 --seeds 0 --fresh-seeds 100..101
    """
    from fairwave.errors import ArgumentError
    from fairwave.report.best_response_page import verdict, write_best_response
    from fairwave.scenario.loading import load_scenario
    from fairwave.studies.best_response import Search, search

    searched, fresh = seeds_in(seeds), seeds_in(fresh_seeds)
    if both := sorted(set(searched) & set(fresh)):
        raise ArgumentError(f"--fresh-seeds: {both[0]} is one of --seeds too; give seeds that the search does not see")
    game = Search(load_scenario(source, overrides or ()), scheme, rounds, tuple(searched), tuple(fresh))
    folder = out or Path("runs/study-best-response")
    planned: list[Job] = []

    def run(some: Sequence[Job]) -> dict[str, xr.Dataset]:
        planned.extend(some)
        return _run(some, folder, jobs)

    answer = search(game, tries, run)
    page = write_best_response(answer, _about(source, planned), folder)
    typer.echo(verdict(answer))
    typer.echo(f"report: {page}")


@app.command()
def contribution(
    scenarios: Annotated[
        str, typer.Option(help="Run these presets or files, separated by commas.")
    ] = "paper-clean,fair",
    rounds: Rounds = 8,
    every: Annotated[
        int, typer.Option(help="Play a game every time this many rounds have passed, starting with the first round.")
    ] = 2,
    samples: Annotated[int, typer.Option(help="Measure the worth of coalitions on this many test samples.")] = 500,
    utility: Annotated[
        str, typer.Option(help="Measure worth by the fall of the 'loss', or by the rise of the 'accuracy'.")
    ] = "loss",
    between: Annotated[
        float,
        typer.Option(help="If values are estimated, skip a round in which the worth of all devices is below this."),
    ] = 0.0,
    within: Annotated[
        float,
        typer.Option(help="If values are estimated, cut an order short when the worth that it lacks is below this."),
    ] = 0.0,
    seeds: Seeds = "0..4",
    overrides: Overrides = None,
    out: Out = None,
) -> None:
    """Do scores show who contributes? Compare every rule's scores with the Shapley values of the same rounds.

    Devices are alike, or differ in their labels, in how much data they hold, in wrong labels, or in effort. The study
    sets these differences, whatever the scenario says. With 12 devices or fewer, the worth of all coalitions is
    computed. With more, values are estimated. The study runs one setting and seed after the other, stores each in a
    file, and resumes after an interruption.

    Example:  fairwave study contribution --scenarios paper-clean --set cell.num_devices=6 --seeds 0..2
    """
    from fairwave.cli.contribution_runs import contribution as answer

    answer(
        names_in(scenarios, []),
        overrides or (),
        seeds_in(seeds),
        out,
        rounds=rounds,
        every=every,
        samples=samples,
        utility=utility,
        truncations=(between, within),
    )


def _run(planned: Sequence[Job], folder: Path, workers: int | None) -> dict[str, xr.Dataset]:
    """All runs of a study; their results by name."""
    run_jobs(planned, folder, workers)
    return {job.name: found for job, found in results_of(planned, folder)}


def _about(source: str, planned: Sequence[Job]) -> str:
    order = planned[0].order
    return (
        f"Scenario {source}, {order.scenario.cell.num_devices} devices with "
        f"{order.scenario.data.samples_per_device or 'all'} samples, {order.rounds} rounds, "
        f"seeds {', '.join(map(str, order.seeds))}; {len(planned)} runs, which 'fairwave report' shows one by one."
    )
