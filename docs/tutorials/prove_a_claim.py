import marimo

__generated_with = "0.25.2"
app = marimo.App(app_title="Prove a privacy claim and let somebody verify it")


@app.cell(hide_code=True)
def _(mo):
    mo.md(r"""
    # Prove a privacy claim and let somebody verify it

    "Our training is private" is easy to say. This tutorial trains a model with **differential privacy**, states
    what is proved in a signed file, and then takes the side of somebody who believes nothing and checks that file
    without fairwave.

    Differential privacy bounds what anybody can learn about one **record**, here one handwritten digit of one
    device. The bound has two numbers. **Epsilon** says by how much the presence of a record can change the odds of
    anything that an observer concludes: by a factor of at most e to the power of epsilon. **Delta** is a small
    probability with which this bound may fail. Smaller is better for both. Training reaches such a bound by
    **clipping**, which limits how much one record can change a step of training (its **sensitivity**), and by
    adding random **noise** to every step.
    """)
    return


@app.cell
def _():
    import hashlib
    import json
    import subprocess
    import sys
    import tempfile
    from pathlib import Path

    import dp_accounting as dp
    import marimo as mo
    import matplotlib.pyplot as plt
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from dp_accounting import pld

    workspace = tempfile.TemporaryDirectory(prefix="fairwave-")
    folder = Path(workspace.name)
    examples = mo.notebook_dir().parents[1] / "examples"
    return (
        Ed25519PrivateKey,
        dp,
        examples,
        folder,
        hashlib,
        json,
        mo,
        pld,
        plt,
        serialization,
        subprocess,
        sys,
        workspace,
    )


@app.cell(hide_code=True)
def _(mo):
    mo.md(r"""
    ## Train

    The preset `fair-mlp` clips the gradient of every record and adds noise on the device, before anything leaves
    it. We make it small: three devices with 1,000 digits each, a linear model, two rounds. Noise in a simulation is
    repeatable, so that results can be compared. Repeatable noise protects nobody: the totals below are what the
    same training proves with noise for deployment (`privacy.noise_source = "hardened"`).
    """)
    return


@app.cell
def _(folder, subprocess, sys):
    def fairwave(*arguments):
        command = [sys.executable, "-m", "fairwave", *map(str, arguments)]
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done

    run = folder / "run"
    settings = [
        "cell.num_devices=3",
        "data.samples_per_device=1000",
        "learning.model=softmax",
        "learning.layer_sizes=[784, 10]",
        "radio.payload_bits=unset",
        "compute.max_iterations=20",
    ]
    options = [part for setting in settings for part in ("--set", setting)]
    fairwave("run", "fair-mlp", "--schemes", "proposed", "--rounds", 2, "--out", run, *options)
    return fairwave, run


@app.cell(hide_code=True)
def _(mo):
    mo.md(r"""
    ## State what is proved

    The **ledger** of a run lists every message that was released, with its noise and its sensitivity. A
    **statement** is a file with the ledger and with every epsilon that follows from it, for every **audience**: the
    access point, another device, the public. The statement is signed with your private key, and you give the public
    key to whoever is to check it. On a command line, `openssl genpkey -algorithm ed25519 -out statement.key` makes
    such a key.
    """)
    return


