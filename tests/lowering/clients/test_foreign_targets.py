"""Registration of foreign functions: what is refused, and what a compiler finds."""

import ctypes
from pathlib import Path

import pytest
from helpers import foreign_library

import handlax as hx
from handlax import errors, ffi


def test_a_name_is_registered_once_for_one_function():
    library = foreign_library.library()
    capsule = ffi.pycapsule(library.Count)
    ffi.register_ffi_target("test_registered", capsule)
    ffi.register_ffi_target("test_registered", capsule)
    ffi.register_ffi_target("test_stages", {"execute": capsule})
    with pytest.raises(errors.RegistrationError, match="test_registered"):
        ffi.register_ffi_target("test_registered", ffi.pycapsule(library.Attributes))


def test_an_address_is_as_good_as_a_function():
    address = ctypes.cast(foreign_library.library().Count, ctypes.c_void_p).value
    ffi.register_ffi_target("test_address", ffi.pycapsule(address))
    ffi.ffi_call("test_address", (), has_side_effect=True)(1.0)
    hx.effects_barrier()


def test_what_is_no_capsule_and_no_platform_is_refused():
    for wrong in (3, len, {"execute": None}):
        with pytest.raises(errors.BadArgument, match=r"capsules .* are needed"):
            ffi.register_ffi_target("test_wrong", wrong)
    with pytest.raises(errors.BadArgument, match="'cpu', 'gpu' or 'cuda', got 'abacus'"):
        ffi.register_ffi_target("test_wrong", ffi.pycapsule(ctypes.pythonapi.Py_GetVersion), platform="abacus")


def test_a_target_of_a_platform_that_is_not_there_is_kept_for_it():
    ffi.register_ffi_target("test_gpu", ffi.pycapsule(ctypes.pythonapi.Py_GetVersion), platform="CUDA")


def test_the_headers_are_where_a_compiler_is_told():
    assert (Path(ffi.include_dir()) / "xla" / "ffi" / "api" / "ffi.h").exists()
