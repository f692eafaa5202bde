"""Progress out of compiled loops."""

from __future__ import annotations

import importlib
import re
import sys
from types import SimpleNamespace

import pytest

import handlax as hx
from handlax import debug, errors, lax
from handlax import numpy as hnp

progress = importlib.import_module("handlax.interpreters.library.effectful.progress")


def train(x):
    def step(c, i):
        debug.tick()
        return c * 0.99 + hnp.sin(i), None

    return lax.scan(step, x, hnp.arange(1000.0))[0]


def shown(f, *args, every=300):
    """The counts at which a bar would move, and the result."""
    counts = []
    y = f(debug.progress(1000, every=every, show=lambda count, total: counts.append((count, total))))(*args)
    hx.effects_barrier()
    assert {total for _, total in counts} == {1000}
    return [count for count, _ in counts], y


@pytest.mark.parametrize(
    "compose",
    [
        lambda bar: hx.jit(bar(train)), lambda bar: bar(hx.jit(train)), lambda bar: bar(train),
        lambda bar: hx.jit(hx.grad(bar(train))), lambda bar: bar(hx.grad(train)),
    ],
)
def test_a_bar_moves_every_so_many_ticks_and_at_the_end(compose):
    assert shown(compose, 1.0)[0] == [0, 300, 600, 900, 1000]


def test_a_bar_moves_a_hundred_times_without_a_number_of_ticks():
    assert shown(lambda bar: hx.jit(bar(train)), 1.0, every=None)[0] == [*range(0, 1001, 10)]


def test_lanes_go_in_step():
    xs = hnp.ones(3)
    assert shown(lambda bar: hx.jit(bar(hx.vmap(train))), xs)[0] == [0, 300, 600, 900, 1000]
    assert shown(lambda bar: hx.jit(hx.vmap(bar(train))), xs)[0] == [0, 300, 600, 900, 1000]


def test_progress_changes_no_result():
    expected = hx.jit(hx.handle(hx.handler({progress.ProgressTick: lambda op: None}))(train))(1.0)
    assert shown(lambda bar: hx.jit(bar(train)), 1.0)[1] == expected


def test_a_tick_without_a_bar_is_unhandled():
    with pytest.raises(errors.UnhandledEffect, match="ProgressTick"):
        hx.jit(train)(1.0)


def test_a_while_loop_ticks_without_a_total():
    def step(c):
        debug.tick(2)
        return c + 1

    counts = []
    f = debug.progress(show=lambda count, total: counts.append((count, total)))
    hx.jit(f(lambda c: lax.while_loop(lambda c: c < 3, step, c)))(0)
    hx.effects_barrier()
    assert counts == [(0, None), (2, None), (4, None), (6, None)]


@pytest.mark.parametrize("with_tqdm", [False, True])
def test_a_bar_is_written_to_the_standard_error(capsys, monkeypatch, with_tqdm):
    if with_tqdm:
        pytest.importorskip("tqdm")
    monkeypatch.setattr(progress, "_has_tqdm", lambda: with_tqdm)
    f = hx.jit(debug.progress(1000, label="train")(train))
    for _ in range(2):
        f(1.0)
        hx.effects_barrier()
        written = capsys.readouterr().err
        assert "train: " in written
        assert "1000/1000" in written
        if not with_tqdm:
            seconds, rate = re.findall(r"1000/1000 \(100 %\), ([\d.]+) s, (\d+)/s", written)[-1]
            assert float(seconds) < 60 and int(rate) > 1000 / 60


def screen(written):
    """The lines that a terminal or a notebook shows of what is written."""
    lines = [[]]
    at = 0
    for letter in written:
        if letter == "\n":
            lines.append([])
        if letter in "\r\n":
            at = 0
        else:
            lines[-1][at : at + 1] = letter
            at += 1
    return ["".join(line).rstrip() for line in lines]


def test_a_shorter_line_covers_a_longer_one(capsys):
    line = progress._Line(4, "train")
    line.n = 2
    line.write(1e-3)
    line.write(1.0)
    assert screen(capsys.readouterr().err) == ["train: 2/4 (50 %), 1.0 s, 2/s"]


@pytest.mark.parametrize("with_tqdm", [False, True])
def test_each_run_leaves_one_line_on_the_screen(capsys, monkeypatch, with_tqdm):
    if with_tqdm:
        pytest.importorskip("tqdm")
    monkeypatch.setattr(progress, "_has_tqdm", lambda: with_tqdm)
    f = hx.jit(debug.progress(1000, label="train")(train))
    for _ in range(2):
        hx.block_until_ready(f(1.0))
        hx.effects_barrier()
    first, second, rest = screen(capsys.readouterr().err)
    assert rest == "" and all(line.startswith("train: ") and "1000/1000" in line for line in (first, second))


def test_the_bar_is_the_one_that_tqdm_has_for_the_place(monkeypatch):
    moves = []

    class Widget:
        def __init__(self, total, desc):
            self.n = 0
            moves.append((total, desc))

        def update(self, by):
            self.n += by
            moves.append(by)

        def close(self):
            moves.append("closed")

    monkeypatch.setattr(progress, "_has_tqdm", lambda: True)
    monkeypatch.setitem(sys.modules, "tqdm.auto", SimpleNamespace(tqdm=Widget))  # in a notebook it has the widget
    hx.jit(debug.progress(1000, every=400, label="train")(train))(1.0)
    hx.effects_barrier()
    assert moves == [(1000, "train"), 0, 400, 400, 200, "closed"]


def test_counts_that_make_no_sense_are_refused():
    for options in ({"total": 0}, {"total": 10, "every": 0}, {"total": 2.5}):
        with pytest.raises(errors.BadArgument, match="positive integer"):
            debug.progress(**options)
