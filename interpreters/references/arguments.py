"""References as arguments: each becomes a fresh reference in the called function, and its final value is written back.

    f(ref)  ==  y, where  y, values = pure_of(f, positions)(ref[...]);  ref[...] = values[position]

So a function of references is traced by their types and transformed as a pure function.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ...effects.base.errors import BadCall
from ...effects.base.wrapping import wraps
from ...effects.core.arrays import as_array
from ...effects.trees import pytrees
from .reference import LENT, Ref, get, reference_here, set, usable


def positions_of(leaves: Sequence[Any]) -> tuple[int, ...]:
    """The positions of the references among ``leaves``."""
    return tuple([i for i, x in enumerate(leaves) if isinstance(x, Ref)])


def pure_of(fun: Callable[..., Any], positions: tuple[int, ...]) -> Callable[..., Any]:
    """``fun`` as a function of values in place of the references that are its argument leaves at ``positions``.

    It returns the result of ``fun``, and by position the final values of the references that ``fun`` wrote.
    """

    @wraps(fun)
    def pure(*args: Any, **kwargs: Any) -> Any:
        leaves, tree = pytrees.flatten((args, kwargs))
        refs = {i: reference_here(as_array(leaves[i]), argument=True) for i in positions}
        before = {i: get(ref) for i, ref in refs.items()}
        args, kwargs = pytrees.unflatten(tree, [refs.get(i, x) for i, x in enumerate(leaves)])
        y = fun(*args, **kwargs)
        last = {i: get(ref) for i, ref in refs.items()}
        return y, {i: value for i, value in last.items() if value is not before[i]}

    return pure


def call_pure(
    pure: Callable[..., Any], args: Any, kwargs: Any, positions: Sequence[int], place: Any = lambda i, value: value
) -> Any:
    """Call a function made by ``pure_of`` on the references' values; write ``place(i, value)`` back to each.

    Raises: BadCall: one reference is passed twice, or read from the surroundings too.
    """
    leaves, tree = pytrees.flatten((args, kwargs))
    refs: dict[int, Ref] = {i: leaves[i] for i in positions}
    if len({*refs.values()}) < len(refs):
        raise BadCall(
            f"ref: a reference must be passed once in a call, got {len({*refs.values()})} for {len(refs)} arguments.",
            hint="pass it once; the function may read and write it as often as it likes.",
        )
    args, kwargs = pytrees.unflatten(tree, [get(refs[i]) if i in refs else x for i, x in enumerate(leaves)])
    around = LENT.get()
    try:
        LENT.set(LENT.get().union(refs.values()))
        y, values = pure(*args, **kwargs)
    finally:
        LENT.set(around)
    for i, value in values.items():
        set(refs[i], None, place(i, value))
    return y


def check_usable(refs: Iterable[Ref]) -> None:
    """Check that the references a cached trace uses may be used now. Raises: DeletedArray, BadCall, EscapedBox."""
    for ref in refs:
        usable(ref)
