import marimo

__generated_with = "0.25.2"
app = marimo.App(app_title="Your own scheme, model and data as a plugin")


@app.cell(hide_code=True)
def _(mo):
    mo.md(r"""
    # Your own scheme, model and data as a plugin

    fairwave can be extended without a change to the package. A **plugin** is a Python file. Everything at its top
    level that is of a known type gets a name that scenarios and commands understand. This tutorial writes one
    plugin with three parts:

    - a **scheme**, which says how a device chooses its effort and what the access point does with what it receives;
    - a **model**, which is what the devices train;
    - a **data set**.
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

    import fairwave

    workspace = tempfile.TemporaryDirectory(prefix="fairwave-")
    folder = Path(workspace.name)
    return fairwave, folder, mo, plt, subprocess, sys, workspace


@app.cell(hide_code=True)
def _(mo):
    mo.md(r"""
    ## The plugin

    The scheme has devices transmit with half of their power and do all **local iterations** (steps of training on
    the device) that fit beside the upload. Everything that it does not say is as in the paper. The access point
    adds noise to the copies of devices by their contribution, which is what `fair_levels` does.

    The model keeps one centre per class and says that an input belongs to the class with the nearest centre. A
    model is a set of parameters, drawn by `init` in single precision (`float32`), and a function from inputs to one
    score per class.

    The data are waves of three frequencies in noise, made by a random generator with a fixed seed. They stand for
    anything that you measure.
    """)
    return


@app.cell
def _(folder):
    plugin = folder / "mine.py"
    plugin.write_text(
        '''
"""A scheme, a model and a data set."""

import jax
import jax.numpy as jnp
import numpy as np

from fairwave import DataSet, DataSource, ModelKind, Rule, Scheme
from fairwave.learning.model import classifier
from fairwave.policy.deviation import fair_levels
from fairwave.policy.problem import Choice, iterations_at, within_bounds


def at_half_power(problem, preferences, effort):
    """Half of the power that the device has, or as much as it needs, and all iterations that fit."""
    half_w = 0.5 * problem.device.max_transmit_power_w
    log_snr = within_bounds(problem, jnp.log1p(half_w * problem.gain))
    return Choice(iterations=iterations_at(problem, log_snr), log_snr=log_snr)


half_power_rule = Rule("half_power", "half of the power, and all iterations that fit", at_half_power)
half_power = Scheme(
    name="half_power", summary="half of the power", plan=half_power_rule, noise_levels=fair_levels
)


def build_centres(learning):
    """One centre per class; the score of a class is how near its centre is."""
    num_inputs, num_classes = learning.layer_sizes

    def init(key):
        return {"centres": 0.1 * jax.random.normal(key, (num_classes, num_inputs), jnp.float32)}

    def scores(params, inputs):
        centres = params["centres"]
        return 2.0 * inputs @ centres.T - jnp.sum(centres**2, axis=1)

    return classifier(init, scores, learning.l2)


nearest_centre = ModelKind("nearest_centre", "the class whose centre is nearest", build_centres)


def make_waves():
    """Waves of 16 samples with one, two or three periods, in noise."""
    draw = np.random.default_rng(7)
    labels = draw.integers(0, 3, 900).astype(np.int32)
    waves = np.sin(2 * np.pi * (labels[:, None] + 1) * np.arange(16) / 16)
    inputs = (waves + draw.normal(0.0, 1.0, waves.shape)).astype(np.float32)
    return DataSet(inputs[:600], labels[:600], inputs[600:], labels[600:])


waves = DataSource("waves", "three frequencies in noise", make_waves)
'''
    )
    return (plugin,)


@app.cell(hide_code=True)
def _(mo):
    mo.md(r"""
    ## Train

    `--plugin` loads the file, and its names work like built-in ones. The model has 16 inputs and 3 classes. Its
    upload is as long as its parameters ask for once `radio.payload_bits`, the length of the paper's upload, is
    unset. `compute.max_iterations` bounds the iterations, because steps on so few measurements take so little time
    that thousands would fit into a round.
    """)
    return


@app.cell
def _(folder, plugin, subprocess, sys):
    def run(*arguments):
        command = [sys.executable, "-m", "fairwave", *map(str, arguments)]
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done

    settings = [
        "data.source=waves",
        "data.samples_per_device=100",
        "data.bits_per_feature=32",
        "learning.model=nearest_centre",
        "learning.layer_sizes=[16, 3]",
        "learning.learning_rate=0.02",
        "learning.batch_size=32",
        "radio.payload_bits=unset",
        "compute.max_iterations=20",
    ]
    options = [part for setting in settings for part in ("--set", setting)]
    schemes = "half_power,max_power"
    run("run", "small", "--plugin", plugin, "--schemes", schemes, "--rounds", 6, "--out", folder / "run", *options)
    return


@app.cell(hide_code=True)
def _(mo):
    mo.md(r"""
    ## Read the results

    `fairwave.open_run` reads a stored run. It executes no plugin unless you name it. This run has a model that only
    the plugin knows, so we name the plugin that we have just written.
    """)
    return


@app.cell
def _(fairwave, folder, plugin):
    with fairwave.open_run(folder / "run", plugins=[plugin]) as _stored:
        results = _stored.results.sel(seed=0)
        centres = _stored.model("half_power")
    for _scheme in results["scheme"].values:
        _one = results.sel(scheme=_scheme)
        print(
            f"{_scheme}: test accuracy {float(_one['test_accuracy'].isel(round=-1)):.3f}, "
            f"mean energy {1000 * float(_one['energy_j'].mean()):.3f} mJ a round"
        )
    print({name: array.shape for name, array in centres.items()})
    return centres, results


@app.cell
def _(centres, plt, results):
    # Figure: Test accuracy of both schemes, and the centres that the model has learned.
    figure, (_accuracy, _centres) = plt.subplots(1, 2, figsize=(8, 3.3), layout="constrained")
    for _scheme in results["scheme"].values:
        _rounds = range(1, results.sizes["round"] + 1)
        _accuracy.plot(_rounds, results["test_accuracy"].sel(scheme=_scheme), marker="o", label=_scheme)
    _accuracy.set(xlabel="round", ylabel="test accuracy", ylim=(0, 1))
    _accuracy.legend()
    for _label, _centre in enumerate(centres["centres"]):
        _centres.plot(_centre, label=f"class {_label}")
    _centres.set(xlabel="sample", ylabel="centre")
    _centres.legend()
    figure
    return


@app.cell
def _(results):
    saved = 1 - float(
        results["energy_j"].sel(scheme="half_power").mean() / results["energy_j"].sel(scheme="max_power").mean()
    )
    final = {str(name): float(results["test_accuracy"].sel(scheme=name)[-1]) for name in results["scheme"].values}
    assert min(final.values()) > 1 / 3  # better than a guess
    return final, saved


@app.cell(hide_code=True)
def _(final, mo, saved):
    mo.md(
        f"The scheme changes the energy of a round by {-saved:+.1%}. Test accuracy is {final['half_power']:.1%} "
        f"with `half_power` and {final['max_power']:.1%} with `max_power`; a guess would have a third."
    )
    return


@app.cell(hide_code=True)
def _(mo):
    mo.md(r"""
    ## Exercise

    Write a second scheme, `quarter_power`, and let the run compare all three. Is there a power below which a device
    at the edge of the cell can no longer do with less?

    **Hint.** `within_bounds` raises the power to what the deadline asks for. Compare `results["transmit_power_w"]`
    of the nearest and the farthest device.
    """)
    return


if __name__ == "__main__":
    app.run()
