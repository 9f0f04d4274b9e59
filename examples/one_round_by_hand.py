"""One round of federated training in plain NumPy, for reading beside the fast one.

It follows Algorithm 1 of the paper for one device after the other, with loops where the engine has compiled programs,
and shares no code with it: the network, its gradient, the gradient exchange, local training and aggregation are written
out. The tests check that both give the same model.
"""

from __future__ import annotations

import numpy as np

Layers = list[dict[str, np.ndarray]]


def forward(layers: Layers, inputs: np.ndarray) -> list[np.ndarray]:
    """Activations of every layer, input first, logits last."""
    activations = [inputs]
    for depth, layer in enumerate(layers):
        logits = activations[-1] @ layer["weight"] + layer["bias"]
        activations.append(logits if depth == len(layers) - 1 else np.maximum(logits, 0.0))
    return activations


def loss_and_gradient(layers: Layers, inputs: np.ndarray, labels: np.ndarray) -> tuple[float, Layers]:
    """Mean negative log likelihood and its gradient, by backpropagation."""
    activations = forward(layers, inputs)
    logits = activations[-1] - activations[-1].max(axis=1, keepdims=True)
    log_likelihood = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
    rows = np.arange(labels.size)
    error = np.exp(log_likelihood)
    error[rows, labels] -= 1.0
    error /= labels.size
    gradient: Layers = []
    for depth in range(len(layers) - 1, -1, -1):
        gradient.insert(0, {"weight": activations[depth].T @ error, "bias": error.sum(axis=0)})
        if depth > 0:
            error = (error @ layers[depth]["weight"].T) * (activations[depth] > 0.0)
    return float(-log_likelihood[rows, labels].mean()), gradient


def combine(first: Layers, second: Layers, scale: float) -> Layers:
    """first + scale * second."""
    return [{name: a[name] + scale * b[name] for name in a} for a, b in zip(first, second, strict=True)]


def mean(many: list[Layers]) -> Layers:
    """Mean of several models."""
    return [
        {name: np.mean([m[depth][name] for m in many], axis=0) for name in many[0][depth]}
        for depth in range(len(many[0]))
    ]


def one_round(
    global_model: Layers,
    received: list[Layers],
    data: list[tuple[np.ndarray, np.ndarray]],
    batches: list[list[np.ndarray]],
    *,
    learning_rate: float,
    gradient_weight: float,
) -> tuple[Layers, list[Layers], list[float]]:
    """The new global model, every device's update, and every device's loss after training.

    `batches[k]` lists the sample numbers of device k's iterations; its length is the device's number of iterations.
    """
    gradients = [loss_and_gradient(model, *own)[1] for model, own in zip(received, data, strict=True)]
    mean_gradient = mean(gradients)
    updates, losses = [], []
    for model, gradient, (inputs, labels), picks in zip(received, gradients, data, batches, strict=True):
        correction = combine(gradient, mean_gradient, -gradient_weight)
        trained = model
        for batch in picks:
            _, step = loss_and_gradient(trained, inputs[batch], labels[batch])
            trained = combine(trained, combine(step, correction, -1.0), -learning_rate)
        updates.append(combine(trained, model, -1.0))
        losses.append(loss_and_gradient(trained, inputs, labels)[0])
    return combine(global_model, mean(updates), 1.0), updates, losses


def main() -> None:
    """Two devices with random data, three iterations each: the loss falls."""
    draw = np.random.default_rng(0)
    model: Layers = [
        {"weight": 0.1 * draw.normal(size=(20, 8)), "bias": np.zeros(8)},
        {"weight": 0.1 * draw.normal(size=(8, 3)), "bias": np.zeros(3)},
    ]
    data = [(draw.normal(size=(50, 20)), draw.integers(0, 3, 50)) for _ in range(2)]
    for number in range(5):
        batches = [[draw.integers(0, 50, 10) for _ in range(3)] for _ in data]
        model, _, losses = one_round(model, [model, model], data, batches, learning_rate=0.5, gradient_weight=1.0)
        print(f"round {number + 1}: mean device loss {np.mean(losses):.4f}")


if __name__ == "__main__":
    main()
