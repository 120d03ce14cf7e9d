"""The garbage collector skips collected tests, and frees the garbage of each test at its end."""

import gc
import weakref

import pytest

from tests import conftest


class Node:
    """An object that refers to itself."""

    def __init__(self):
        self.node = self


def end(hook):
    """Resume a hook after what it wraps. Returns the hook's result."""
    with pytest.raises(StopIteration) as ended:
        hook.send("result")
    return ended.value.value


def test_it_is_disabled_until_the_tests_are_collected(monkeypatch):
    frozen = []
    monkeypatch.setattr(gc, "freeze", lambda: frozen.append(gc.isenabled()))
    hook = conftest.pytest_collection()
    next(hook)
    assert not gc.isenabled()
    assert end(hook) == "result"
    assert gc.isenabled()
    assert frozen == [False]


def test_it_is_enabled_when_collecting_fails(monkeypatch):
    monkeypatch.setattr(gc, "freeze", lambda: None)
    hook = conftest.pytest_collection()
    next(hook)
    with pytest.raises(KeyError):
        hook.throw(KeyError())
    assert gc.isenabled()


def test_garbage_of_a_test_is_freed_at_its_end(request):
    hook = conftest.pytest_runtest_protocol(request.node)
    next(hook)
    node = Node()
    left = weakref.ref(node)
    del node
    assert end(hook) == "result"
    assert left() is None
