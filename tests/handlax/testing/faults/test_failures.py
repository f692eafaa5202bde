"""A compiler that fails, and disks that are full or read-only, each time a program or a file is asked for."""

import errno
import itertools
import os
import warnings

import numpy as np
import pytest

import handlax as hx
from handlax import numpy as hnp
from handlax.lowering.xla import disk_cache
from handlax.testing.faults import failing_compilations, failing_files

X = np.arange(5, dtype=np.float32)


def programs():
    f = hx.jit(lambda x: hx.jit(lambda x: x * 23)(x) + hnp.sum(x))
    y = hx.jit(lambda x: x + 29)(f(X))
    np.testing.assert_array_equal(y, X * 23 + 10 + 29)


def test_a_failed_compilation_leaves_nothing_and_the_next_one_succeeds():
    seen = []
    for fault in failing_compilations(programs):
        seen.append(fault)
        assert isinstance(fault.left, hx.errors.CompileError) and "a fault of the compiler" in str(fault.left)
        programs()
    assert len(seen) == 2


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EACCES, errno.EIO])
def test_a_disk_that_fails_costs_a_warning(tmp_path, number):
    hx.clear_caches()
    numbers = itertools.count(31)

    def stored():
        n = next(numbers)
        with hx.configure(compilation_cache_dir=str(tmp_path / "cache")):
            np.testing.assert_array_equal(hx.jit(lambda x: x * n)(X), X * n)

    places = []
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        for fault in failing_files(stored, tmp_path / "cache", number):
            places.append(fault.place)
            assert fault.left is None
    assert any(place.startswith("os.rename of .writing-") for place in places)
    assert any("cannot be written to" in str(each.message) for each in warned)


def test_what_is_stored_while_the_disk_fails_is_whole_or_not_there(tmp_path):
    path, key, blob = tmp_path / "entry.xla", bytes(32), b"program" * 1000
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in failing_files(lambda: disk_cache.store(path, key, blob), tmp_path):
            assert disk_cache.load(path, key).value_or(blob) == blob
            path.unlink(missing_ok=True)


@pytest.mark.parametrize(("change", "place"), [
    (lambda entry, outside: os.replace(outside, entry), "os.rename of entry"),
    (lambda entry, outside: os.replace(entry, outside), "os.rename of entry"),
    (lambda entry, outside: os.symlink(outside, entry.with_name("new")), "os.symlink of new"),
    (lambda entry, outside: os.link(outside, entry.with_name("new")), "os.link of new"),
    (lambda entry, outside: entry.chmod(0o600), "os.chmod of entry"),
    (lambda entry, outside: os.utime(entry, (0, 0)), "os.utime of entry"),
    (lambda entry, outside: os.truncate(entry, 0), "os.truncate of entry"),
], ids=["into", "out of", "symlink", "link", "chmod", "utime", "truncate"])
def test_changes_of_any_kind_fail(tmp_path, change, place):
    folder, outside = tmp_path / "folder", tmp_path / "outside"
    folder.mkdir()

    def changed():
        (folder / "new").exists() and (folder / "new").rename(tmp_path / "old")
        for path in (folder / "entry", outside):
            path.exists() or path.touch()
        change(folder / "entry", outside)

    assert place in [fault.place for fault in failing_files(changed, folder)]


def test_changes_of_other_files_do_not_fail(tmp_path):
    (tmp_path / "other").mkdir()
    write = lambda: (tmp_path / "file").write_text("")
    with pytest.raises(AssertionError, match="a fault must be possible"):
        list(failing_files(write, tmp_path / "other"))
    assert [fault.place for fault in failing_files(write, tmp_path)] == ["open of file"]
