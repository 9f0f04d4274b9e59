import marimo

__generated_with = "0.25.2"
app = marimo.App(app_title="Plan a fleet")


@app.cell(hide_code=True)
def _(mo):
    mo.md(r"""
    # Plan a fleet

    You own five battery-powered sensors around one access point, and you want to train a model on them. Before you
    buy batteries, you would like to know how long they last, and what a change of the set-up would do. fairwave
    answers this without any training. The answer is called a **plan**.

    Some terms come first:

    - The **access point** is the radio station that all devices of a **cell** talk to.
    - In a **round**, every device receives the model, trains it for some **local iterations** and uploads the
      change.
    - The **deadline** is the time that a device has for training and upload in one round.
    - **Fading** is the random change of a radio channel from round to round. A plan averages over many **draws** of
      it.
    - A **policy** is a rule by which a device chooses its iterations and its transmit power.
    """)
    return


@app.cell
def _():
    import subprocess
    import sys
    import tempfile
    from pathlib import Path

    import marimo as mo
    import matplotlib.pyplot as plt
    import xarray as xr

    workspace = tempfile.TemporaryDirectory(prefix="fairwave-")
    folder = Path(workspace.name)
    return folder, mo, plt, subprocess, sys, workspace, xr


@app.cell(hide_code=True)
def _(mo):
    mo.md(r"""
    ## The fleet is a CSV file

    There is one row per device. `distance_m` is the distance from the access point in metres. Every other column is
    a parameter that differs from device to device, in SI units: the largest transmit power in watts, the power of
    the processor in watts, and the capacity of the battery in joules (1 Wh is 3,600 J). Parameters without a column
    are the same for all devices and come from the **scenario**, which is fairwave's name for the full list of
    parameters.
    """)
    return


@app.cell
def _(folder):
    fleet = folder / "fleet.csv"
    fleet.write_text(
        """device,distance_m,max_transmit_power_w,compute_power_w,battery_capacity_j
roof,35,1.0,0.096,7200
yard,80,1.0,0.096,7200
gate,120,0.5,0.150,7200
pump,160,1.0,0.050,14400
cellar,220,1.0,0.096,7200
"""
    )
    return (fleet,)


@app.cell(hide_code=True)
def _(mo):
    mo.md(r"""
    ## The plan

    `fairwave plan` compares two policies over the same channels. Under `proposed`, each device maximises its
    **utility**, which weighs its effort against its energy. Under `max_power`, each device uses full power and does
    all iterations that fit into the deadline. The function below runs the command as you would type it, and reads
    the file that the command writes.
    """)
    return


@app.cell
def _(fleet, folder, subprocess, sys, xr):
    def plan(name, *options):
        out = folder / f"{name}.nc"
        command = ["plan", "paper", "--devices", str(fleet), "--draws", "100", "--out", str(out), *options]
        _done = subprocess.run(
            [sys.executable, "-m", "fairwave", *command], check=False, capture_output=True, text=True
        )
        assert _done.returncode == 0, _done.stderr
        return xr.load_dataset(out)

    today = plan("today")
    return plan, today


@app.cell
def _(today):
    for _policy in today["policy"].values:
        for _name in today["device"].values:
            _row = today.sel(policy=_policy, device=_name)
            print(
                f"{_policy:10} {_name:7} {float(_row['energy_j']) * 1000:4.0f} mJ a round, "
                f"{float(_row['local_iterations']):4.0f} iterations, battery lasts "
                f"{float(_row['battery_life_rounds']):6.0f} rounds"
            )
    return


@app.cell(hide_code=True)
def _(mo):
    mo.md(r"""
    ## From rounds to days

    A plan counts rounds. How many days these are depends on how often you start a round, so that number is yours to
    choose. Let us say one round an hour. The battery is assumed to serve training alone: idle power and
    self-discharge are not part of the model, and a real battery will last less long.
    """)
    return


@app.cell
def _(today):
    ROUNDS_PER_DAY = 24
    days = today["battery_life_rounds"] / ROUNDS_PER_DAY
    first_empty = {str(policy): float(days.sel(policy=policy).min()) for policy in days["policy"].values}
    return ROUNDS_PER_DAY, days, first_empty


@app.cell
def _(days, plt):
    # Figure: Battery life of every device under both policies, at one round an hour.
    figure, _axes = plt.subplots(figsize=(7, 3.5), layout="constrained")
    for _offset, _policy in zip((-0.2, 0.2), days["policy"].values, strict=True):
        _axes.bar([at + _offset for at in range(days.sizes["device"])], days.sel(policy=_policy), 0.4, label=_policy)
    _axes.set_xticks(range(days.sizes["device"]), days["device"].values)
    _axes.set_ylabel("battery life (days)")
    _axes.legend(title="policy")
    figure
    return


@app.cell(hide_code=True)
def _(first_empty, mo):
    _longer = first_empty["proposed"] / first_empty["max_power"]
    mo.md(
        f"The first battery of the fleet is empty after {first_empty['proposed']:.0f} days under `proposed` and after "
        f"{first_empty['max_power']:.0f} days under `max_power`. The first policy therefore multiplies the time until "
        f"somebody has to climb a ladder by {_longer:.2f}."
    )
    return


@app.cell(hide_code=True)
def _(mo):
    mo.md(r"""
    ## What if?

    Any parameter can be changed with `--set GROUP.KEY=VALUE`, with units where people write them. We ask three
    questions about the same fleet: What if a round may take longer? What if there is only half of the bandwidth?
    What if the model is half as large, so that there is less to upload? `fairwave plan paper --out plan.html` asks
    more such questions by itself and writes a page with the answers.
    """)
    return


@app.cell
def _(ROUNDS_PER_DAY, first_empty, plan):
    changes = {
        "longer deadline": "cell.deadline_s=1.5 s",
        "half the bandwidth": "radio.bandwidth_hz=125 kHz",
        "half the payload": "radio.payload_bits=437.5 kbit",
    }
    print(f"{'as it is':19} first battery empty after {first_empty['proposed']:4.0f} days")
    lives, work = [first_empty["proposed"]], {}
    for _question, _change in changes.items():
        _answer = plan(_question.replace(" ", "-"), "--policies", "proposed", "--set", _change)
        _days = float(_answer["battery_life_rounds"].min()) / ROUNDS_PER_DAY
        work[_question] = _mean = float(_answer["local_iterations"].mean())
        lives.append(_days)
        print(f"{_question:19} first battery empty after {_days:4.0f} days, {_mean:4.0f} iterations on average")
    return lives, work


@app.cell(hide_code=True)
def _(lives, mo, work):
    _change = max(lives) / min(lives) - 1
    assert _change < 0.1 and work["longer deadline"] > 2 * work["half the bandwidth"]
    mo.md(
        f"The answers differ by {_change:.1%} in battery life. Under `proposed`, a device spends about as much energy "
        "as before and puts what a change saves into more training: between "
        f"{min(work.values()):.0f} and {max(work.values()):.0f} iterations a round, depending on the question."
    )
    return


@app.cell(hide_code=True)
def _(mo):
    mo.md(r"""
    ## Exercise

    Somebody offers you a better place for the cellar sensor, 150 m from the access point instead of 220 m. Change
    the file, make the plan again, and find out whether the move changes the battery life or the number of local
    iterations under each of the two policies.

    **Hint.** `proposed` levels energy across devices. Look at which of the two numbers it can still change for a
    device that spends as much as all others.
    """)
    return


if __name__ == "__main__":
    app.run()
