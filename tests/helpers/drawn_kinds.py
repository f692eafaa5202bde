"""Which kinds of values a strategy gives."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any

from hypothesis import Phase, find, settings
from hypothesis.errors import NoSuchExample
from hypothesis.strategies import SearchStrategy

Kind = Callable[[Any], Any]


def missing(strategy: SearchStrategy[Any], kinds: Mapping[Any, Kind], examples: int = 2000) -> set[Any]:
    """The names of those kinds of which a strategy gives no value among so many."""
    left = dict(kinds)

    def all_seen(value: Any) -> bool:
        for name in [name for name, kind in left.items() if kind(value)]:
            del left[name]
        return not left

    with suppress(NoSuchExample):
        find(strategy, all_seen, settings=settings(max_examples=examples, phases=[Phase.generate]))
    return {*left}


def equal_to(values: Iterable[Any], of: Callable[[Any], Any] = lambda value: value) -> dict[Any, Kind]:
    """The kinds that consist of one value each; ``of`` tells what is compared."""
    return {of(value): lambda found, value=value: of(found) == of(value) for value in values}
