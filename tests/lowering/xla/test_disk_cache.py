"""Compiled programs in memory and on disk."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import warnings

import numpy as np
import pytest
from helpers.other_threads import OtherThread
from returns.result import Failure, Success

import handlax as hx
from handlax.effects.base.caches import cache_info
from handlax.experimental.compilation_cache import compilation_cache
from handlax.lowering.clients import platforms
from handlax.lowering.xla import disk_cache
from handlax.testing import faults

X = np.arange(5, dtype=np.float32)


@pytest.fixture
def folder(tmp_path):
    hx.clear_caches()
    disk_cache.COUNTS.clear()
    with hx.configure(compilation_cache_dir=str(tmp_path)):
        yield tmp_path


def compiles(f):
    before = platforms.COUNTS["compile"]
    f()
    return platforms.COUNTS["compile"] - before


def test_equal_programs_are_compiled_once():
    hx.clear_caches()
    assert compiles(lambda: (hx.jit(lambda x: x * 41)(X), hx.jit(lambda y: y * 41)(X))) == 1
    assert cache_info()["compile"].size >= 1


def run(factor=3):
    return np.asarray(hx.jit(lambda x: x * factor + 1)(X))


def test_the_second_process_loads(folder):
    assert compiles(run) == 1 and disk_cache.COUNTS["written"] == 1
    hx.clear_caches()
    assert compiles(run) == 0 and disk_cache.COUNTS["hit"] == 1
    np.testing.assert_array_equal(run(), X * 3 + 1)


def test_lanes_of_other_lengths_load_one_program(folder):
    def lanes(lengths):
        x = hx.Ragged(X, np.array(lengths), 5)
        return hx.jit(lambda x: hx.vmap(lambda row: (hx.nn.softmax(row) * row.shape[0]).sum(), hx.ragged_axis)(x))(x)

    lanes([1, 4])
    written = disk_cache.COUNTS["written"]
    hx.clear_caches()
    np.testing.assert_allclose(lanes([3, 2]), [3, 2], rtol=1e-6)
    assert disk_cache.COUNTS["hit"] >= 1 and disk_cache.COUNTS["written"] == written


@pytest.mark.parametrize("damage", [
    lambda content: content[:100],
    lambda content: b"",
    lambda content: content[:-1] + bytes([content[-1] ^ 1]),
    lambda content: b"another tool's file" + content,
    lambda content: content[: len(b"handlax program 2\n")] + bytes(32) + content[len(b"handlax program 2\n") + 32 :],
    lambda content: content + b"x",
])
def test_a_damaged_or_foreign_entry_is_not_loaded(folder, damage):
    run()
    (entry,) = folder.iterdir()
    whole = entry.read_bytes()
    entry.write_bytes(damage(whole))
    hx.clear_caches()
    with pytest.warns(UserWarning, match="is not used"):
        assert compiles(run) == 1
    assert disk_cache.COUNTS["rejected"] == 1 and len(entry.read_bytes()) >= len(whole) // 2
    hx.clear_caches()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert compiles(run) == 0


def test_an_entry_under_the_name_of_another_program_is_not_loaded(folder):
    run(3)
    (three,) = folder.iterdir()
    run(5)
    (five,) = set(folder.iterdir()) - {three}
    five.write_bytes(three.read_bytes())
    hx.clear_caches()
    with pytest.warns(UserWarning, match="another program"):
        np.testing.assert_array_equal(run(5), X * 5 + 1)


def test_an_entry_that_is_no_file_does_not_hang(folder):
    run()
    (entry,) = folder.iterdir()
    entry.unlink()
    os.mkfifo(entry)
    hx.clear_caches()
    with pytest.warns(UserWarning, match="it is not a file"):
        np.testing.assert_array_equal(run(), X * 3 + 1)


def test_a_folder_is_made_for_its_user_alone(tmp_path):
    hx.clear_caches()
    with hx.configure(compilation_cache_dir=str(tmp_path / "a" / "b")):
        run()
    assert stat.S_IMODE((tmp_path / "a" / "b").stat().st_mode) == 0o700


def test_a_folder_to_which_others_may_write_is_not_used(folder):
    run()
    folder.chmod(0o770)
    hx.clear_caches()
    with pytest.warns(UserWarning, match=r"others may write to it \(mode 770\)"):
        assert compiles(run) == 1


def test_the_folder_of_another_user_is_not_used(folder, monkeypatch):
    run()
    hx.clear_caches()
    monkeypatch.setattr(os, "geteuid", lambda: folder.stat().st_uid + 1)
    with pytest.warns(UserWarning, match="belongs to the user"):
        assert compiles(run) == 1


def test_a_folder_that_cannot_be_written_costs_a_warning(tmp_path):
    (tmp_path / "file").write_text("")
    hx.clear_caches()
    folder = str(tmp_path / "file" / "below")
    with hx.configure(compilation_cache_dir=folder), pytest.warns(UserWarning, match="cannot"):
        np.testing.assert_array_equal(run(), X * 3 + 1)


def test_writers_at_once_lose_nothing(folder):
    key, blob = bytes(32), b"program" * 100_000
    path = folder / "entry.xla"

    def store() -> None:
        for _ in range(20):
            disk_cache.store(path, key, blob)

    writers = [OtherThread(store) for _ in range(4)]
    seen = [disk_cache.load(path, key) for _ in range(200)]
    for writer in writers:
        writer.result()
    assert all(found == Success(blob) or found == Failure(None) for found in seen)
    assert [entry.name for entry in folder.iterdir()] == ["entry.xla"]


def test_a_process_that_is_killed_leaves_whole_entries_and_what_it_leaves_is_removed_later(folder):
    path, key, blob = folder / "entry.xla", bytes(32), b"program" * 100_000
    code = (
        "import pathlib\nfrom handlax.lowering.xla import disk_cache\n"
        f"disk_cache.store(pathlib.Path({str(path)!r}), bytes(32), b'program' * 100_000)"
    )
    found = [disk_cache.load(path, key) for _ in faults.kills(code, folder)]
    assert found[:2] == [Failure(None)] * 2 and found[2:] == [Success(blob)] * (len(found) - 2) != []
    left = [*folder.glob(".writing-*")]
    run()
    assert left and all(file.exists() for file in left)
    for file in left:
        os.utime(file, (0, 0))
    hx.clear_caches()
    run(7)
    assert [*folder.glob(".*")] == []


def test_what_a_full_disk_cuts_off_is_not_stored(folder):
    with pytest.warns(UserWarning, match="cannot be written to"), faults.whole(folder), faults.full_disk(100):
        np.testing.assert_array_equal(run(), X * 3 + 1)


def test_two_processes_share_a_folder(folder):
    code = (
        "import numpy as np, handlax as hx\n"
        f"hx.config.update('compilation_cache_dir', {str(folder)!r})\n"
        "print(float(np.asarray(hx.jit(lambda x: x * 7)(np.ones(5, np.float32))).sum()))\n"
        "from handlax.lowering.xla import disk_cache; print(dict(disk_cache.COUNTS))"
    )
    both = [subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) for _ in range(2)]
    out = [process.communicate(timeout=120)[0] for process in both]
    assert all(text.startswith("35.0") for text in out)
    last = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert "'hit': 1" in last.stdout


def test_the_folder_is_set_under_the_name_of_jax(folder):
    try:
        compilation_cache.set_cache_dir(folder)
        compilation_cache.reset_cache()
        assert hx.config.compilation_cache_dir == str(folder)
    finally:
        hx.config.update("compilation_cache_dir", None)  # of the process; the fixture's is that of a block
