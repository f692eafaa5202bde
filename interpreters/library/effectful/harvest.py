"""Harvest: a program names intermediate values; handlers collect (reap) or replace (plant) them.

    reap(f)(x) == {"h": h}                if f sows h under the name "h"
    plant(f)({"h": h2}, x)                f(x) with h2 in place of h

Source: the transformation of this name in Oryx (Saberian et al., 2020).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any

from ....effects.base.errors import BadArgument, TreeMismatch, need_function
from ....effects.base.stack import current, site
from ....effects.base.tracebacks import unnamed_boundary
from ....effects.base.wrapping import wraps
from ....effects.core.arrays import as_array, perform
from ....effects.core.operation import effect
from ....effects.trees import pytrees
from ...handlers.handle import handle
from ...handlers.handler import handler
from ...handlers.state_movements import When, tally
from .harvest_state import PlantedRows, SownLog, SownPath, lane_axes, value_at
from .log_entries import SownEntry, entries_of, merged

if TYPE_CHECKING:
    from ....effects.trees.cpp_pytrees import PyTreeDef

MODES = ("strict", "append", "clobber")
_LOGS = "logs of backward rules"


# the identity, on values with a name
@effect(vmap="per_lane")
class Sow:
    path: SownPath
    tag: Hashable
    mode: str
    tree: PyTreeDef
    lanes: tuple[int, ...] = ()  # the leading mapped axes of the values, each with the loops that it has crossed
    scoped: int = 0  # of the named scopes at its site: how many of the innermost are in the path

    def result_type(op, *leaves):
        return leaves

    def evaluate(op, *leaves):
        return leaves

    def of_all_lanes(op, crossed):
        return dataclasses.replace(op, lanes=(crossed, *op.lanes))

    def jvp(op, primals, tangents):
        return current().answer(op, primals), tangents  # the derivative of the identity

    def lower(op, emit, *leaves):
        return leaves


def sow(value: Any, name: str, *, tag: Hashable = None, mode: str = "strict") -> Any:
    """Name a value, a tree of arrays; returns the value, or the one planted in its place.

        sow(x, name) == x                         without a ``plant`` around

    Its derivative is that of the identity.

    Args:
        tag: only ``reap`` and ``plant`` with this tag see it.
        mode: a second value of the same name: ``strict`` refuses it, ``append`` stacks it, ``clobber`` replaces the
            first value. In a ``vmap`` this holds in each lane.

    >>> sow(2.0, "h")
    Array(2., dtype=float32, weak_type=True)
    """
    if mode not in MODES:
        raise BadArgument(f"sow: the mode must be one of {MODES}, got {mode!r}.")
    if not isinstance(name, str):
        raise BadArgument(f"sow: the name must be a string, got {name!r}.")
    leaves, tree = pytrees.flatten(value)
    if not leaves:
        return value
    results = perform(Sow((name,), tag, mode, tree), *[as_array(x) for x in leaves])
    return pytrees.unflatten(tree, results)


def nest(f: Callable[..., Any], *, scope: str | None = None) -> Callable[..., Any]:
    """``f`` with its sown names nested in ``scope``, or each in the ``named_scope``s of ``f`` in which it is sown.

        reap(nest(f, scope="a"))(x) == {"a": reap(f)(x)}
        nest(f) == nest(f, scope="a")                         where f is named_scope("a")(g), and g has no scopes

    >>> from handlax import named_scope
    >>> reap(nest(named_scope("encoder")(lambda x: sow(x, "h"))))(3.0)
    {'encoder': {'h': Array(3., dtype=float32, weak_type=True)}}
    """
    need_function("nest", f)
    if not isinstance(scope, str | None):
        raise BadArgument(f"nest: the scope must be a string, got {scope!r}.", hint="nest(f) takes the named scopes.")

    @wraps(f)
    @unnamed_boundary
    def nested(*args: Any, **kwargs: Any) -> Any:
        return handle(handler({Sow: InNamedScopes(len(site().scopes))}))(f)(*args, **kwargs)

    return nested if scope is None else wraps(f)(handle(handler({Sow: InScope(scope)}))(f))


@dataclasses.dataclass(frozen=True)
class InScope:
    """The clause that puts a scope before the path of a sown name."""

    scope: str

    def __call__(self, op: Any, *leaves: Any) -> Any:
        return perform(dataclasses.replace(op, path=(self.scope, *op.path)), *leaves)


@dataclasses.dataclass(frozen=True)
class InNamedScopes:
    """The clause that puts named scopes before the path of a sown name: those at its site but the ``outer`` outermost,
    and but the innermost ones that the path has already.
    """

    outer: int

    def __call__(self, op: Any, *leaves: Any) -> Any:
        scopes = site().scopes[self.outer :]
        path = (*scopes[: len(scopes) - op.scoped], *op.path)
        return perform(dataclasses.replace(op, path=path, scoped=len(scopes)), *leaves)


def _sows(tag: Hashable) -> Callable[[Any], bool]:
    """The function that says whether an operation sows under ``tag``."""
    return lambda op: type(op) is Sow and op.tag == tag


def plant(f: Callable[..., Any], *, tag: Hashable = None) -> Callable[..., Any]:
    """``plant(f)(values, *args)`` is ``f(*args)`` with the values that it sows replaced by those of the same names.

        plant(f)(reap(f)(*args), *args) == f(*args)

    ``values`` is a dictionary by name, with one dictionary inside another for nested scopes. The values of a
    loop's iterations are stacked, as in the result of ``reap``; an unstacked value is used in every iteration.

    Raises: BadArgument: no value is sown under a name. DTypeMismatch: a value has another type than the sown one.
    """
    need_function("plant", f)

    @wraps(f)
    @unnamed_boundary
    def planted(values: Any, *args: Any, **kwargs: Any) -> Any:
        used: set[SownPath] = set()
        values = pytrees.map(lambda x: x.value if type(x) is When else x, values, is_leaf=lambda x: type(x) is When)

        def replace(inner: Any, op: Any, *leaves: Any) -> Any:
            value = value_at(inner, op.path) if op.tag == tag else None
            if value is None:
                return inner, perform(op, *leaves)
            used.add(op.path)
            new, tree = pytrees.flatten(value)
            if tree != op.tree:
                raise TreeMismatch(f"plant: {_quoted(op.path)} is a tree {op.tree}, got {tree}.")
            return inner, tuple(map(as_array, new))

        _, y = handle(handler({Sow: replace}, moves=PlantedRows(_sows(tag))), values)(f)(*args, **kwargs)
        unused = [path for path in _paths(values) if not any(path[:i] in used for i in range(1, len(path) + 1))]
        if unused:
            names = ", ".join(map(_quoted, unused))
            raise BadArgument(f"plant: nothing is sown under {names}.", hint="look at reap(f).")
        return y

    return planted


def reap(f: Callable[..., Any], *, tag: Hashable = None) -> Callable[..., Any]:
    """``reap(f)(*args)`` is the dictionary, by name, of the values that ``f`` sows.

        reap(vmap(f)) == vmap(reap(f))

    Values sown in a loop or in lanes are stacked as the loop's or ``vmap``'s results are. One sown in only some
    branches of a ``cond`` is ``When(taken, value)``; so is the last value of a loop of unknown length, in ``clobber``
    mode. In mode ``append`` values are stacked along one axis, that of the outermost loop.

    Raises: BadArgument: a name is sown twice in ``strict`` mode. CannotCross: a name is sown in a loop of unknown
    length, and its mode is not ``clobber``.

    >>> reap(lambda x: sow(x + 1.0, "h") * 2.0)(3.0)
    {'h': Array(4., dtype=float32, weak_type=True)}
    """
    harvested = call_and_reap(f, tag=tag)
    return wraps(f)(unnamed_boundary(lambda *args, **kwargs: harvested(*args, **kwargs)[1]))


def call_and_reap(f: Callable[..., Any], *, tag: Hashable = None) -> Callable[..., Any]:
    """``(f(*args), reap(f)(*args))``, with ``f`` called once."""
    need_function("reap", f)
    return _reaper(f, tag, _sown_twice)


def log(value: Any, name: str) -> Any:
    """What a backward rule logs under a name: a value that it sows, with a tag that no user has."""
    return sow(value, name, tag=_LOGS)


def collect_logs(pull: Callable[..., Any]) -> Callable[..., Any]:
    """``collect_logs(pull)(ct)`` is ``(pull(ct), logs)``: the dictionary of what backward rules log.

    Raises: BadArgument: two calls of rules log under one name.
    """
    return _reaper(pull, _LOGS, _logged_twice)


def _sown_twice(name: str, times: int) -> BadArgument:
    return BadArgument(
        f"reap: {name} is sown {times} times, but its mode is strict.",
        hint="give other names, nest(f, scope=...), or sow(..., mode='append').",
    )


def _logged_twice(name: str, times: int) -> BadArgument:
    return BadArgument(
        f"with_logs: a name must be logged by one call of a backward rule, {name} is by {times}.",
        hint="pass the name to each call, as an argument in nondiff_argnums, which the backward rule gets first.",
    )


def _reaper(f: Callable[..., Any], tag: Hashable, twice: Callable[[str, int], Exception]) -> Callable[..., Any]:
    """``call_and_reap``, with the error ``twice(name, times)`` of a name that is sown more often than its mode allows.
    """

    def collect(log: Any, op: Any, *leaves: Any) -> Any:
        if op.tag != tag:
            return log, perform(op, *leaves)
        return (*log, SownEntry(list(leaves), op.path, op.mode, op.tree, lane_axes(op, leaves[0].type))), leaves

    def count(op: Any, *types: Any) -> Any:
        return {op.path: (1, 1)} if op.tag == tag else {}

    log = handle(handler({Sow: collect}, moves=SownLog(_sows(tag))), ())
    counts = handle(handler({Sow: count}, moves=tally({}, _then, _choose, _repeat)), {})

    @wraps(f)
    @unnamed_boundary
    def reaped(*args: Any, **kwargs: Any) -> Any:
        entries, (times, y) = log(counts(f))(*args, **kwargs)
        return y, _nested({path: _value_of(path, times[path], entries, twice) for path in times})

    return reaped


def harvest(f: Callable[..., Any], *, tag: Hashable = None) -> Callable[..., Any]:
    """``harvest(f)(values, *args)`` is ``(y, reaped)``: ``values`` are planted, and all other sown values reaped."""
    return call_and_reap(plant(f, tag=tag), tag=tag)


def _then(a: dict[SownPath, Any], b: dict[SownPath, Any]) -> dict[SownPath, Any]:
    """The tally, (least, most) times that each name is sown, of two programs in sequence."""
    return {path: _pairs(a, b, path, lambda i, j: i + j) for path in [*a, *[p for p in b if p not in a]]}


def _choose(a: dict[SownPath, Any], b: dict[SownPath, Any]) -> dict[SownPath, Any]:
    """The tally, (least, most) times that each name is sown, of one of two branches."""
    paths = [*a, *[path for path in b if path not in a]]
    return {path: (_pairs(a, b, path, min)[0], _pairs(a, b, path, max)[1]) for path in paths}


def _repeat(a: dict[SownPath, Any], n: int | None) -> dict[SownPath, Any]:
    """The tally of a loop: stacked values count as one; the least is 0 if the number of iterations may be."""
    return a if n else {path: (0, most) for path, (_, most) in a.items()}


def _pairs(a: Any, b: Any, path: SownPath, f: Callable[[int, int], int]) -> tuple[int, int]:
    """The (least, most) times that a name is sown in two programs, each combined by ``f``."""
    (i, j), (k, l) = a.get(path, (0, 0)), b.get(path, (0, 0))
    return f(i, k), f(j, l)


def _value_of(path: SownPath, times: tuple[int, int], log: Sequence[Any], twice: Callable[..., Exception]) -> Any:
    """The reaped value of one name, from its entries in the log. Raises: BadArgument: their modes do not allow it."""
    least, most = times
    parts = entries_of(log, path)
    modes = {sown.mode for _, sown in parts}
    if len(modes) > 1:
        raise BadArgument(f"reap: {_quoted(path)} is sown in several modes, {', '.join(sorted(modes))}.")
    if modes == {"strict"} and most > 1:
        raise twice(_quoted(path), most)
    if any(sown.tree != parts[0][1].tree for _, sown in parts):
        raise TreeMismatch(f"reap: what is sown under {_quoted(path)} must have one structure.")
    return merged(_quoted(path), parts, least > 0)


def _nested(values: dict[SownPath, Any]) -> dict[str, Any]:
    """Values by path as nested dictionaries, one level for each scope."""
    root: dict[str, Any] = {}
    for path, value in values.items():
        inner = root
        for scope in path[:-1]:
            inner = inner.setdefault(scope, {})
        if path[-1] in inner:
            raise BadArgument(f"reap: {_quoted(path)} is a value and a scope.", hint="give it another name.")
        inner[path[-1]] = value
    return root


def _paths(values: Any, path: SownPath = ()) -> list[SownPath]:
    """The paths of the values in nested dictionaries; a value may itself be a dictionary."""
    if not isinstance(values, dict):
        return [path]
    return [inner for name in values for inner in _paths(values[name], (*path, name))]


def _quoted(path: SownPath) -> str:
    return repr("/".join(path))
