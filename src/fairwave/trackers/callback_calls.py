"""Calls of callbacks, none of which can stop training."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterator, Sequence

from fairwave.engine.end_reasons import EndReason
from fairwave.trackers.callback import Callback, RoundValues, Training

Follow = Callable[[Training], "CallbackCalls"]
"""From what is about to be trained to the callbacks that follow it."""
Complain = Callable[[str], None]
"""Called with a sentence on what failed."""


def warn(sentence: str) -> None:
    """A warning of Python's."""
    warnings.warn(sentence, RuntimeWarning, stacklevel=2)


class CallbackCalls:
    """The callbacks of one scheme and seed. One that fails is left out from then on."""

    def __init__(self, callbacks: Sequence[Callback], training: Training, complain: Complain = warn) -> None:
        self._callbacks, self._training, self._complain = list(callbacks), training, complain
        self.ended: EndReason | None = None
        """Why training ended before its last round; None if it did not."""

    def start(self) -> None:
        """Training is about to begin."""
        self._call("on_start", lambda callback: callback.on_start(self._training))

    def round(self, done: RoundValues) -> None:
        """A round is done, and stored where rounds are stored."""
        self._call("on_round", lambda callback: callback.on_round(self._training, done))

    def end(self, reason: str) -> None:
        """Training has ended."""
        self._call("on_end", lambda callback: callback.on_end(self._training, reason))

    def _call(self, what: str, call: Callable[[Callback], None]) -> None:
        for callback in list(self._callbacks):
            try:
                call(callback)
            except Exception as error:  # a callback is another program: whatever it raises must not cost a round
                self._callbacks.remove(callback)
                self._complain(
                    f"{type(callback).__name__}.{what}: failed for {self._training.name} ({type(error).__name__}: "
                    f"{' '.join(str(error).split())}); it is not called again for it, and training continues"
                )


def nobody(training: Training) -> CallbackCalls:
    """No callbacks."""
    return CallbackCalls((), training)


@contextlib.contextmanager
def followed(calls: CallbackCalls) -> Iterator[CallbackCalls]:
    """Callbacks for as long as training goes on; they are told how it ended, also where it is cut short."""
    calls.start()
    try:
        yield calls
    except BaseException:
        calls.end("interrupted")
        raise
    calls.end("done" if calls.ended is None else calls.ended.in_words())
