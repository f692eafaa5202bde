"""Profiles: what the host and the devices did while a program was executed, recorded by XLA's profiler.

    with trace("/tmp/profile"):
        f(x).block_until_ready()

A recorded profile is in memory, as ``ProfileData``: planes (a host, a device) of lines (a thread, a stream) of events.
Those written to a folder are read by XProf and TensorBoard, and by https://ui.perfetto.dev.
"""

from __future__ import annotations

import os
import pathlib
import shutil
import warnings
from collections.abc import Callable, Container, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeVar

from jaxlib import _profile_data

from ...effects.base.errors import BadArgument, ProfilerMisuse
from ...effects.base.wrapping import name_of, wraps
from ..clients.jaxlib_modules import _profiler
from ..clients.platforms import backend as platform_backend

F = TypeVar("F", bound=Callable[..., Any])

ProfileData = _profile_data.ProfileData
ProfileEvent = _profile_data.ProfileEvent
ProfileLine = _profile_data.ProfileLine
ProfilePlane = _profile_data.ProfilePlane
ProfileOptions = _profiler.ProfileOptions
"""The options of jaxlib's profiler: what of the host, of Python and of devices is traced."""


class TraceAnnotation(_profiler.TraceMe):
    """Within it, ``with TraceAnnotation("work"):``, is one event of this name on the line of the thread."""


class StepTraceAnnotation(TraceAnnotation):
    """Within it is one step of a training, by which viewers group what the devices did: ``step_num`` is its number."""

    def __init__(self, name: str, **kwargs: Any):
        super().__init__(name, _r=1, **kwargs)  # the profiler's mark of what begins anew


def annotate_function(func: F, name: str | None = None, **decorator_kwargs: Any) -> F:
    """``func``, each call of which is an event called ``name``, by default as the function is.

    >>> annotate_function(abs)(-1)
    1
    """
    called = name_of(func) if name is None else name

    @wraps(func)
    def annotated(*args: Any, **kwargs: Any) -> Any:
        with TraceAnnotation(called, **decorator_kwargs):
            return func(*args, **kwargs)

    return annotated


class _Recording:
    """The session that records, of which the profiler has one at a time, and the server of the process."""

    session: ProfileSession | None = None
    server: Any = None


class ProfileSession:
    """A profile from ``start`` to ``stop``, as calls or as a ``with`` block; written to ``log_dir``, if there is one.

    Raises: BadArgument: ``create_perfetto_link``.
    """

    def __init__(
        self,
        log_dir: os.PathLike[str] | str | None = None,
        create_perfetto_link: bool = False,
        create_perfetto_trace: bool = False,
        profiler_options: Any = None,
    ):
        _check_link(create_perfetto_link)
        self._folder = log_dir
        self._perfetto = create_perfetto_trace
        self._options = profiler_options
        self._session: Any = None
        self._data: Any = None

    @property
    def is_running(self) -> bool:
        """Whether it records."""
        return self._session is not None

    @property
    def profile_data(self) -> Any:
        """What was recorded; None before it was stopped."""
        return self._data

    def start(self) -> ProfileSession:
        """Record from now on. Raises: ProfilerMisuse: a session records already."""
        if _Recording.session is not None:
            raise ProfilerMisuse(
                "start_trace: one profile is recorded at a time, got another one within hx.profile, "
                "python -m handlax.explain, trace or start_trace.",
                hint="the outer one has what is done within it, too; stop_trace ends that of start_trace.",
            )
        platform_backend()  # devices are recorded from their start
        self._session = _profiler.ProfilerSession(self._options or ProfileOptions())
        _Recording.session = self
        return self

    def stop(self) -> Any:
        """The profile. Raises: ProfilerMisuse: it does not record."""
        if self._session is None:
            raise ProfilerMisuse("stop_trace: no profile is recorded.", hint="start_trace begins one.")
        session, self._session, _Recording.session = self._session, None, None
        recorded = session.stop()
        if self._folder is not None:
            session.export(recorded, os.fspath(self._folder))
            if self._perfetto:
                _copy_for_perfetto(self._folder)
        self._data = ProfileData.from_serialized_xspace(recorded)
        return self._data

    def export_profile_data(
        self,
        log_dir: os.PathLike[str] | str,
        create_perfetto_link: bool = False,
        create_perfetto_trace: bool = False,
        session_id: str | None = None,
    ) -> None:
        """``export_profile_data`` of what was recorded."""
        export_profile_data(self, log_dir, create_perfetto_link, create_perfetto_trace, session_id)

    def __enter__(self) -> ProfileSession:
        return self.start()

    def __exit__(self, *error: object) -> None:
        self.stop()


