"""A progress bar for simulations from Python: in a terminal and in a notebook, and nowhere else."""

from __future__ import annotations

import sys
import warnings
from types import TracebackType
from typing import Any

from fairwave.trackers.callback import RoundValues, Training


class ProgressBar:
    """Rounds done of all that are to be trained, with the last one's accuracy or error."""

    def __init__(self, total: int, wanted: bool | None) -> None:
        """`wanted` says whether to show it; None if that is to be found out."""
        self._bar: Any = None
        if _somebody_looks() if wanted is None else wanted:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # in a notebook without widgets, tqdm asks for them and shows text
                from tqdm.auto import tqdm

                self._bar = tqdm(total=total, unit="round", dynamic_ncols=True)

    def __enter__(self) -> ProgressBar:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.close()

    def take(self, training: Training, done: RoundValues) -> None:
        """One round more."""
        if self._bar is None:
            return
        self._bar.set_description(f"{training.scheme}, seed {training.seed}", refresh=False)
        measures = {"test accuracy": "test_accuracy", "test RMSE": "test_rmse"}
        told = {words: f"{done.values[name]:.3f}" for words, name in measures.items() if name in done.values}
        self._bar.set_postfix(told, refresh=False)
        self._bar.update()

    def skip(self, rounds: int) -> None:
        """Expect so many rounds fewer, since a scheme and seed has ended early."""
        if self._bar is not None and rounds:
            self._bar.total -= rounds
            self._bar.refresh()


def _somebody_looks() -> bool:
    """Whether standard error is a terminal, or this is a notebook."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    return sys.stderr.isatty() or type(shell).__name__ == "ZMQInteractiveShell"
