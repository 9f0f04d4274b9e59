"""Work that goes on behind the caller: finished rounds are stored while the next ones are computed."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from typing import TypeVar

Item = TypeVar("Item")


@contextlib.contextmanager
def in_background(
    work: Callable[[list[Item]], None], *, most: int = 1, pause_s: float = 0.0
) -> Iterator[Callable[[Item], None]]:
    """Takes items one by one and lets the caller go on; `work` is called with all that wait, in their order.

    At most `most` items are held, those in work among them; whoever hands over another waits. Calls of `work` begin at
    least `pause_s` apart, so that it gets many small items together, and is called no more often than it has to be.

    When `work` fails, this says so when the next item is handed over, or at the end, and nothing is worked on any more.
    Whatever ends this from outside, such as Ctrl-C, waits until everything that was handed over has been worked on.
    """
    changed, waiting, in_work, ended = threading.Condition(), list[Item](), 0, False
    failures: list[BaseException] = []

    def serve() -> None:
        nonlocal in_work
        begun = -pause_s
        while True:
            with changed:
                changed.wait_for(lambda: waiting or ended)
                until = begun + pause_s - time.monotonic()
                changed.wait_for(lambda: ended or len(waiting) == most, timeout=max(until, 0.0))
                if not waiting:
                    return
                items, in_work = waiting.copy(), len(waiting)
                waiting.clear()
            begun = time.monotonic()
            try:
                work(items)
            except BaseException as failure:  # raised again where the next item is handed over
                failures.append(failure)
            with changed:
                in_work = 0
                changed.notify_all()
            if failures:
                return

    def hand_over(item: Item) -> None:
        with changed:
            changed.wait_for(lambda: failures or len(waiting) + in_work < most)
            if failures:
                raise failures[0]
            waiting.append(item)
            changed.notify_all()

    worker = threading.Thread(target=serve, name="background")
    worker.start()
    try:
        yield hand_over
    finally:
        with changed:
            ended = True
            changed.notify_all()
        worker.join()
    if failures:
        raise failures[0]