class Execution(NamedTuple):
    """An instruction that a device executed: the module, its number in the process, the instruction, and seconds."""

    module: str
    number: int
    instruction: str
    seconds: float


def module_of(executable: Any) -> tuple[str, int | None]:
    """The name and number that a profile gives to a program; None: the number is not known.

    ``executable`` is jaxlib's. A plugin that gives a copy of the program each time may number the copies anew.
    """
    one, again = executable.hlo_modules()[0], executable.hlo_modules()[0]
    number = _number(one.as_serialized_hlo_module_proto())
    return one.name, number if number == _number(again.as_serialized_hlo_module_proto()) else None


def _number(module: bytes) -> int:
    """Field 5 of a message ``HloModuleProto``, ``id``: 0 where it is left out."""
    place = 0
    while place < len(module):
        tag, place = _varint(module, place)
        value, place = _varint(module, place)
        if tag == 5 << 3:
            return value
        place += value if tag & 7 == 2 else 0  # the length of a text or message
    return 0


def _varint(message: bytes, place: int) -> tuple[int, int]:
    """An integer of a protocol buffer, and the place after it: seven bits in each byte, the lowest first."""
    value = shift = 0
    while True:
        byte = message[place]
        value, shift, place = value | (byte & 127) << shift, shift + 7, place + 1
        if byte < 128:
            return value, place


def executed(profile: Any, names: Container[str] | None = None) -> list[Execution]:
    """The executions that a profile recorded.

    Texts are empty, and numbers -1, where the profile does not tell. ``names``: of a host only events of these names
    are looked into; an event is called as its instruction, and those of Python are many.
    """
    found = []
    with warnings.catch_warnings():  # where warnings are errors, that of jaxlib's type of stats ends the process
        warnings.simplefilter("ignore", DeprecationWarning)
        for plane in profile.planes:
            of_device = plane.name.startswith("/device:")
            for event in [event for line in plane.lines for event in line.events]:
                if names is None or of_device or event.name in names:
                    stats = dict(event.stats)
                    module = str(stats.get("hlo_module", "")).partition("(")[0]
                    number = stats.get("program_id")
                    number = number if isinstance(number, int) else -1
                    found.append(Execution(module, number, str(stats.get("hlo_op", "")), event.duration_ns * 1e-9))
    return found


def _check_link(asked: bool) -> None:
    if asked:
        raise BadArgument(
            "profiler: create_perfetto_link must be False: no page is served here.",
            hint="create_perfetto_trace=True writes a file that https://ui.perfetto.dev opens.",
        )


def _copy_for_perfetto(log_dir: os.PathLike[str] | str) -> None:
    """Copy the last trace of events in a folder to the name that JAX gives it."""
    traces = sorted(pathlib.Path(log_dir).glob("plugins/profile/*/*.trace.json.gz"), key=os.path.getmtime)
    if traces:
        shutil.copyfile(traces[-1], traces[-1].with_name("perfetto_trace.json.gz"))


