"""Work that goes on behind the caller: a round is stored while the next one is computed."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor

Task = Callable[[], None]


@contextlib.contextmanager
def in_background() -> Iterator[Callable[[Task], None]]:
    """Takes work and lets the caller go on: one piece at a time, in order, and all of it before this ends.

    A piece that fails says so when the next is handed over, which is then not begun, or at the end. Whatever ends this
    from outside, such as Ctrl-C, waits for the piece in hand.
    """
    in_hand: Future[None] | None = None
    with ThreadPoolExecutor(1, thread_name_prefix="background") as pool:

        def hand_over(task: Task) -> None:
            nonlocal in_hand
            if in_hand is not None:
                in_hand.result()
            in_hand = pool.submit(task)

        yield hand_over
        if in_hand is not None:
            in_hand.result()
