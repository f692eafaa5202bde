"""The cache of executables: threads, memory mappings, and what programs hold."""

import gc
import sys
import threading

import pytest
from helpers.other_threads import LIMIT, OtherThread, in_thread

import handlax as hx
from handlax import numpy as hnp
from handlax.effects.base.caches import CACHES
from handlax.effects.base.deep_calls import on_deep_stack
from handlax.errors import CompileError
from handlax.lowering.clients import platforms
from handlax.lowering.compile import executable_cache
from handlax.lowering.compile.executable_cache import ExecutableCache, holds_user_data

KEY = (hx.make_program(lambda x: x + 1)(1.0),)
TYPE = hx.ShapeDtypeStruct((), "float32")


@pytest.fixture
def cache():
    made = ExecutableCache("of a test")
    yield made
    CACHES.remove(made)


def test_threads_that_wait_for_a_failing_compilation_compile_themselves(cache):
    begun, fail = threading.Event(), threading.Event()

    def failing():
        begun.set()
        assert fail.wait(LIMIT)
        raise MemoryError

    def first():
        with pytest.raises(MemoryError):
            cache.get(KEY, failing)

    failed = OtherThread(first)
    assert begun.wait(LIMIT)
    waiting = [OtherThread(cache.get, KEY, object) for _ in range(4)]
    assert all([thread.is_alive() for thread in waiting])
    fail.set()
    failed.result()
    assert len({id(thread.result()) for thread in waiting}) == 1 and not cache.compiling


def test_what_runs_within_a_compilation_may_need_the_same_executable(cache):
    inner = object()
    made = cache.get(KEY, lambda: cache.get(KEY, lambda: inner))
    assert made is inner and not cache.compiling


def test_a_listener_may_call_the_function_that_is_being_compiled():
    seen = []

    def listener(event, seconds, **data):
        if "jaxpr_to_mlir" in event and not seen:
            seen.append(event)
            seen.append(float(f(2.0)))

    f = hx.jit(lambda x: x * 3 + 19)
    hx.monitoring.register_event_duration_secs_listener(listener)
    try:
        assert float(f(1.0)) == 22 and seen[1] == 25
    finally:
        hx.monitoring.unregister_event_duration_listener(listener)


def test_what_runs_within_a_compilation_on_another_stack_may_need_the_same_executable(cache):
    def deep(n):
        return on_deep_stack(deep, n - 1) if n else cache.get(KEY, object)

    thread = threading.Thread(target=cache.get, args=(KEY, lambda: deep(sys.getrecursionlimit())), daemon=True)
    thread.start()
    thread.join(20)
    assert not thread.is_alive() and len(cache) == 1 and not cache.compiling


def test_threads_may_need_within_a_compilation_what_the_other_compiles(cache):
    both, made = threading.Barrier(2, timeout=60), []

    def outer(name, other):
        def make():
            both.wait()
            made.append(cache.get((KEY[0], other), object))
            both.wait()
            return object()

        cache.get((KEY[0], name), make)

    threads = [threading.Thread(target=outer, args=names, daemon=True) for names in ("fg", "gf")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert len(made) == 2 and not cache.compiling and len(cache) == 2


@pytest.fixture
def usual_collections():
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)
    gc.collect()  # the finalizers of what is left use no cache of a later test


@pytest.mark.usefixtures("usual_collections")
def test_a_finalizer_may_need_an_executable_while_another_is_looked_up(cache):
    """Whichever allocation collects the object; a thread that waited for itself would not end."""
    made = []

    class Closed:
        def __init__(self):
            self.itself = self

        def __del__(self):
            made.append(cache.get((KEY[0], "inner", len(made)), object))

    def look_up():
        for allocations in range(1, 120):
            gc.set_threshold(100_000)
            Closed()
            gc.set_threshold(allocations)
            cache.get((KEY[0], allocations), object)

    in_thread(look_up)
    assert made and not cache.compiling


class Comparing:
    """A key whose comparison needs the cache."""

    def __init__(self, cache):
        self.cache = cache

    def __hash__(self):
        return 1

    def __eq__(self, other):
        self.cache.get((KEY[0], object()), object)
        return self is other


def test_what_compares_keys_may_need_an_executable(cache):
    outer, inner = [(KEY[0], Comparing(cache)) for _ in range(2)]
    in_thread(lambda: cache.get(outer, lambda: cache.get(inner, object)))
    assert not cache.compiling


def test_executables_are_dropped_before_the_mappings_are_used_up(cache, monkeypatch):
    monkeypatch.setattr(executable_cache, "_most_mappings", lambda: 1000)
    monkeypatch.setattr(executable_cache, "_mappings", lambda: 20 * len(cache))
    for number in range(200):
        cache.get((KEY[0], number), object)
    assert 10 < len(cache) < 60


def test_where_the_system_tells_no_limit_of_mappings_nothing_is_dropped(cache, monkeypatch):
    monkeypatch.setattr(executable_cache, "_most_mappings", lambda: None)
    monkeypatch.setattr(executable_cache, "_mappings", lambda: 20 * len(cache))
    for number in range(100):
        cache.get((KEY[0], number), object)
    assert len(cache) == 100


def test_mappings_that_are_all_in_use_are_an_error_with_its_remedy(cache, monkeypatch):
    monkeypatch.setattr(executable_cache, "_most_mappings", lambda: 1000)
    monkeypatch.setattr(executable_cache, "_mappings", lambda: 990)
    cache.until_count = 1
    with pytest.raises(CompileError, match=r"990 in use of the 1000.*\n.*\n.*vm.max_map_count"):
        cache.get(KEY, object)
    assert not cache.compiling


def test_a_function_made_again_compiles_nothing():
    def made(x):
        return hx.jit(lambda x: hx.debug.print("{}", x) or x * 3 + 7)(x)

    made(1.0)
    before = platforms.COUNTS["compile"]
    made(2.0)
    assert platforms.COUNTS["compile"] == before


@pytest.mark.parametrize(("function", "held"), [
    (len, False), (lambda v: v, False), ((lambda k: lambda v: v + k)(1), True), (lambda v, k=1: v + k, True),
    ({}.get, True), (hnp.ones(3).__add__, True),
], ids=["builtin", "plain", "closure", "default", "builtin method", "method"])
def test_what_a_host_function_holds_is_known(function, held):
    called = lambda x: hx.lax.cond(x > 0, lambda x: hx.pure_callback(function, TYPE, x), hnp.sin, x)
    assert holds_user_data(hx.make_program(called)(1.0)) is held


@pytest.mark.parametrize("k", [None, 1.0], ids=["plain", "closure"])
def test_what_a_host_function_holds_is_not_kept_by_the_cache(cache, k):
    host = (lambda v: v) if k is None else (lambda v: v + k)
    program = hx.make_program(lambda x: hx.pure_callback(host, TYPE, x))(1.0)
    assert cache.get((program,), lambda: "executable") == "executable"
    assert ((program,) in cache.entries) == (k is None)