@app.cell
def _(Ed25519PrivateKey, fairwave, folder, json, run, serialization):
    key = Ed25519PrivateKey.generate()
    _pem = serialization.Encoding.PEM
    (folder / "statement.key").write_bytes(
        key.private_bytes(_pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    (folder / "statement.pub").write_bytes(
        key.public_key().public_bytes(_pem, serialization.PublicFormat.SubjectPublicKeyInfo)
    )
    statement = folder / "statement.json"
    fairwave("privacy", run, "--format", "json", "--key", folder / "statement.key", "--out", statement)
    said = json.loads(statement.read_text("utf-8"))
    print(f"mode {said['mode']}, delta {said['delta']:g}")
    for _row in said["totals"]:
        print(f"{_row['about']:32} epsilon {float(_row['epsilon']):.3f}")
    return key, said, statement


@app.cell(hide_code=True)
def _(mo, said):
    _totals = {row["about"]: float(row["epsilon"]) for row in said["totals"]}
    _together = _totals["everything together"]
    assert all(epsilon == _together for about, epsilon in _totals.items() if not about.startswith("filter"))
    mo.md(
        f"No audience learns more about a record than an epsilon of {_together:.2f} allows, at a delta of "
        f"{said['delta']:g}. All audiences have the same number here: noise is added on the device, so that the access "
        "point sees no more than that, and all that it passes on is computed from what it has seen. The row that "
        "begins with `filter` bounds what a device can release over all rounds, because a device stops before its "
        "budget is spent. The numbers are those of two short rounds on few records, and are no recommendation."
    )
    return


@app.cell(hide_code=True)
def _(mo):
    mo.md(r"""
    ## Verify

    Now change sides. You have three files: the statement, the public key, and `examples/verify_statement.py`, a
    short program that does not use fairwave. It believes no total. It computes every epsilon again from the events
    in the file, and refuses the file if anything does not fit.
    """)
    return


@app.cell
def _(examples, folder, statement, subprocess, sys):
    def verify(file):
        command = [sys.executable, examples / "verify_statement.py", file, "--public-key", folder / "statement.pub"]
        return subprocess.run(command, check=False, capture_output=True, text=True)

    verdict = verify(statement)
    print("\n".join(verdict.stdout.splitlines()[:-1]))
    assert verdict.returncode == 0 and verdict.stdout.endswith("every epsilon agrees\n")
    return (verify,)


@app.cell(hide_code=True)
def _(mo):
    mo.md(r"""
    ## Try to cheat

    We make three forged statements. In the first, somebody lowers an epsilon in the file. In the second, somebody
    else signs the changed file with a key of their own. In the third, the owner of the right key lowers the epsilon
    and signs that: the signature is good, and the number still does not follow from the events. What no verifier
    can see is whether the events themselves are true. The signature says who vouches for them.
    """)
    return


@app.cell
def _(Ed25519PrivateKey, folder, hashlib, json, key, said, verify):
    def canonical(document):
        return json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()

    def signed(document, by):
        body = {name: value for name, value in document.items() if name not in ("digest", "signature")}
        body["digest"] = hashlib.sha256(canonical(body)).hexdigest()
        mark = {"algorithm": "Ed25519", "public_key": by.public_key().public_bytes_raw().hex()}
        value = by.sign(canonical({**body, "signature": mark})).hex()
        return {**body, "signature": {**mark, "value": value}}

    _first, *_others = said["totals"]
    lowered = {**said, "totals": [{**_first, "epsilon": _first["epsilon"] / 2}, *_others]}
    forged = {
        "changed": lowered,
        "signed by a stranger": signed(lowered, Ed25519PrivateKey.generate()),
        "signed by the owner": signed(lowered, key),
    }
    for _name, _document in forged.items():
        (folder / "forged.json").write_bytes(canonical(_document) + b"\n")
        _verdict = verify(folder / "forged.json")
        assert _verdict.returncode != 0
        print(f"{_name}: {_verdict.stderr.strip().splitlines()[-1]}")
    return


@app.cell(hide_code=True)
def _(mo):
    mo.md(r"""
    ## Recompute epsilon by hand

    The verifier has no secret. Each step of training on a device is one release of a **sampled Gaussian
    mechanism**: a random sample of the records, and Gaussian noise whose standard deviation is so many times the
    sensitivity. Google's library `dp_accounting` adds such releases up. The cell below does so for device 0, after
    each round.
    """)
    return


@app.cell
def _(dp, pld, said):
    def epsilon_after(rounds, device=0):
        steps, delta = [], said["delta"]
        for event in said["tracks"][0]["events"]:
            if event["sender"] != "device" or event["round"] >= rounds:
                continue
            columns = (event[name] for name in ("devices", "noise_std", "sampling", "steps", "lost_delta"))
            for who, noise_std, share, count, lost_delta in zip(*columns, strict=True):
                if who == device:
                    noise = dp.GaussianDpEvent(noise_std / event["proven_sensitivity"])
                    steps.append(dp.SelfComposedDpEvent(dp.PoissonSampledDpEvent(share, noise), count))
                    delta -= lost_delta
        accountant = pld.PLDAccountant(value_discretization_interval=1e-3)
        return accountant.compose(dp.ComposedDpEvent(steps)).get_epsilon(delta)

    by_hand = [epsilon_after(rounds) for rounds in (1, 2)]
    stated = next(row["epsilon"] for row in said["totals"] if row["about"] == "device 0")
    print(f"by hand {by_hand[-1]:.3f}, stated {stated:.3f}")
    assert abs(by_hand[-1] - stated) < 1e-3
    return (by_hand,)


@app.cell
def _(by_hand, plt):
    # Figure: Epsilon of what device 0 has released, after each round.
    figure, _axes = plt.subplots(figsize=(6, 3.2), layout="constrained")
    _axes.plot([0, 1, 2], [0.0, *by_hand], marker="o")
    _axes.set(xlabel="round", ylabel="epsilon", ylim=(0, None), xticks=[0, 1, 2])
    figure
    return


@app.cell(hide_code=True)
def _(by_hand, mo):
    mo.md(
        f"The first round costs {by_hand[0]:.2f}, and the second adds {by_hand[1] - by_hand[0]:.2f}. "
        "Epsilon grows more slowly than the number of rounds, and it never shrinks: what was released stays released."
    )
    return


@app.cell(hide_code=True)
def _(mo):
    mo.md(r"""
    ## Exercise

    How much more noise does a device need if epsilon is to be half as large after the same two rounds? Find the
    setting of `privacy.noise_multiplier`, train again, and let the verifier confirm it.

    **Hint.** Epsilon does not fall in proportion to noise. `fairwave privacy plan fair-mlp --epsilon 2` answers
    such questions before any training, and takes the same `--set` options.
    """)
    return


if __name__ == "__main__":
    app.run()
