import marimo

__generated_with = "0.25.2"
app = marimo.App(app_title="A sweep on a cluster")


@app.cell(hide_code=True)
def _(mo):
    mo.md(r"""
    # A sweep on a cluster

    One run answers one question. A **sweep** repeats a comparison over many values of some parameters and shows what
    each of them changes. Its runs do not depend on each other, so several machines can share them.

    This tutorial writes a study file, looks at what it will run, runs it on a small cluster, and then asks for more
    without repeating what is finished. It needs `pip install "fairwave[cluster]"`, which brings
    [Dask](https://distributed.dask.org).
    """)
    return


@app.cell
def _():
    import os
    import subprocess
    import sys
    import tempfile
    from pathlib import Path

    import marimo as mo
    import matplotlib.pyplot as plt
    import pandas as pd
    from distributed import LocalCluster

    workspace = tempfile.TemporaryDirectory(prefix="fairwave-")
    folder = Path(workspace.name)
    return LocalCluster, Path, folder, mo, os, pd, plt, subprocess, sys, workspace


@app.cell(hide_code=True)
def _(mo):
    mo.md(r"""
    ## The study file

    A study names a **scenario**, which is the full list of parameters of a cell, and says what varies. Every
    combination of the values under `[grid]` is a point of the study. `schemes` are the policies to compare, and
    `seeds` repeats everything with other random numbers.

    The question here: how do the deadline of a round and the bandwidth of the channel change what a device pays?
    """)
    return


@app.cell
def _(folder):
    study = folder / "deadlines.toml"
    study.write_text(
        """scenario = "small"
schemes = ["proposed", "max_power"]
seeds = "0..1"
rounds = 4
set = ["learning.model=softmax", "learning.layer_sizes=[784, 10]", "data.samples_per_device=100"]

[grid]
cell.deadline_s = ["0.5 s", "0.75 s", "1 s"]
"""
    )
    return (study,)


@app.cell(hide_code=True)
def _(mo):
    mo.md(r"""
    ## Look before you run

    All points are read and checked before the first one runs. `--dry-run` stops after that.
    """)
    return


@app.cell
def _(folder, study, subprocess, sys):
    def fairwave(*arguments):
        line = [sys.executable, "-m", "fairwave", *map(str, arguments)]
        done = subprocess.run(line, check=False, capture_output=True, text=True, cwd=folder)
        assert done.returncode == 0, done.stderr
        return done.stdout

    print(fairwave("sweep", study, "--dry-run").strip())
    return (fairwave,)


@app.cell(hide_code=True)
def _(mo):
    mo.md(r"""
    ## A cluster

    A Dask cluster has one **scheduler**, which hands out work, and **workers**, which do it. On real machines you
    start them with two commands, and a batch system or a cloud can start them for you:

    ```
    dask scheduler                                              # on one machine; prints its address
    dask worker tcp://10.0.0.1:8786 --nworkers 8 --nthreads 1   # on every machine
    ```

    All machines must see one file system, because every run is a folder there. In this notebook the cluster is two
    worker processes on this machine. For `fairwave sweep`, only the address matters.
    """)
    return


@app.cell
def _(LocalCluster, fairwave, folder, study):
    def on_cluster(file):
        with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
            return fairwave("sweep", file, "--scheduler", cluster.scheduler_address, "--out", folder / "study")

    on_cluster(study)
    points = sorted(path.name for path in (folder / "study").iterdir() if (path / "run.sqlite").exists())
    print("\n".join(points))
    return on_cluster, points


@app.cell(hide_code=True)
def _(mo):
    mo.md(r"""
    ## What came out

    Every point is a run in a folder of its own, which `fairwave report`, `privacy` and `export` accept. The page
    `study/report.html` shows all points. The file `points.csv` has a row per point, scheme and seed, for whatever you
    would like to draw. The energy is the mean of all devices, in joules per round.
    """)
    return


@app.cell
def _(folder, pd, points):
    assert points
    table = pd.read_csv(folder / "study" / "points.csv")
    mean = table.groupby(["scheme", "cell.deadline_s"])["energy_j"].mean().unstack("scheme")
    print((1000.0 * mean).round(0).to_string())
    return mean, table


@app.cell
def _(mean, plt):
    # Figure: Mean energy of a device per round, for three deadlines.
    _figure, _axes = plt.subplots(figsize=(6, 3.2), layout="constrained")
    for _scheme in mean:
        _axes.plot(mean.index, 1000.0 * mean[_scheme], marker="o", label=_scheme)
    _axes.set(xlabel="deadline of a round (s)", ylabel="energy (mJ)", ylim=(0, None))
    _axes.legend()
    _figure
    return


@app.cell(hide_code=True)
def _(mo):
    mo.md(r"""
    Under `max_power` a device fills the whole deadline with work, so a longer deadline costs more energy. Under
    `proposed` it works as much as is best for it, and a longer deadline changes little.

    ## Ask for more

    Change the file and give the same command. Points that are finished stay as they are, and only what is missing is
    run. This also holds after Ctrl-C, and after a worker or a whole machine has failed: another worker resumes with
    the next round. Below, we add a deadline, and check that no file of the old points was written again.
    """)
    return


@app.cell
def _(Path, folder, on_cluster, os, pd, points, study, table):
    def written(name):
        return os.stat(Path(folder, "study", name, "run.sqlite")).st_mtime_ns

    _before = {name: written(name) for name in points}
    study.write_text(study.read_text().replace('"1 s"]', '"1 s", "1.5 s"]'))
    on_cluster(study)
    assert {name: written(name) for name in points} == _before
    _more = pd.read_csv(folder / "study" / "points.csv")
    print(f"{len(table)} rows before, {len(_more)} rows now; no finished run was written again")
    return


@app.cell(hide_code=True)
def _(mo):
    mo.md(r"""
    ## Exercise

    Do more devices change the answer? Add `cell.num_devices = [4, 8]` to `[grid]`, and look at the page for what it
    does to the spread of energy across devices. How many runs does the sweep add, and how many does it keep?

    **Hint.** A point is a combination of all values, and its folder is named after them. `--dry-run` tells you before
    anything runs.
    """)
    return


if __name__ == "__main__":
    app.run()
