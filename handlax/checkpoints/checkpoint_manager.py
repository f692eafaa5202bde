"""``CheckpointManager``: the saved trees of a run, by step."""

from __future__ import annotations

import json
import os
import shutil
from concurrent.futures import Future
from math import nan
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from ..effects.base.errors import BadArgument, BadCheckpoint, NotSaved, need_count, need_one_of
from ..lowering.clients.agreement import said_by_all
from .contents import TABLE, read_contents
from .folder_lock import FolderLock
from .restoring import restore
from .saving import start_saving


class CheckpointManager:
    """The trees that a run saves in a folder, ``folder/step`` for each step: the last ones, and the best ones.

        step, state = manager.resume(0, initial)        the last one that is whole, or the initial one
        manager.save(step, state, loss=0.3)             in a thread: it goes on while the next step is computed

    A run that is killed at any moment and started again computes what it would have computed, where its state has all
    that a step depends on. What killed saves have left is removed by the next one.

    Args:
        keep: how many of the last steps are kept; None: all.
        keep_best: how many of the best steps are kept beside them, by ``metric``, the name of a number that is passed
            to ``save``.
        mode: whether the best are those with the least number, ``"min"``, or with the greatest, ``"max"``.

    Every process calls its methods. As a context, ``with CheckpointManager(folder) as manager``, it waits at the end.
    """

    def __init__(
        self, folder: str | os.PathLike[str], *, keep: int | None = 1, keep_best: int = 0, metric: str = "loss",
        mode: str = "min",
    ):
        need_one_of("CheckpointManager: mode", mode, ("min", "max"))
        self.folder = Path(os.path.abspath(folder))
        self.keep = None if keep is None else need_count("CheckpointManager: keep", keep, 1)
        self.keep_best = need_count("CheckpointManager: keep_best", keep_best)
        self.metric, self.mode = metric, mode
        self._saving: Future[None] | None = None
        self._last = max(self.steps(), default=-1)

    def save(self, step: int, tree: Any, **metrics: float) -> None:
        """Begin to save a tree as that of a step, with numbers by which steps are compared, when the save before has
        ended; what went wrong in that is raised.

        Raises: NotSaved: the save before failed, or the folder cannot be written to. And as ``checkpoints.save``.
        """
        if need_count("CheckpointManager.save: step", step) < self._last:
            raise BadArgument(f"CheckpointManager.save: steps must ascend, got {step} after {self._last}.",
                              hint="a run that goes on from an earlier step has a folder of its own.")
        numbers = {name: float(number) for name, number in metrics.items()}
        if self.keep_best and self.metric not in numbers:
            raise BadArgument(f"CheckpointManager.save: the number {self.metric!r} must be given, got {[*numbers]}.",
                              hint=f"manager.save(step, tree, {self.metric}=...).")
        self.wait()
        self._saving = start_saving(self.folder / str(step), tree, numbers, self._remove_others)
        self._last = step

    def wait(self) -> None:
        """Wait for the save that goes on. Raises: NotSaved: it failed."""
        saving, self._saving = self._saving, None
        if saving is not None:
            saving.result()

    def steps(self) -> list[int]:
        """The steps whose trees are whole, in ascending order, as process 0 finds them."""
        self.wait()
        return [int(step) for step in json.loads(said_by_all(json.dumps(self._whole()))[0])]

    def metrics(self, step: int) -> dict[str, float]:
        """The numbers that were saved with a step. Raises: BadCheckpoint: it has no whole tree."""
        return dict(read_contents("CheckpointManager.metrics", self.folder / str(step)).notes)

    def restore(self, like: Any = None, *, step: int | None = None) -> Any:
        """The tree of a step, by default the last one, as ``checkpoints.restore(path, like)`` gives it.

        Raises: BadCheckpoint: the step, or any, has no whole tree. And as ``checkpoints.restore``.
        """
        steps = self.steps()
        if step is None and not steps:
            raise BadCheckpoint(f"CheckpointManager.restore: {self.folder} must have a whole tree, got none.")
        return restore(self.folder / str(steps[-1] if step is None else step), like)

    def resume(self, start: int, initial: Any) -> tuple[int, Any]:
        """The last step and its tree, which is like ``initial``; ``(start, initial)`` where no tree is whole."""
        steps = self.steps()
        return (steps[-1], restore(self.folder / str(steps[-1]), initial)) if steps else (start, initial)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.wait()

    def _whole(self) -> list[int]:
        names = [path.parent.name for path in self.folder.glob(f"*/{TABLE}")]
        return sorted([int(name) for name in names if name.isdecimal()])

    def _best(self, steps: list[int]) -> list[int]:
        """The steps from the best one on; without those that have no number, or NaN, and the later one first of two
        equals.
        """
        sign = 1 if self.mode == "min" else -1
        found = [(sign * self.metrics(step).get(self.metric, nan), -step) for step in steps]
        return [-step for number, step in sorted(found) if number == number]

    def _remove_others(self) -> None:
        """Remove the trees that are not to be kept, and what killed saves have left."""
        whole = self._whole()
        kept = {*(whole if self.keep is None else whole[-self.keep:])}
        if self.keep_best:
            kept |= {*self._best(whole)[:self.keep_best]}
        for path in self.folder.iterdir():
            if path.name.isdecimal() and int(path.name) not in kept:
                _remove(path)


def _remove(folder: Path) -> None:
    """Remove a saved tree, the table of contents first: a kill leaves no table of what is not whole.

    One to which another process is saving is left alone.
    """
    lock = FolderLock(folder)
    try:
        lock.acquire()
    except NotSaved:
        return
    (folder / TABLE).unlink(missing_ok=True)
    shutil.rmtree(folder, ignore_errors=True)  # what remains is removed by the next save
    lock.release()
