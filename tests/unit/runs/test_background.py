"""Work behind the caller: in order, whole, and honest about failures."""

import threading
import time
from functools import partial

import pytest

from fairwave.runs.background import in_background


def test_the_caller_goes_on_while_work_is_done():
    may_end, ended = threading.Event(), []
    with in_background() as hand_over:
        hand_over(lambda: ended.append(may_end.wait(timeout=30)))
        assert not ended
        may_end.set()
    assert ended == [True]


def test_work_is_done_in_order_one_piece_at_a_time():
    busy, done = threading.Lock(), []

    def piece(number):
        with_nobody_else = busy.acquire(blocking=False)
        time.sleep(0.01)
        done.append((number, with_nobody_else))
        busy.release()

    with in_background() as hand_over:
        for number in range(5):
            hand_over(partial(piece, number))
    assert done == [(number, True) for number in range(5)]


def test_nothing_is_begun_after_a_failure():
    done = []
    with pytest.raises(ZeroDivisionError), in_background() as hand_over:
        hand_over(lambda: 1 // 0)
        hand_over(lambda: done.append("the next"))
    assert done == []


def test_the_last_piece_may_fail_too():
    with pytest.raises(ZeroDivisionError), in_background() as hand_over:
        hand_over(lambda: 1 // 0)


def test_an_interruption_waits_for_the_piece_in_hand():
    done = []

    def slow():
        time.sleep(0.1)
        done.append("whole")

    with pytest.raises(KeyboardInterrupt), in_background() as hand_over:
        hand_over(slow)
        raise KeyboardInterrupt
    assert done == ["whole"]
