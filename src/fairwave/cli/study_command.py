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
    help="Questions that take many runs, answered on one page. Interrupt at will: the same command goes on.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

Rounds = Annotated[int, typer.Option(help="Give every run so many communication rounds.")]
Out = Annotated[
    Path | None, typer.Option(help="Put runs and page into this folder. Left out, it is runs/study- and the question.")
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
    """Does cheating pay? Every behaviour under max_power, the literal rule, the defended rule, and CGSV.

    Devices hold 900 samples each unless --set data.samples_per_device says otherwise. Similarity, defences and who
    misbehaves are the study's own, whatever the scenario says. The page opens with the verdict.

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
            show_default=False, help="Compare these schemes, separated by commas, or 'all'. Left out, there are eight."
        ),
    ] = "",
    rounds: Rounds = 30,
    seeds: Seeds = "0..2",
    overrides: Overrides = None,
    out: Out = None,
    jobs: Jobs = None,
) -> None:
    """Loss against energy: every scheme over a range of the setting that limits its energy.

    Energy budgets for proposed and equal_energy, iterations for least_energy and fedl, a price for priced, transmit
    power for all others.

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
    """Do best responses settle? Devices answer their deviations over a channel that stands still.

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
            help="Try these behaviours, separated by commas. Left out, they are those that harm the model.",
        ),
    ] = "",
    aggregators: Annotated[
        str,
        typer.Option(
            help="Try these aggregators, separated by commas (see 'fairwave scenario aggregators'), or 'all'."
        ),
    ] = "all",
    share: Annotated[float, typer.Option(help="Let this share of the devices attack; it is below 0.5.")] = 0.2,
    scheme: Annotated[str, typer.Option(help="Run this scheme, one that takes the mean.")] = "no_privacy",
    rounds: Rounds = 20,
    seeds: Seeds = "0..2",
    overrides: Overrides = None,
    out: Out = None,
    jobs: Jobs = None,
) -> None:
    """Which aggregator stands up to which attack? Test accuracy of the model, attack by attack, as a table and as CSV.

    Twenty devices hold 300 samples each unless --set says otherwise. Attackers stand evenly in the cell and attack from
    the first round on; who attacks, and the aggregator, are the study's own, whatever the scenario says.

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
    scheme: Annotated[str, typer.Option(help="Let the device know the rules of this scheme.")] = "proposed",
    tries: Annotated[
        int, typer.Option(help="Try so many random strategies, and half as many near the best.", min=2)
    ] = 24,
    rounds: Rounds = 25,
    seeds: Seeds = "0",
    fresh_seeds: Annotated[str, typer.Option(help="Judge the best on these seeds, as in 100..104.")] = "100..104",
    overrides: Overrides = None,
    out: Out = None,
    jobs: Jobs = None,
) -> None:
    """What is the best that a device can do that knows the rules? A search, and the price of honesty.

    A strategy is a share of the iterations and of the data, a scale, shares of its last and of its first update, of
    the last change of its copy and of the way since the start, noise, and the round in which all this begins.

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
    every: Annotated[int, typer.Option(help="Play a game every so many rounds, beginning with the first.")] = 2,
    samples: Annotated[int, typer.Option(help="Measure the worth of coalitions on so many test samples.")] = 500,
    utility: Annotated[
        str, typer.Option(help="Take worth for the fall of the 'loss', or for the rise of the 'accuracy'.")
    ] = "loss",
    between: Annotated[float, typer.Option(help="Estimates: worth of all below which a round is no game.")] = 0.0,
    within: Annotated[float, typer.Option(help="Estimates: worth that an order may lack when it is cut short.")] = 0.0,
    seeds: Seeds = "0..4",
    overrides: Overrides = None,
    out: Out = None,
) -> None:
    """Do scores know who contributes? Every rule's scores against the Shapley values of the same rounds.

    Devices are alike, or differ in their labels, in how much data they hold, in wrong labels, or in effort; these are
    the study's own, whatever the scenario says. With 12 devices or fewer the worth of all coalitions is computed; with
    more, values are estimated. Runs one setting and seed after the other, each into a file, and goes on where it was
    interrupted.

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
