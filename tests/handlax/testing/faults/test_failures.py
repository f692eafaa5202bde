"""A compiler that fails, and disks that are full or read-only, each time a program or a file is asked for."""

import errno
import itertools
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


def test_changes_of_other_files_do_not_fail(tmp_path):
    (tmp_path / "other").mkdir()
    write = lambda: (tmp_path / "file").write_text("")
    with pytest.raises(AssertionError, match="a fault must be possible"):
        list(failing_files(write, tmp_path / "other"))
    assert [fault.place for fault in failing_files(write, tmp_path)] == ["open of file"]
