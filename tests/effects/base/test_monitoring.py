"""Events reach the listeners of their kind, in order, and compilation is such an event."""

import pytest

import handlax as hx
from handlax import errors, monitoring

KINDS = {
    "event": (monitoring.record_event, (),
              monitoring.register_event_listener, monitoring.unregister_event_listener),
    "duration": (monitoring.record_event_duration_secs, (0.5,),
                 monitoring.register_event_duration_secs_listener, monitoring.unregister_event_duration_listener),
    "time span": (monitoring.record_event_time_span, (1.0, 2.5),
                  monitoring.register_event_time_span_listener, monitoring.unregister_event_time_span_listener),
    "scalar": (monitoring.record_scalar, (7,),
               monitoring.register_scalar_listener, monitoring.unregister_scalar_listener),
}


@pytest.fixture(autouse=True)
def without_listeners():
    yield
    monitoring.clear_event_listeners()


class Ear:
    def __init__(self, heard):
        self.heard = heard

    def __call__(self, *event, **metadata):
        self.heard.append((event, metadata))


@pytest.mark.parametrize("kind", KINDS)
def test_listeners_hear_of_events_of_their_kind_alone(kind):
    heard = {name: [] for name in KINDS}
    for name, (_, _, register, _) in KINDS.items():
        register(Ear(heard[name]))
    record, values, _, _ = KINDS[kind]
    record("/a", *values)
    record("/b", *values, size=3)
    assert heard.pop(kind) == [(("/a", *values), {}), (("/b", *values), {"size": 3})]
    assert not any(heard.values())


@pytest.mark.parametrize("kind", KINDS)
def test_a_listener_that_is_removed_hears_nothing(kind):
    record, values, register, unregister = KINDS[kind]
    heard = []
    first, second = Ear(heard), Ear(heard)
    for ear in (first, second, first):
        register(ear)
    unregister(first)
    record("/a", *values)
    assert len(heard) == 2
    monitoring.clear_event_listeners()
    record("/a", *values)
    assert len(heard) == 2
    with pytest.raises(errors.NotRegistered, match="must be registered"):
        unregister(first)
    with pytest.raises(AssertionError):
        unregister(second)
    with pytest.raises(errors.NotAFunction):
        register(3)


def test_a_first_call_is_traced_lowered_and_compiled_in_some_time():
    heard = []
    monitoring.register_event_duration_secs_listener(Ear(heard))
    f = hx.jit(lambda x: x * 71.5)
    f(2.0)
    f(3.0)
    assert [(event.rpartition("/")[2], name["fun_name"]) for (event, _), name in heard] == [
        ("jaxpr_trace_duration", "jit(<lambda>)"), ("jaxpr_to_mlir_module_duration", "jit(<lambda>)"),
        ("backend_compile_duration", "jit(<lambda>)"),
    ]
    assert all(seconds > 0 for (_, seconds), _ in heard)


def test_the_cache_on_disk_tells_what_it_has(tmp_path):
    heard = []
    monitoring.register_event_listener(Ear(heard))
    with hx.configure(compilation_cache_dir=str(tmp_path)):
        for _ in range(2):
            hx.clear_caches()
            hx.jit(lambda x: x * 72.5)(2.0)
    assert [event.rpartition("/")[2] for (event,), _ in heard] == ["cache_misses", "cache_hits"]
