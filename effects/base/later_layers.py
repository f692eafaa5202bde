"""``LaterLayers``: what a layer asks of one that is imported after it; ``displayed``: classes that have pages there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

Displayed = TypeVar("Displayed", bound=type)


class LaterLayers:
    """Functions and objects of later layers that earlier ones need; importing the package sets all of them.

    Imports go one way, from later layers to earlier ones; a value that a call needs from the other direction is an
    attribute of this class. Types are ``Any`` where their classes are of later layers than this one.
    """

    devices: Callable[[str | None], Sequence[Any]]
    """All devices of a platform, of all processes; None: of the default platform."""

    backend: Any
    """The ``ArrayBackend``: transfers, readiness and placement of device buffers."""

    imported: Callable[[Any], Any]
    """The array of an object with ``__dlpack__``, a copy."""

    placed: Callable[[Any, Any], Any]
    """``(x, sharding)``: the concrete array, committed to a sharding."""

    assembled: Callable[[Any, Any], Any]
    """``(sharding, x)``: ``make_array_from_process_local_data``."""

    own_part: Callable[[Any, Any], Any]
    """``(sharding, x)``: the inverse of ``assembled``."""

    resharded: Callable[[str, Any, Any], Any]
    """``(where, x, shardings)``: ``reshard(x, shardings)`` under the name ``where`` in errors."""

    hidden: Callable[[Any], Any]
    """A tree with its arrays hidden: their types leave it to the compiler how they are cut."""

    in_force: Callable[[Any, int], Any]
    """``(cut, rank)``: the cut over the mesh in force, whose manual axes it no longer names; without a cut,
    P(None, ...).
    """

    numpy: Any
    """The module that ``__array_namespace__`` of arrays returns."""

    lane_length: Callable[[Any], Any]
    """The value of a symbolic dimension as a weakly typed int32 array; performs ``SizeOf``."""

    scan_along_lane: Callable[..., tuple[list[Any], list[Any]]]
    """``(combine, first, xs, axis)``: a scan along a ragged axis, which gives the last and all prefixes."""

    answer_by_default: Callable[[Any, tuple[Any, ...]], Any]
    """The results of an effect with a default clause on concrete operands, where no handler has answered it."""

    scoped_block: Callable[[type], type]
    """The block of an effect that takes functions, with the fields that hold them."""

    perform_scoped: Callable[..., Any]
    """``(op, f, *xs)``: ``perform`` of such an effect: records the functions."""

    record: Callable[..., Any]
    """``(f, in_types, name)``: the program of a function of flat arrays."""

    jvp_program: Callable[[Any, Sequence[bool]], tuple[Any, tuple[bool, ...]]]
    """``(program, nonzero)``: the program from primals and the nonzero tangents to results and their nonzero tangents,
    and which results have one."""

    batch_program: Callable[..., tuple[Any, tuple[int | None, ...]]]
    """``(program, dims, size, axis_name, devices)``: the program over all lanes, and the mapped dimension of each
    result; ``devices``: the lanes are devices, each of which calls the host."""

    plan: Callable[[Any], Any] = staticmethod(lambda program: None)
    """The ``Plan`` by which a program that is evaluated may be compiled; None: NumPy is as fast."""

    log: Callable[[Any, str], Any]
    """``(value, name)``: logs a value from a backward rule."""

    collect_logs: Callable[[Any], Callable[..., tuple[Any, Any]]]
    """The function that gives the results of a pullback, and what its backward rules logged."""

    page: Callable[[Any], str]
    """A value of a ``displayed`` class as HTML, for notebooks."""

    treescope_node: Callable[[Any, str | None], Any]
    """``(x, path)``: such a value as a node of treescope's trees."""


def displayed(kind: Displayed) -> Displayed:
    """Decorator: notebooks show instances as HTML, ``x._repr_html_()``, and treescope shows them as nodes of its trees.

    The pages are written in the last layer, which is loaded when the first value is shown.
    """
    # a property, since treescope adds a box to what has a method of this name, beside its own pictures of arrays
    kind._repr_html_ = property(lambda x: partial(LaterLayers.page, x))  # type: ignore[attr-defined]
    kind.__treescope_repr__ = lambda x, path, render: LaterLayers.treescope_node(x, path)  # type: ignore[attr-defined]
    return kind
