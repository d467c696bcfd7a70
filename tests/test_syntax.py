"""Syntax trees in threads."""

from __future__ import annotations

import gc
import inspect
import sys
import threading
import time

import pytest

from porter.syntax import expression_tree, module_tree


class Cycle:
    """Collected while a tree is built; lets another thread go on then."""

    def __init__(self):
        self.me = self

    def __del__(self):
        time.sleep(0)


@pytest.fixture
def restless():
    """Threads change often, and garbage is collected in the middle of everything."""
    interval, thresholds = sys.getswitchinterval(), gc.get_threshold()
    sys.setswitchinterval(1e-6)
    gc.set_threshold(20)
    yield
    sys.setswitchinterval(interval)
    gc.set_threshold(*thresholds)


def test_many_threads_at_once(restless):
    """ast.parse raises SystemError here, within seconds."""
    text, errors = inspect.getsource(threading), []

    def work():
        try:
            for _ in range(15):
                Cycle()
                module_tree(text)
                expression_tree("(((((a + b) * c) - d) * e) - f)")
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
