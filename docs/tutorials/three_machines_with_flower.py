import marimo

__generated_with = "0.25.2"
app = marimo.App(app_title="Three machines with Flower")


@app.cell(hide_code=True)
def _(mo):
    mo.md(r"""
    # Three machines with Flower

    So far everything was simulated. This tutorial runs the same rounds between real programs that talk over a
    network, on [Flower](https://flower.ai), a framework for federated learning. It needs `pip install
    "fairwave[flower]"`.

    A **federation** has an access point and devices. The access point sends every device its copy of the model, and
    every device answers with an update. What a device knows about itself, such as its data and its energy, stays on
    the device.

    We begin with all parts on one machine, check that the federation computes what a simulation computes, and then
    write the folders for three separate machines.
    """)
    return


@app.cell
def _():
    import json
    import subprocess
    import sys
    import tempfile
    from pathlib import Path

    import marimo as mo
    import matplotlib.pyplot as plt
    import numpy as np

    import fairwave

    workspace = tempfile.TemporaryDirectory(prefix="fairwave-")
    folder = Path(workspace.name)
    return fairwave, folder, json, mo, np, plt, subprocess, sys, workspace


@app.cell(hide_code=True)
def _(mo):
    mo.md(r"""
    ## Rehearse on one machine

    `fairwave federate local` starts everything that a deployment has: a server of Flower (the **SuperLink**), one
    process per device, encrypted connections (TLS), and a key for every device. All of it listens on this machine
    only, and ends with the command. The preset `small` makes the rounds short.

    Noise for privacy comes from the operating system, unless you ask for noise that can be repeated. We do, because
    we want to compare results: `--noise simulation`. Such noise protects nobody, so never use it with real data.
    """)
    return


@app.cell
def _(folder, subprocess, sys):
    def command(*arguments):
        line = [sys.executable, "-m", "fairwave", *map(str, arguments)]
        done = subprocess.run(line, check=False, capture_output=True, text=True, cwd=folder)
        assert done.returncode == 0, done.stderr
        return done.stdout

    same = ["--rounds", 4, "--schemes", "proposed", "--set", "data.samples_per_device=200"]
    command("federate", "local", "small", "--nodes", 3, "--noise", "simulation", "--out", "federated", *same)
    return command, same


@app.cell(hide_code=True)
def _(mo):
    mo.md(r"""
    ## What happened

    A federation writes a run folder like any other run, so `fairwave report`, `fairwave privacy` and `fairwave ui`
    can read it. It also writes `federation.jsonl`, with one line per event. A dashboard or a log collector can
    follow this file.
    """)
    return


@app.cell
def _(folder, json):
    _lines = (folder / "federated" / "federation.jsonl").read_text("utf-8").splitlines()
    events = [json.loads(line) for line in _lines]
    for _event in events:
        if _event["event"] == "round":
            print(f"round {_event['round']}: devices {_event['answered']} answered, faults: {len(_event['faults'])}")
    return


@app.cell(hide_code=True)
def _(mo):
    mo.md(r"""
    ## Is it the same as a simulation?

    The devices of a federation and those of a simulation call the same functions, and their random numbers depend
    on the seed, the round and the device only. So we simulate the same scenario and compare: every plan, every
    deviation and the model after every round.
    """)
    return


@app.cell
def _(command, fairwave, folder, np, same):
    command("run", "small", "--out", "simulated", "--set", "cell.num_devices=3", *same)
    federated, simulated = (
        fairwave.open_run(folder / name).results.isel(scheme=0, seed=0) for name in ("federated", "simulated")
    )
    for _name in ("local_iterations", "transmit_power_w", "deviation", "test_accuracy"):
        _largest = float(np.nanmax(np.abs(federated[_name] - simulated[_name])))
        assert _largest < 1e-3 * float(np.nanmax(np.abs(simulated[_name]))), _name
        print(f"{_name:18} agrees in all rounds")
    return federated, simulated


@app.cell
def _(federated, plt, simulated):
    # Figure: Energy of every device per round, in the federation (marks) and in the simulation (lines).
    _figure, _axes = plt.subplots(figsize=(6, 3.2), layout="constrained")
    for _device in range(3):
        _rounds = range(1, federated.sizes["round"] + 1)
        (_line,) = _axes.plot(_rounds, 1000.0 * simulated["energy_j"].isel(device=_device), label=f"device {_device}")
        _marks = 1000.0 * federated["energy_j"].isel(device=_device)
        _axes.plot(_rounds, _marks, "o", color=_line.get_color(), fillstyle="none")
    _axes.set(xlabel="round", ylabel="energy (mJ)", xticks=list(_rounds))
    _axes.ticklabel_format(axis="y", useOffset=False)
    _axes.legend()
    _figure
    return


@app.cell(hide_code=True)
def _(mo):
    mo.md(r"""
    A deployed device never tells anybody its energy. `federate local` is made for experiments, so its devices report
    it (`telemetry` in `federation.toml`), and the figure can show it.

    ## Write the folders of three machines

    `fairwave federate init` writes everything that a real deployment needs: an access point and two devices here.
    The preset is `fair`, which protects the records of every device, with noise from the operating system. No address
    is contacted yet.
    """)
    return


@app.cell
def _(command, folder):
    command("federate", "init", "deployment", "fair", "--nodes", 2, "--host", "ap.example.org", "--rounds", 50)
    for _machine in ("access-point", "node-0", "node-1", "authority"):
        _files = sorted(path.name for path in (folder / "deployment" / _machine).iterdir() if path.is_file())
        print(f"{_machine + ':':14}{', '.join(_files)}")
    return


@app.cell(hide_code=True)
def _(mo):
    mo.md(r"""
    Copy `access-point` to the machine at `ap.example.org`, and `node-0` and `node-1` to the devices, over a channel
    that you trust: the folders hold private keys. Keep `authority` off the network. Then start them:

    ```
    ap$     ./start.sh && ./register.sh && ./gate.sh
    node0$  ./start.sh
    node1$  ./start.sh
    ap$     ./run.sh
    ap$     fairwave federate status .
    ```

    `gate.sh` starts nginx, the only program that devices can reach. **It is not optional**: whoever reaches Flower's
    server directly can run programs on the access point. After Ctrl-C, a crash or a power failure, `./run.sh` resumes
    with the next round, and a device that is started again continues as the same device.

    Every file explains itself. A device follows its own copy of the agreement, in the folder `agreement`, and refuses
    tasks that do not belong to it. The lines below come from there: noise is drawn from the operating system, and
    devices report nothing about themselves.
    """)
    return


@app.cell
def _(folder):
    agreement = (folder / "deployment" / "node-0" / "agreement" / "federation.toml").read_text("utf-8")
    for _setting in ("noise", "telemetry"):
        _line = next(line for line in agreement.splitlines() if line.startswith(f"{_setting} ="))
        print(_line.partition(" #")[0])
    assert 'noise = "hardened"' in agreement and "telemetry = false" in agreement
    return


@app.cell(hide_code=True)
def _(mo):
    mo.md(r"""
    ## Exercise

    End a device in the middle of a federation and see what the others do. Start `fairwave federate local small
    --nodes 3 --rounds 10` in one terminal. In another one, find the process of a device and kill it. Which line does
    `federation.jsonl` get, and does the device come back?

    **Hint.** `pgrep -f "device run"` finds the processes. A round goes on without a device as long as enough others
    answer: `--quorum` sets the share.
    """)
    return


if __name__ == "__main__":
    app.run()