def start_trace(
    log_dir: os.PathLike[str] | str,
    create_perfetto_link: bool = False,
    create_perfetto_trace: bool = False,
    profiler_options: Any = None,
) -> ProfileSession:
    """Record a profile until ``stop_trace``, which writes it to ``log_dir``.

    Args:
        create_perfetto_trace: whether ``perfetto_trace.json.gz`` is written too, for https://ui.perfetto.dev.
        profiler_options: ``ProfileOptions``: what is recorded of the host and of Python.

    Raises: ProfilerMisuse: a profile is recorded already. BadArgument: ``create_perfetto_link``.
    """
    return ProfileSession(log_dir, create_perfetto_link, create_perfetto_trace, profiler_options).start()


def stop_trace() -> Any:
    """End the profile that is recorded, and return it. Raises: ProfilerMisuse: none is."""
    return (_Recording.session or ProfileSession()).stop()


@contextmanager
def trace(
    log_dir: os.PathLike[str] | str | None = None,
    create_perfetto_link: bool = False,
    create_perfetto_trace: bool = False,
    profiler_options: Any = None,
) -> Iterator[ProfileSession]:
    """Record a profile of a ``with`` block: afterwards in ``profile_data`` of its value, and in ``log_dir``.

    >>> with trace() as session, TraceAnnotation("work"):
    ...     total = sum(range(1000))
    >>> [event.name for plane in session.profile_data.planes for line in plane.lines
    ...  for event in line.events if event.name == "work"]
    ['work']
    """
    with ProfileSession(log_dir, create_perfetto_link, create_perfetto_trace, profiler_options) as session:
        yield session


def export_profile_data(
    profile_data: Any,
    log_dir: os.PathLike[str] | str,
    create_perfetto_link: bool = False,
    create_perfetto_trace: bool = False,
    session_id: str | None = None,
) -> None:
    """Write a profile, or that of a session that was stopped, to a folder, under ``session_id`` or the time.

    Raises: BadArgument: there is no profile yet. ProfilerMisuse: this version of jaxlib writes those of ``log_dir``
    alone.
    """
    _check_link(create_perfetto_link)
    data = profile_data.profile_data if isinstance(profile_data, ProfileSession) else profile_data
    if not isinstance(data, ProfileData):
        raise BadArgument(f"export_profile_data: a profile is needed, got {type(data).__name__}.", hint="stop() first.")
    write = getattr(_profiler, "export_to_xprof", None)
    if write is None:
        hint = "trace(log_dir) writes what it records."
        raise ProfilerMisuse("export_profile_data: jaxlib 0.11 or later is needed.", hint=hint)
    write(data, os.fspath(log_dir), session_id or "")
    if create_perfetto_trace:
        _copy_for_perfetto(log_dir)


def start_server(port: int, requires_backend: bool = True) -> Any:
    """Serve profiles at a port of this machine, which XProf and TensorBoard ask for, until ``stop_server``.

    Raises: ProfilerMisuse: the process has a server.
    """
    if _Recording.server is not None:
        raise ProfilerMisuse("start_server: one profiler server is active at a time.", hint="stop_server ends it.")
    if requires_backend:
        platform_backend()
    _Recording.server = _profiler.start_server(port)
    return _Recording.server


def stop_server() -> None:
    """End the server of profiles. Raises: ProfilerMisuse: there is none."""
    if _Recording.server is None:
        raise ProfilerMisuse("stop_server: no profiler server is active.", hint="start_server(port) starts one.")
    _Recording.server = None


def register_subprocess(pid: int, port: int) -> Callable[[], None]:
    """Have profiles of this process contain those of another one, whose server listens at ``port``.

    Returns the function that undoes it. Raises: RuntimeError: there is no such server.
    """
    return _profiler.register_subprocess(pid, port)


def device_memory_profile(backend: str | None = None) -> bytes:
    """What lies in the memory of the devices now, as bytes that the tool ``pprof`` reads.

    >>> len(device_memory_profile()) > 0
    True
    """
    return bytes(platform_backend(backend).client.heap_profile())


def save_device_memory_profile(filename: os.PathLike[str] | str, backend: str | None = None) -> None:
    """Write ``device_memory_profile`` to a file."""
    pathlib.Path(filename).write_bytes(device_memory_profile(backend))
