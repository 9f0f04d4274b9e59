import marimo

__generated_with = "0.25.2"
app = marimo.App(app_title="The paper in ten minutes")


@app.cell(hide_code=True)
def _(mo):
    mo.md(r"""
    # The paper in ten minutes

    fairwave implements *Utility Fairness for the Differentially Private Federated Learning* by Alvi, Hong and
    Durrani (arXiv:2109.05267). This tutorial shows the problem that the paper solves and both parts of its answer.

    In **federated learning**, several devices train one model together, and every device keeps its data. An
    **access point**, which is the radio station that serves the devices, sends a copy of the model to every device.
    A device trains its copy on its own data for some **local iterations** and sends back the **update**, which is
    the change that training made. The access point averages the updates into the next model. All of this is one
    **round**.

    The devices of the paper run on batteries and share one radio cell. Two things are unfair there. A device that
    is far from the access point needs more energy for the same upload. And a device that does little work, or none,
    receives the same good model as all others. The paper has one **policy** (a rule for a decision) against each.
    """)
    return


@app.cell
def _():
    import marimo as mo
    import matplotlib.pyplot as plt

    import fairwave

    return fairwave, mo, plt


@app.cell(hide_code=True)
def _(mo):
    mo.md(r"""
    ## First policy: the device chooses its effort

    A device that knows its own channel decides how many local iterations it does and with how much power it
    transmits. It chooses both so that its **utility** is largest. The utility is a number that weighs what the
    device contributes against the energy that it spends, under a **deadline** for the whole round.

    `fairwave.plan` computes this choice for the ten devices of the paper, 50 m to 200 m from the access point,
    without any training. The benchmark of the paper is called `max_power` here: every device transmits with full
    power and does all iterations that fit into the deadline. We leave out **fading**, which is the random change of
    a radio channel, so that distance is all that differs between devices.
    """)
    return


@app.cell
def _(fairwave):
    plan = fairwave.plan("paper", ["proposed", "max_power"], fading=False)
    energy_mj = 1000 * plan["energy_j"]
    for _policy in ("proposed", "max_power"):
        _energy = energy_mj.sel(policy=_policy)
        print(f"{_policy}: mean {float(_energy.mean()):.0f} mJ")
    energy_spread_mj = energy_mj.std("device")
    energy_cut = float(1 - energy_spread_mj.sel(policy="proposed") / energy_spread_mj.sel(policy="max_power"))
    assert energy_cut > 0.98
    return energy_cut, plan


@app.cell
def _(plan, plt):
    # Figure: Energy per round and local iterations against the distance from the access point.
    figure, (_energy, _iterations) = plt.subplots(1, 2, figsize=(8, 3.3), layout="constrained")
    for _policy, _marker in (("proposed", "o"), ("max_power", "s")):
        _chosen = plan.sel(policy=_policy)
        _energy.plot(plan["distance_m"], 1000 * _chosen["energy_j"], marker=_marker, label=_policy)
        _iterations.plot(plan["distance_m"], _chosen["local_iterations"], marker=_marker, label=_policy)
    _energy.set(xlabel="distance (m)", ylabel="energy per round (mJ)", ylim=(0, None))
    _iterations.set(xlabel="distance (m)", ylabel="local iterations", ylim=(0, None))
    _energy.legend(title="policy")
    figure
    return


@app.cell(hide_code=True)
def _(energy_cut, mo, plan):
    _fewer = plan["local_iterations"].mean("device")
    mo.md(
        "Under `proposed`, near and far devices spend nearly the same energy: the standard deviation of energy across "
        f"devices is {energy_cut:.1%} smaller than under `max_power`. Devices do "
        f"{float(_fewer.sel(policy='proposed')):.0f} iterations on average instead of "
        f"{float(_fewer.sel(policy='max_power')):.0f}."
    )
    return


@app.cell(hide_code=True)
def _(mo):
    mo.md(r"""
    ## Second policy: the access point answers effort

    The access point compares the updates and gives every device a **deviation**, a number from 0 (it contributes as
    much as the best device) to 1 (it contributes nothing). Every device then receives its own copy of the model,
    with random noise that grows with its deviation. A device that does no work gets a worse model.

    `fairwave.simulate` trains for real: a small cell with four devices and 500 handwritten digits (MNIST) each, for
    six rounds. Device 3 is a **free rider**, which trains nothing and sends zeros. Both schemes train on the same
    data, over the same channels and from the same first model, so that the policies are all that differs.
    """)
    return


@app.cell
def _(fairwave):
    scenario = fairwave.load_scenario(
        "small", ['cheating.adversaries=[{ behaviour = "zero_update", devices = [3] }]', "run.num_rounds=6"]
    )
    results = fairwave.simulate(scenario, ["proposed", "max_power"], progress=False).results.sel(seed=0)
    for _scheme in ("proposed", "max_power"):
        _last = results.sel(scheme=_scheme).isel(round=-1)
        print(f"{_scheme}: noise in the copies {[round(float(std), 4) for std in _last['noise_std'].values]}")
    return (results,)


@app.cell
def _(plt, results):
    # Figure: Loss of the copies that honest devices and the free rider receive, round by round.
    figure_of_copies, _axes = plt.subplots(figsize=(7, 3.5), layout="constrained")
    _rounds = range(1, results.sizes["round"] + 1)
    for _scheme, _style in (("proposed", "-"), ("max_power", "--")):
        _loss = results["received_loss"].sel(scheme=_scheme)
        _axes.plot(_rounds, _loss.isel(device=slice(0, 3)).mean("device"), _style, label=f"{_scheme}, honest devices")
        _axes.plot(_rounds, _loss.isel(device=3), _style, marker="x", label=f"{_scheme}, free rider")
    _axes.set(xlabel="round", ylabel="loss of the received copy")
    figure_of_copies.legend(loc="outside lower center", ncols=2)
    figure_of_copies
    return


@app.cell
def _(results):
    _last = results["received_loss"].isel(round=-1)
    penalty = {
        scheme: float(_last.sel(scheme=scheme, device=3) / _last.sel(scheme=scheme).isel(device=slice(0, 3)).mean() - 1)
        for scheme in ("proposed", "max_power")
    }
    assert penalty["proposed"] > penalty["max_power"]
    price = {scheme: float(_last.sel(scheme=scheme).isel(device=slice(0, 3)).mean()) for scheme in penalty}
    assert price["proposed"] > price["max_power"]
    return penalty, price


@app.cell(hide_code=True)
def _(mo, penalty, price):
    mo.md(
        "The **loss** of a model says how wrong its answers are. In the last round, the free rider's copy has a loss "
        f"{penalty['proposed']:+.1%} against that of the honest devices' copies under `proposed`, and "
        f"{penalty['max_power']:+.1%} under `max_power`. Fairness has a price: honest devices' copies have a loss of "
        f"{price['proposed']:.2f} under `proposed`, which spends less energy and adds some noise for everybody, and of "
        f"{price['max_power']:.2f} under `max_power`. These are few devices, few rounds and one seed. The page "
        "on reproduction has the full study with intervals."
    )
    return


@app.cell(hide_code=True)
def _(mo):
    mo.md(r"""
    ## Exercise

    Device 3 now does a tenth of the planned work instead of none. Change the behaviour to `fewer_iterations` and
    run the notebook again. Does its copy lie between that of an honest device and that of the free rider?

    **Hint.** Compare `results["deviation"]` of both runs, not only the loss. `fairwave scenario behaviours` lists
    all behaviours and what their strength means.
    """)
    return


if __name__ == "__main__":
    app.run()
