"""Profiles hold what was annotated, in memory and in files."""

import gzip
import itertools
import json
import socket
from types import SimpleNamespace

import pytest
from jaxlib import _profiler

import handlax as hx
from handlax import errors, profiler
from handlax import numpy as hnp
from handlax.effects.base.watching import label_of
from handlax.lowering.compile.compile import COMPILED
from handlax.lowering.xla.profiler import executed, module_of


def events(data):
    return [event for plane in data.planes for line in plane.lines for event in line.events]


def work():
    with profiler.TraceAnnotation("multiply", size=3):
        return hx.jit(lambda x: x * 2.0)(hnp.ones(3)).block_until_ready()


def test_a_profile_has_what_is_annotated_while_it_is_recorded():
    work()
    with profiler.trace() as session:
        assert session.is_running and session.profile_data is None
        work()
        with profiler.StepTraceAnnotation("train", step_num=7):
            profiler.annotate_function(work, name="annotated")()
    assert not session.is_running
    named = {event.name: event for event in events(session.profile_data)}
    assert {"multiply", "train", "annotated"} <= named.keys()
    assert sum(event.name == "multiply" for event in events(session.profile_data)) == 2
    assert named["train"].duration_ns >= named["annotated"].duration_ns >= named["multiply"].duration_ns > 0


def test_a_program_has_the_number_that_profiles_give_it():
    f, g = lambda x: x * 37.0, lambda x: x - 37.0
    with profiler.trace() as session:
        hx.jit(f)(hx.jit(g)(1.0)).block_until_ready()
    named = {loaded.function: module_of(loaded.executable.loaded) for loaded in COMPILED.entries.values()}
    found = [(each.module, each.number) for each in executed(session.profile_data) if each.module]
    assert [named[label_of(each, "jit(<lambda>)")] for each in (g, f)] == found and found[0] != found[1]


class Module:
    """A module of jaxlib's with this message."""

    name = "jit_f"

    def __init__(self, *message):
        self.as_serialized_hlo_module_proto = lambda: bytes(message)


@pytest.mark.parametrize(("message", "number"), [
    ((), 0),
    ((0x28, 0x05), 5),
    ((0x0A, 0x02, 0x28, 0x09, 0x28, 0xAC, 0x02), 300),  # after a text
    ((0x10, 0x07, 0x28, 0x01), 1),  # after an integer
    ((0x0A, 0x01, 0x28), 0),
])
def test_a_number_is_read_from_the_message(message, number):
    assert module_of(SimpleNamespace(hlo_modules=lambda: [Module(*message)])) == ("jit_f", number)


def test_copies_that_are_numbered_anew_have_no_number():
    counted = itertools.count()
    assert module_of(SimpleNamespace(hlo_modules=lambda: [Module(0x28, next(counted))])) == ("jit_f", None)


def test_a_profile_is_written_to_its_folder(tmp_path):
    session = profiler.start_trace(tmp_path, create_perfetto_trace=True)
    work()
    data = profiler.stop_trace()
    assert data is session.profile_data
    (plane,), (trace,) = tmp_path.rglob("*.xplane.pb"), tmp_path.rglob("perfetto_trace.json.gz")
    assert [event.name for event in events(profiler.ProfileData.from_file(str(plane)))].count("multiply") == 1
    assert "multiply" in [event.get("name") for event in json.loads(gzip.decompress(trace.read_bytes()))["traceEvents"]]
    if hasattr(_profiler, "export_to_xprof"):
        profiler.export_profile_data(session, tmp_path / "again", session_id="mine")
        profiler.export_profile_data(data, tmp_path / "again", create_perfetto_trace=True, session_id="other")
        assert (tmp_path / "again/plugins/profile/mine").is_dir()
        assert [*tmp_path.glob("again/plugins/profile/other/perfetto_trace.json.gz")]


def test_options_say_what_is_recorded_of_the_host(tmp_path):
    options = profiler.ProfileOptions()
    options.host_tracer_level = 0
    with profiler.trace(tmp_path, profiler_options=options) as session:
        work()
    assert "multiply" not in [event.name for event in events(session.profile_data)]
    assert [*tmp_path.rglob("*.xplane.pb")] and not [*tmp_path.rglob("perfetto_trace.json.gz")]


def test_what_is_begun_twice_or_never_is_refused(tmp_path):
    with pytest.raises(RuntimeError, match="no profile is recorded"):
        profiler.stop_trace()
    with profiler.trace(), pytest.raises(errors.ProfilerMisuse, match="one profile is recorded at a time"):
        profiler.start_trace(tmp_path)
    with pytest.raises(errors.BadArgument, match="a profile is needed"):
        profiler.export_profile_data(profiler.ProfileSession(), tmp_path)
    with pytest.raises(errors.BadArgument, match="create_perfetto_link"):
        profiler.start_trace(tmp_path, create_perfetto_link=True)
    with pytest.raises(ValueError, match="no profiler server"):
        profiler.stop_server()


def test_one_server_at_a_time():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    profiler.start_server(port, requires_backend=False)
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=10):
            pass
        with pytest.raises(errors.ProfilerMisuse, match="one profiler server"):
            profiler.start_server(port)
    finally:
        profiler.stop_server()


def test_the_memory_of_devices_is_written_for_pprof(tmp_path):
    x = hx.device_put(hnp.ones((1000, 1000)), hx.devices()[0])
    profiler.save_device_memory_profile(tmp_path / "memory.prof")
    names = (tmp_path / "memory.prof").read_bytes()
    assert b"buffer" in names and b"bytes" in names and x.shape == (1000, 1000)


def test_annotations_keep_the_function():
    @profiler.annotate_function
    def double(x):
        """Twice x."""
        return 2 * x

    assert double(4) == 8 and double.__name__ == "double" and double.__doc__ == "Twice x."
