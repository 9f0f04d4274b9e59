"""What a client does in Flower's simulation: a module of its own, which Ray's actors import, and keep their data."""

from __future__ import annotations

import functools

import jobs
import numpy as np
import torch
from flwr.app import Array, ArrayRecord, Context, Message, RecordDict
from flwr.clientapp import ClientApp
from torch import nn
from torch_model import network, put, train

app = ClientApp()


@functools.cache
def standing(name: str) -> tuple[jobs.Job, nn.Module, np.ndarray, torch.Tensor, torch.Tensor]:
    """What an actor makes once, and keeps."""
    torch.set_num_threads(1)
    job, data = jobs.ALL[name], jobs.mnist()
    return job, network(job), job.holdings(), torch.from_numpy(data.train_x), torch.from_numpy(data.train_y)


@app.train()
def local_training(message: Message, context: Context) -> Message:
    """One client's round."""
    config = message.content["config"]
    job, model, holdings, inputs, labels = standing(str(config["job"]))
    client = int(context.node_config["partition-id"])
    put(model, arrays_of(message))
    picks = holdings[client][job.picks(job.rng(int(config["round"]), client))]
    train(model, inputs, labels, torch.from_numpy(picks), job.learning_rate)
    trained = record_of([param.detach().numpy() for param in model.parameters()])
    return Message(RecordDict({"arrays": trained}), reply_to=message)


def arrays_of(message: Message, record: str = "arrays") -> list[np.ndarray]:
    """The arrays that a message carries; where something went wrong, it raises that."""
    if message.has_error():
        raise RuntimeError(message.error.reason)
    return [array.numpy() for array in message.content[record].values()]


def record_of(arrays: list[np.ndarray]) -> ArrayRecord:
    """Arrays to send, in their order."""
    return ArrayRecord({str(index): Array(array) for index, array in enumerate(arrays)})
