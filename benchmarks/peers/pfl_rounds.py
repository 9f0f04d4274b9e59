"""pfl-research with its PyTorch backend; under torchrun, the clients of a round are divided among its processes.

python pfl_rounds.py JOB THREADS      or      torchrun --nproc-per-node 2 pfl_rounds.py JOB 1

Its `local_num_steps` ends with the client's samples, and its batches are slices: the data set draws its own batches.
The first round evaluates its clients as well, whatever the evaluation frequency; it is never timed.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

import jobs
import numpy as np
import torch
from candidate import Wire
from pfl.aggregate.simulate import SimulatedBackend
from pfl.algorithm.base import NNAlgorithmParams
from pfl.algorithm.federated_averaging import FederatedAveraging
from pfl.callback.base import TrainingProcessCallback
from pfl.data.dataset import Dataset
from pfl.data.federated_dataset import FederatedDataset
from pfl.data.sampling import get_user_sampler
from pfl.hyperparam import NNTrainHyperParams
from pfl.metrics import Metrics, Weighted
from pfl.model.pytorch import PyTorchModel
from torch import nn
from torch.nn.functional import cross_entropy
from torch_model import accuracy, network, shares

MANY = 1_000_000


class Network(nn.Module):
    """The job's network with what pfl asks of a model."""

    def __init__(self, job: jobs.Job) -> None:
        super().__init__()
        self.layers = network(job)

    def loss(self, inputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """To be minimised."""
        return cross_entropy(self.layers(inputs), labels)

    @torch.no_grad()
    def metrics(self, inputs: torch.Tensor, labels: torch.Tensor) -> dict[str, Weighted]:
        """Of one client, before and after the first round."""
        return {"loss": Weighted(float(self.loss(inputs, labels)) * len(labels), len(labels))}


class Drawn(Dataset):
    """One client's samples, in batches as the job draws them."""

    def __init__(self, job: jobs.Job, rng: np.random.Generator, own: tuple[torch.Tensor, torch.Tensor]) -> None:
        super().__init__(own)
        self._job, self._rng = job, rng

    def iter(self, batch_size: int | None) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        """Batches of one round; all samples at once where no batch size is asked for."""
        inputs, labels = self.raw_data
        if batch_size != self._job.batch:
            yield inputs, labels
            return
        for batch in torch.from_numpy(self._job.picks(self._rng)):
            yield inputs[batch], labels[batch]


class Turns(TrainingProcessCallback):
    """Waits for the harness after every round; the first process asks for all."""

    def __init__(self, wire: Wire | None) -> None:
        self._wire = wire

    def after_central_iteration(
        self, aggregate_metrics: Metrics, model: PyTorchModel, *, central_iteration: int
    ) -> tuple[bool, Metrics]:
        """Whether to stop."""
        go_on = torch.tensor(int(self._wire is None or self._wire.turn()))
        if torch.distributed.is_initialized():
            torch.distributed.broadcast(go_on, src=0)
        return not bool(go_on), Metrics()


def main() -> None:
    """Rounds until the harness has enough."""
    rank, job = int(os.environ.get("RANK", "0")), jobs.ALL[sys.argv[1]]
    wire = Wire() if rank == 0 else None
    torch.set_num_threads(int(sys.argv[2]))
    np.random.seed(jobs.SEED)  # all processes must choose the same clients
    own, rng = shares(job), job.rng(2, rank)
    choose = get_user_sampler("minimize_reuse" if job.cohort == job.clients else "random", list(range(job.clients)))
    clients = FederatedDataset(lambda client: Drawn(job, rng, own[client]), choose)
    trained = Network(job)
    model = PyTorchModel(trained, torch.optim.SGD, torch.optim.SGD(trained.parameters(), lr=1.0))
    FederatedAveraging().run(
        NNAlgorithmParams(MANY, MANY, job.cohort, None),
        SimulatedBackend(clients, clients),
        model,
        NNTrainHyperParams(job.batch, None, job.learning_rate, local_num_steps=job.steps),
        callbacks=[Turns(wire)],
        send_metrics_to_platform=False,
    )
    if wire is not None:
        wire.end(accuracy(trained.layers), os.getppid() if torch.distributed.is_initialized() else None)
    if torch.distributed.is_initialized():
        torch.distributed.barrier()  # the first process counts the others' memory
        torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
