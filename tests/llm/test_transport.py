"""The background loop of calls: connections are shared between threads, so there may be only one."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache

from rag_core.llm import client as transport


def test_first_calls_that_come_at_once_share_one_loop(monkeypatch):
    started = transport._started.__wrapped__

    def slowly():
        time.sleep(0.05)  # the others arrive while the first loop is made
        return started()

    monkeypatch.setattr(transport, "_started", lru_cache(maxsize=1)(slowly))
    together = threading.Barrier(4)

    def call(_):
        together.wait()
        return transport._loop()

    with ThreadPoolExecutor(4) as pool:
        loops = set(pool.map(call, range(4)))
    for loop in loops:
        loop.call_soon_threadsafe(loop.stop)
    assert len(loops) == 1
