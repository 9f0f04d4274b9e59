"""An exported ONNX file gives the logits that fairwave computes, in another program's arithmetic."""

from __future__ import annotations

import json
from pathlib import Path

import jax
import numpy as np
import onnx
import onnxruntime
import pytest

import fairwave
from fairwave.errors import ArgumentError
from fairwave.learning.models import model_of
from fairwave.learning.named_arrays import named_arrays
from fairwave.learning.onnx_files import write_onnx
from fairwave.scenario.learning_parameters import Learning

TOLERANCE = 2e-5
"""Both add up float32 products, in different orders: about 100 roundings of outputs that are around 1."""
IMAGES = {
    "cnn": {"image_shape": (7, 9, 2), "layer_sizes": (126, 5)},
    "pooled_cnn": {"image_shape": (28, 21, 1), "layer_sizes": (588, 5)},
    "series_cnn": {"image_shape": (43, 1, 3), "layer_sizes": (129, 5)},
    "mlp": {"layer_sizes": (20, 16, 8, 5)},
    "softmax": {"layer_sizes": (20, 5)},
    "regression": {"layer_sizes": (20, 16, 1)},
}


def learning(**changes: object) -> Learning:
    return fairwave.load_scenario("small").learning.model_copy(update=changes)


@pytest.mark.parametrize("activation", ["relu", "tanh", "elu", "gelu"])
@pytest.mark.parametrize("name", list(IMAGES))
def test_onnxruntime_gives_the_same_outputs(tmp_path: Path, name: str, activation: str):
    chosen = learning(model=name, activation=activation, **IMAGES[name])
    model = model_of(chosen)
    params = jax.tree.map(lambda leaf: 2.0 * leaf, model.init(jax.random.key(3)))
    inputs = np.random.default_rng(0).normal(size=(11, chosen.layer_sizes[0])).astype(np.float32)
    write_onnx(tmp_path / "m.onnx", chosen, named_arrays(params), {"seed": "3"})
    session = onnxruntime.InferenceSession(str(tmp_path / "m.onnx"), providers=["CPUExecutionProvider"])
    (found,) = session.run(None, {"inputs": inputs})
    expected = model.logits(params, inputs) if model.logits else model.numbers(params, inputs)[:, None]
    assert found.shape == expected.shape == (11, chosen.layer_sizes[-1])
    assert np.abs(found).max() > 0.1
    np.testing.assert_allclose(found, expected, atol=TOLERANCE * max(1.0, float(np.abs(expected).max())))
    assert session.get_outputs()[0].name == ("numbers" if name == "regression" else "logits")
    (one,) = session.run(None, {"inputs": inputs[:1]})  # any number of samples
    np.testing.assert_allclose(one, found[:1], atol=1e-5)


def test_what_is_known_of_the_model_goes_with_it(tmp_path: Path):
    chosen = learning(model="softmax", layer_sizes=(4, 3))
    arrays = {"0.weight": np.eye(4, 3, dtype=np.float32), "0.bias": np.zeros(3, np.float32)}
    write_onnx(tmp_path / "m.onnx", chosen, arrays, {"scheme": "proposed", "privacy": json.dumps({"epsilon": 2.0})})
    held = {each.key: each.value for each in onnx.load(tmp_path / "m.onnx").metadata_props}
    assert held["scheme"] == "proposed" and json.loads(held["privacy"]) == {"epsilon": 2.0}


@pytest.mark.parametrize(
    ("name", "shape"), [("gru", {"image_shape": (10, 1, 2)}), ("resnet", {"image_shape": (8, 8, 1)})]
)
def test_kinds_without_a_graph_are_refused_with_those_that_have_one(tmp_path: Path, name: str, shape: dict):
    with pytest.raises(ArgumentError, match=f"model '{name}': .* knows mlp, softmax, regression, cnn, pooled_cnn, ser"):
        write_onnx(tmp_path / "m.onnx", learning(model=name, **shape), {}, {})
    assert not (tmp_path / "m.onnx").exists()
