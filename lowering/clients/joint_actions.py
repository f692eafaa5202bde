"""What the processes of one program do together, in which order: each keeps logs, and the logs are compared.

    logs.note({0, 1}, Joint("jit_step", number, site))      before processes 0 and 1 launch a program together
    logs.shared_with(1).differs_at(*count_and_digest)       whether process 1 did the same until then

The law: any two processes do what they do together in the same order. A launch of another program is not noticed by the
runtime where its collectives have the same sizes: it mixes the values of both.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from ...effects.base.errors import ProcessesDiffer
from ...effects.base.lazy_module import LazyModule
from ...effects.base.source_locations import RawSite, Site
from .jaxlib_modules import Client, RuntimeFailure

if TYPE_CHECKING:  # a process that is alone does not need it
    import json
else:
    json = LazyModule("json")

_KEPT = 4096
"""The last joint actions of a log, which say what differed; before them only that something did."""
_MODULUS = 2**61 - 1
_COUNTS = "handlax/counts/"
_DIFFERS = "handlax/differs/"
_PATIENCE = 6000  # milliseconds that another process has to say what it did


class Joint(NamedTuple):
    """A joint action: what is done, for messages, a number that is the same in all processes, and where."""

    what: str
    number: int
    site: RawSite


class ActionLog:
    """The joint actions with some other processes, which are the same with each: how many, and a digest of them all.

    Two logs with equal counts and digests are of the same actions, but with a probability of 2**-61.
    """

    __slots__ = ("count", "digest", "last")

    def __init__(self, count: int = 0, digest: int = 0, last: Iterable[tuple[int, Joint]] = ()):
        self.count, self.digest, self.last = count, digest, deque(last, _KEPT)

    def copy(self) -> ActionLog:
        return ActionLog(self.count, self.digest, self.last)

    def note(self, action: Joint) -> None:
        self.count += 1
        self.digest = digest = (self.digest * 1_000_003 + action.number + 1) % _MODULUS
        self.last.append((digest, action))

    def differs_at(self, count: int, digest: int) -> bool:
        """Whether the first ``count`` actions have another digest; False where that is to come, or long ago."""
        behind = self.count - count
        if behind == 0:
            return self.digest != digest
        return 0 < behind < len(self.last) and self.last[-1 - behind][0] != digest

    def recent(self) -> list[tuple[int, int, str, str]]:
        """The last actions: the number of each, from 1, its digest, what is done, and where."""
        last = [*self.last]
        return [(number, digest, action.what, str(Site(*action.site)))
                for number, (digest, action) in enumerate(last, self.count - len(last) + 1)]


def first_difference(
    mine: Sequence[Sequence[object]], others: Sequence[Sequence[object]]
) -> tuple[Sequence[object], Sequence[object]] | None:
    """The first joint action that two processes did differently: what each of them did as its action of that number.

    None: they did the same in all that both remember. The arguments are ``ActionLog.recent()`` of either process.
    """
    theirs: Mapping[object, Sequence[object]] = {number: (number, *rest) for number, *rest in others}
    for action in mine:
        other = theirs.get(action[0])
        if other is not None and other[1] != action[1]:
            return action, other
    return None


class JointActions:
    """The logs of a process by the others: processes that took part in the same actions share one."""

    def __init__(self, own: int):
        self.own = own
        self._logs: dict[int, ActionLog] = {}  # by the index of the other process
        self._groups: dict[frozenset[int], tuple[ActionLog, ...]] = {}
        self._changing = threading.RLock()

    def note(self, group: frozenset[int], action: Joint) -> None:
        """Note an action of the processes of a group."""
        with self._changing:
            for log in self._groups[group] if group in self._groups else self._add(group):
                log.note(action)

    def _add(self, group: frozenset[int]) -> tuple[ActionLog, ...]:
        """The logs of a new group: one that processes outside of it share is split."""
        new = ActionLog()
        outside = {id(log) for index, log in self._logs.items() if index not in group}
        split: dict[int, ActionLog] = {}
        for index in group - {self.own}:
            log = self._logs.get(index, new)
            self._logs[index] = split.setdefault(id(log), log.copy()) if id(log) in outside else log
        self._groups = {known: self._of(known - {self.own}) for known in [*self._groups, group]}
        return self._groups[group]

    def _of(self, indices: Iterable[int]) -> tuple[ActionLog, ...]:
        return tuple({id(log): log for index in indices for log in [self._logs[index]]}.values())

    def shared_with(self, index: int) -> ActionLog:
        """The log of what this process and another one have done together."""
        return self._logs.get(index) or ActionLog()

    def counts(self) -> list[tuple[list[int], int, int]]:
        """Of each log the other processes, the count, and the digest."""
        with self._changing:
            return [([index for index, known in self._logs.items() if known is log], log.count, log.digest)
                    for log in self._of(self._logs)]

    def neighbours(self) -> set[int]:
        """The indices of the processes with which this one compares its logs: in each group of processes that have
        acted together, sorted by index, the one before it and the one after it.
        """
        found = set[int]()
        for group in [*self._groups]:
            members = sorted(group)
            at = members.index(self.own)
            found |= {members[at - 1], members[(at + 1) % len(members)]}
        return found - {self.own}


def count_with(index: int, counts: Iterable[tuple[Sequence[int], int, int]]) -> tuple[int, int]:
    """The count and the digest of what another process, of which these are the ``counts``, did with ``index``."""
    return next(((count, digest) for indices, count, digest in counts if index in indices), (0, 0))


ActionDifference = Callable[[], ProcessesDiffer]
"""Makes the error that says what two processes did differently first."""


class ActionComparison:
    """The comparison of a process's logs with those of its neighbours, by the table of the coordinator.

    Each tells its counts before the roll is called, and looks at those of its neighbours afterwards; who is ahead of
    another one sees whether they differ, and asks it what it did.
    """

    def __init__(self, client: Client, actions: JointActions):
        self.client, self.actions, self.told = client, actions, ""

    def tell(self) -> None:
        """Tell the counts, if there are others since."""
        counts = json.dumps(self.actions.counts())
        if counts != self.told:
            self.client.key_value_set(f"{_COUNTS}{self.actions.own}", counts, allow_overwrite=True)
            self.told = counts

    def found(self) -> ActionDifference | None:
        """The difference from a neighbour, as far as both have come; None: there is none."""
        for index in self.actions.neighbours():
            with suppress(RuntimeFailure):  # it has told nothing yet
                counts = json.loads(self.client.key_value_try_get(f"{_COUNTS}{index}"))
                if self.actions.shared_with(index).differs_at(*count_with(self.actions.own, counts)):
                    return self._difference(index)
        return None

    def asked(self) -> ActionDifference | None:
        """The difference from another process that has found it, and asks; None: no one does."""
        for name, _ in self.client.key_value_dir_get(_DIFFERS):
            asking, asked = map(int, name.removeprefix(_DIFFERS).split("/"))
            if asked == self.actions.own:
                return self._difference(asking)
        return None

    def at_end(self, notes: str) -> ActionDifference | None:
        """The difference from a neighbour, which has come to its end, too, and has its counts among these notes."""
        for index in self.actions.neighbours():
            with suppress(RuntimeFailure):  # it has ended without waiting
                counts = json.loads(self.client.key_value_try_get(f"{notes}{index}"))["counts"]
                log = self.actions.shared_with(index)
                if (log.count, log.digest) != count_with(self.actions.own, counts):
                    return self._difference(index)
        return None

    def _difference(self, index: int) -> ActionDifference:
        own, mine, theirs = self.actions.own, self.actions.shared_with(index).recent(), []
        with suppress(RuntimeFailure):
            self.client.key_value_set(f"{_DIFFERS}{own}/{index}", json.dumps(mine), allow_overwrite=True)
            theirs = json.loads(self.client.blocking_key_value_get(f"{_DIFFERS}{index}/{own}", _PATIENCE))
        found = first_difference(mine, theirs)
        said = "something else there before that"
        if found is not None:
            (number, _, here, line), (_, _, there, its_line) = found
            said = f"as number {number} {here} at {line} here, and {there} at {its_line} in process {index}"
        return partial(
            ProcessesDiffer, f"process {own}: every process must launch the same programs over devices of all, in the "
            f"same order, got {said}.", hint="what a process computes by itself uses its own "
            "devices only; make_array_from_process_local_data makes one array of what each has.")
