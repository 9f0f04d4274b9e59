import marimo

__generated_with = "0.25.2"
app = marimo.App(app_title="From MNIST to your sensor data")


@app.cell(hide_code=True)
def _(mo):
    mo.md(r"""
    # From MNIST to your sensor data

    MNIST, the handwritten digits that come with fairwave, is a good first data set and nobody's real problem. This
    tutorial replaces it with sensor data in CSV files, as you may have them.

    **The data here are synthetic.** The notebook makes them with a random generator: vibration of a machine that is
    off, runs well, or has a worn bearing. Nothing below says anything about real machines. What you learn is where
    your own file goes and which settings have to change with it.
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
    import numpy as np

    import fairwave

    workspace = tempfile.TemporaryDirectory(prefix="fairwave-")
    folder = Path(workspace.name)
    return fairwave, folder, mo, np, plt, subprocess, sys, workspace


@app.cell(hide_code=True)
def _(mo):
    mo.md(r"""
    ## Two CSV files

    A data set is a folder with `train.csv` and `test.csv`. Each row is one **sample**, one measurement with its
    answer. The column `label` holds the class, and every other column is a number that the model may use. Here
    these are the strength of the vibration in three frequency bands and the temperature of the bearing.

    fairwave does not scale your numbers by their own mean or largest value. Such a value is computed from records,
    so that it would tell something about them. Divide by constants that you know beforehand, as the generator does
    for the temperature: it counts in units of 10 °C from 40 °C.
    """)
    return


@app.cell
def _(folder, np):
    CLASSES = ("off", "good", "worn")
    TYPICAL = np.array([[0.1, 0.1, 0.1, -1.5], [1.0, 0.6, 0.2, 0.5], [1.0, 0.9, 0.8, 1.2]])
    COLUMNS = ("label", "low_band", "middle_band", "high_band", "temperature")

    def write_samples(path, count, draw):
        kinds = draw.integers(0, len(CLASSES), count)
        values = TYPICAL[kinds] + draw.normal(0.0, 0.25, (count, 4))
        rows = [
            ",".join([CLASSES[kind], *(f"{value:.4f}" for value in row)])
            for kind, row in zip(kinds, values, strict=True)
        ]
        path.write_text("\n".join([",".join(COLUMNS), *rows]) + "\n")

    _draw = np.random.default_rng(11)
    (folder / "machines").mkdir()
    write_samples(folder / "machines" / "train.csv", 1200, _draw)
    write_samples(folder / "machines" / "test.csv", 400, _draw)
    print((folder / "machines" / "train.csv").read_text().splitlines()[0])
    return (CLASSES,)


@app.cell(hide_code=True)
def _(mo):
    mo.md(r"""
    ## The scenario

    A **scenario** is a TOML file with all parameters. This one starts from the preset `small` and changes what the
    data ask for:

    - `data.classes` gives the names in the files their numbers. The scenario lists them, because one record would
      otherwise decide how all others are numbered.
    - `data.partition` says who holds what. With the law `dirichlet`, devices have different shares of the classes,
      as real ones do; a smaller `alpha` makes them more different.
    - `learning.layer_sizes` begins with the number of inputs and ends with the number of classes.
    - `radio.payload_bits = "unset"` has the length of an upload follow from the model.
    - `compute.max_iterations` limits the local iterations. Steps on four numbers take so little time that thousands
      would fit into a round.
    """)
    return


@app.cell
def _(folder):
    scenario_file = folder / "machines.toml"
    scenario_file.write_text(
        """
extends = "small"

[data]
source = "machines"
classes = ["off", "good", "worn"]
partition = { law = "dirichlet", alpha = 1.0 }
samples_per_device = 200
bits_per_feature = 32

[learning]
layer_sizes = [4, 16, 3]
learning_rate = 0.1
batch_size = 32

[compute]
max_iterations = 30

[radio]
payload_bits = "unset"
"""
    )
    return (scenario_file,)


@app.cell(hide_code=True)
def _(mo):
    mo.md(r"""
    ## A mistake, on purpose

    Files from real life have spelling mistakes. Before we train, we misspell one label and look at what fairwave
    says. A file that is not as the scenario says is refused, with the place and a remedy.
    """)
    return


@app.cell
def _(folder, scenario_file, subprocess, sys):
    def fairwave_run(*options):
        command = [sys.executable, "-m", "fairwave", "run", str(scenario_file), *options]
        return subprocess.run(command, check=False, capture_output=True, text=True, cwd=folder)

    _file = folder / "machines" / "train.csv"
    _good = _file.read_text()
    _file.write_text(_good.replace("\nworn,", "\nwron,", 1))
    _refused = fairwave_run("--rounds", "1", "--out", "refused")
    _file.write_text(_good)
    assert _refused.returncode == 2
    mistake = _refused.stderr.strip().replace(str(folder), "...")
    return fairwave_run, mistake


@app.cell(hide_code=True)
def _(mistake, mo):
    mo.md(f"```\n{mistake}\n```")
    return


@app.cell(hide_code=True)
def _(mo):
    mo.md(r"""
    ## Train

    With the file in order, we train for ten rounds and read the stored run.
    """)
    return


@app.cell
def _(fairwave, fairwave_run, folder):
    _done = fairwave_run("--schemes", "proposed,max_power", "--rounds", "10", "--out", "run")
    assert _done.returncode == 0, _done.stderr
    with fairwave.open_run(folder / "run") as _run:
        results = _run.results.sel(seed=0)
        model = _run.model("proposed")
    for _scheme in results["scheme"].values:
        _accuracy = float(results["test_accuracy"].sel(scheme=_scheme).isel(round=-1))
        print(f"{_scheme}: test accuracy {_accuracy:.3f} after {results.sizes['round']} rounds")
        assert _accuracy > 0.5  # a guess has a third
    return model, results


@app.cell
def _(plt, results):
    # Figure: Test accuracy round by round, and loss of each device's received copy under the proposed scheme.
    figure, (_accuracy, _loss) = plt.subplots(1, 2, figsize=(8, 3.3), layout="constrained")
    _rounds = range(1, results.sizes["round"] + 1)
    for _scheme in results["scheme"].values:
        _accuracy.plot(_rounds, results["test_accuracy"].sel(scheme=_scheme), marker="o", label=_scheme)
    _accuracy.set(xlabel="round", ylabel="test accuracy", ylim=(0, 1))
    _accuracy.legend()
    for _device in range(results.sizes["device"]):
        _loss.plot(
            _rounds, results["received_loss"].sel(scheme="proposed").isel(device=_device), label=f"device {_device}"
        )
    _loss.set(xlabel="round", ylabel="loss of the received copy", ylim=(0, None))
    _loss.legend()
    figure
    return


@app.cell(hide_code=True)
def _(mo):
    mo.md(r"""
    ## Take the model home

    `run.model` gives the trained model as arrays by name. `fairwave export` writes the same as a file for other
    programs (`.safetensors`, `.npz` or `.onnx`). With two layers, using it is a few lines of NumPy. We classify one
    measurement of a machine that vibrates in all bands and is hot.
    """)
    return


@app.cell
def _(CLASSES, model, np):
    def classify(measurement):
        hidden = np.maximum(measurement @ model["0.weight"] + model["0.bias"], 0.0)
        return CLASSES[int(np.argmax(hidden @ model["1.weight"] + model["1.bias"]))]

    print({name: array.shape for name, array in model.items()})
    print(classify(np.array([1.0, 0.9, 0.8, 1.2])))
    return


@app.cell(hide_code=True)
def _(mo):
    mo.md(r"""
    ## Exercise

    Make the devices more different with `alpha = 0.1` in the partition, and compare the accuracy and the losses of
    the devices with those above. Then put your own measurements into the two files.

    **Hint.** Your own data change four lines: `source`, `classes`, and the first and last number of `layer_sizes`.
    If accuracy stays at a guess, look at the size of your numbers first: they should be of the order of 1.
    """)
    return


if __name__ == "__main__":
    app.run()
