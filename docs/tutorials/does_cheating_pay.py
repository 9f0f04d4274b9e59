import marimo

__generated_with = "0.25.2"
app = marimo.App(app_title="Does cheating pay?")


@app.cell(hide_code=True)
def _(mo):
    mo.md(r"""
    # Does cheating pay?

    A device that trains a shared model pays with its battery. It could pay less: nobody sees whether it has really
    trained. If every device gets the same model at the end, a device that sends old work again gets the same reward
    as all others, and keeps its energy.

    This tutorial puts one such device into a small cell. It compares what the device saves with what it loses, first
    where all devices get the same model, and then under the policy of fairwave.

    Some terms come first:

    - In a **round**, every device receives a **copy** of the model, trains it, and uploads the change, its
      **update**.
    - The **deviation** of a device says how far its contribution falls behind that of the others. It is 0 for full
      work and 1 for none.
    - The access point adds **noise** to every copy, and more of it if the deviation of its device is larger.
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
    ## A cell with one cheat

    Ten devices train a linear model of handwritten digits. The scenario is the preset `paper-clean` with a few
    changes. The most important one is `privacy.similarity = "training"`: the access point trains a little on samples
    of its own, from the very copy that a device received, and looks for the same direction in the device's update.
    An update that was not computed from this copy does not have it.

    Device 9 plays one of four strategies from round 2 on. It does its full work, it does a tenth of it, it sends its
    last update again without training, or it sends noise without training. `fairwave scenario behaviours` lists many
    more.
    """)
    return


@app.cell
def _(fairwave):
    CHEAT = 9
    SETTINGS = [
        "data.samples_per_device=500",
        "learning.model=softmax",
        "learning.layer_sizes=[784, 10]",
        "learning.gradient_exchange=false",
        "privacy.similarity=training",
        "privacy.similarity_memory=0.9",
        "privacy.deviation_weight=0.9",
        "privacy.sensitivity=0.01",
        "defences.reference_iterations=40",
    ]
    STRATEGIES = {
        "full work": None,
        "a tenth of the work": "fewer_iterations",
        "last update again": "replay",
        "noise": "noise_update",
    }

    def trained(behaviour):
        entry = f"{{ behaviour = '{behaviour}', devices = [{CHEAT}], first_round = 2 }}" if behaviour else ""
        scenario = fairwave.load_scenario("paper-clean", [*SETTINGS, f"cheating.adversaries=[{entry}]"])
        simulation = fairwave.simulate(scenario, ("no_privacy", "proposed"), rounds=15, progress=False)
        return simulation.results.isel(seed=0)

    outcomes = {name: trained(behaviour) for name, behaviour in STRATEGIES.items()}
    return CHEAT, outcomes


@app.cell(hide_code=True)
def _(mo):
    mo.md(r"""
    ## What it saves, and what it loses

    `no_privacy` is plain federated averaging: all copies are the same model. `proposed` is the policy of fairwave.
    Both runs of a strategy have the same data and the same radio channels. For each of them, the cell below
    compares device 9 with its honest self: its energy over all rounds, and the loss of the copies that it received
    in the last eight rounds. A larger loss means a worse model.
    """)
    return


@app.cell
def _(CHEAT, outcomes):
    def of_cheat(name, scheme):
        device = outcomes[name].sel(scheme=scheme).isel(device=CHEAT)
        late = device.isel(round=slice(-8, None))
        return float(device["energy_j"].sum()), float(late["received_loss"].mean()), float(late["deviation"].mean())

    saved, worse = {}, {}
    for _scheme in ("no_privacy", "proposed"):
        _honest_j, _honest_loss, _ = of_cheat("full work", _scheme)
        print(f"{_scheme}: full work costs {_honest_j:.2f} J")
        for _name in list(outcomes)[1:]:
            _energy_j, _loss, _deviation = of_cheat(_name, _scheme)
            saved[_name, _scheme] = 100.0 * (1.0 - _energy_j / _honest_j)
            worse[_name, _scheme] = _loss / _honest_loss
            print(
                f"  {_name:20} saves {saved[_name, _scheme]:2.0f} % of it; "
                f"its copy's loss is {worse[_name, _scheme]:4.1f} times as large"
            )
    return of_cheat, saved, worse


