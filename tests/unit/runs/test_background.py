"""Work behind the caller: in order, whole, as much at a time as waits, and honest about failures."""

import threading
import time

import pytest

from fairwave.runs.background import in_background


def test_the_caller_goes_on_while_work_is_done():
    may_end, ended = threading.Event(), []
    with in_background(lambda items: ended.append(may_end.wait(timeout=30))) as hand_over:
        hand_over(1)
        assert not ended
        may_end.set()
    assert ended == [True]


def test_work_is_done_in_order_one_piece_at_a_time():
    busy, done = threading.Lock(), []

    def work(items):
        alone = busy.acquire(blocking=False)
        time.sleep(0.01)
        done.append((items, alone))
        busy.release()

    with in_background(work) as hand_over:
        for number in range(5):
            hand_over(number)
    assert done == [([number], True) for number in range(5)]


def test_what_waits_is_worked_on_together():
    began, may_go_on, done = threading.Event(), threading.Event(), []

    def work(items):
        began.set()
        may_go_on.wait(timeout=30)
        done.append(items)

    with in_background(work, most=4) as hand_over:
        hand_over(0)
        assert began.wait(timeout=30)
        for number in (1, 2, 3):
            hand_over(number)
        may_go_on.set()
    assert done == [[0], [1, 2, 3]]


def test_no_more_than_may_wait_is_held():
    may_go_on, handed, done = threading.Event(), [], []

    def work(items):
        may_go_on.wait(timeout=30)
        done.extend(items)

    def caller():
        with in_background(work, most=3) as hand_over:
            for number in range(10):
                hand_over(number)
                handed.append(number)

    thread = threading.Thread(target=caller)
    thread.start()
    deadline = time.monotonic() + 30
    while len(handed) < 3 and time.monotonic() < deadline:
        time.sleep(0.001)
    time.sleep(0.05)
    assert handed == [0, 1, 2]
    may_go_on.set()
    thread.join(timeout=30)
    assert done == list(range(10))


def test_quick_items_are_gathered_and_the_end_waits_for_no_pause():
    done = []
    began = time.monotonic()
    with in_background(done.append, most=1_000, pause_s=60.0) as hand_over:
        hand_over(0)
        while not done and time.monotonic() - began < 30:
            time.sleep(0.001)
        for number in range(1, 6):
            hand_over(number)
    assert done == [[0], [1, 2, 3, 4, 5]]
    assert time.monotonic() - began < 30


def test_nothing_is_begun_after_a_failure():
    done = []

    def work(items):
        done.extend(items)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), in_background(work) as hand_over:
        hand_over("the first")
        hand_over("the next")
    assert done == ["the first"]


def test_the_last_piece_may_fail_too():
    with pytest.raises(ZeroDivisionError), in_background(lambda items: 1 // 0) as hand_over:
        hand_over(1)


def test_an_interruption_waits_for_all_that_was_handed_over():
    done = []

    def slow(items):
        time.sleep(0.05)
        done.extend(items)

    with pytest.raises(KeyboardInterrupt), in_background(slow, most=8, pause_s=60.0) as hand_over:
        for number in range(5):
            hand_over(number)
        raise KeyboardInterrupt
    assert done == list(range(5))