@app.cell
def _(plt, saved, worse):
    # Figure: How much worse the copy of device 9 is for each strategy, and the energy that it saves.
    _figure, _axes = plt.subplots(figsize=(6, 3.4), layout="constrained")
    for _place, _scheme in enumerate(("no_privacy", "proposed")):
        _names = [name for name, scheme in saved if scheme == _scheme]
        _at = [2 * _row + 0.75 * _place for _row in range(len(_names))]
        _bars = _axes.barh(_at, [worse[name, _scheme] for name in _names], height=0.7, label=_scheme)
        _axes.bar_label(_bars, [f"saves {saved[name, _scheme]:.0f} % of energy" for name in _names], padding=3)
    _axes.set_yticks([2 * _row + 0.375 for _row in range(len(_names))], _names)
    _axes.set(xlabel="loss of its copy (full work = 1)", xlim=(0, 10))
    _axes.axvline(1.0, color="grey", linewidth=0.8)
    _axes.invert_yaxis()
    _axes.legend(loc="upper right")
    _figure
    return


@app.cell(hide_code=True)
def _(mo, saved, worse):
    assert worse["last update again", "no_privacy"] < 1.1
    assert min(worse["last update again", "proposed"], worse["noise", "proposed"]) > 3.0
    mo.md(
        f"Where all devices get the same model, sending the last update again saves "
        f"{saved['last update again', 'no_privacy']:.0f} % of the energy, and the copy is no worse: cheating pays. "
        f"Under `proposed` the same strategy makes the copy's loss {worse['last update again', 'proposed']:.0f} times "
        "as large. Noise in place of an update fares no better."
    )
    return


@app.cell(hide_code=True)
def _(mo):
    mo.md(r"""
    ## What the access point sees

    The access point never learns a device's energy. All it has are updates, and what it gets from them is the
    deviation. The cell below shows that of device 9 for every strategy, and the mean of the nine honest devices.
    """)
    return


@app.cell
def _(CHEAT, of_cheat, outcomes):
    deviations = {}
    for _name, _results in outcomes.items():
        deviations[_name] = of_cheat(_name, "proposed")[2]
        _others = _results["deviation"].sel(scheme="proposed").isel(round=slice(-8, None), device=slice(0, CHEAT))
        print(f"{_name:20} deviation {deviations[_name]:.1f}, honest devices {float(_others.mean()):.1f}")
    return (deviations,)


@app.cell(hide_code=True)
def _(deviations, mo):
    assert deviations["last update again"] > 0.9 and deviations["a tenth of the work"] < 0.5
    mo.md(r"""
    Devices that train nothing are found out. **A device that does a tenth of the work is hardly noticed here.** A
    linear model of a few samples learns most of what there is in its first steps, so little is missing from the
    update. Honest devices are also accused now and then, and one seed proves nothing. The preset `fair` uses better
    features, which tell more. The page "Does honesty pay?" of the documentation measures it on ten seeds, and says
    what remains.

    `fairwave study best-response` turns the question around. It searches over mixtures of such strategies for the one
    that pays best, and judges it on seeds that the search has not seen.
    """)
    return


@app.cell(hide_code=True)
def _(mo):
    mo.md(r"""
    ## Exercise

    Two devices that cheat together may be harder to find than one. Let devices 8 and 9 both send noise, and compare
    the deviations of the other eight with those above. How many cheats does it take before honest devices are
    accused?

    **Hint.** `devices` in the entry is a list. The access point compares a device with the median of all devices, so
    something has to change once half of the cell cheats.
    """)
    return


if __name__ == "__main__":
    app.run()
