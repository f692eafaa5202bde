"""How the GPU is found: by the plug-in and the driver, by settings, beside the CPU, and beside jax."""

from importlib.util import find_spec

import pytest
from helpers.new_process import in_new_process

pytestmark = pytest.mark.gpu

FOUND = """
import handlax as hx, sys
print(hx.default_backend(), *sorted({d.platform for d in hx.devices()}), (hx.numpy.ones(3) * 2).device.platform,
      "jax" in sys.modules)
"""
REFUSED = """
import handlax as hx
try: hx.devices("gpu")
except hx.errors.PlatformUnavailable as error: print(type(error).__name__, error)
"""


@pytest.mark.parametrize("settings", [
    {}, {"HANDLAX_PLATFORMS": "gpu"}, {"HANDLAX_PLATFORMS": "cuda,cpu"}, {"JAX_PLATFORMS": "cuda"},
    {"JAX_PLATFORMS": "cpu", "HANDLAX_PLATFORMS": "gpu"},
], ids=str)
def test_the_gpu_is_the_default_and_jax_is_not_imported(settings):
    assert in_new_process(FOUND, **settings) == "gpu gpu gpu False"


@pytest.mark.parametrize("settings", [
    {"HANDLAX_PLATFORMS": "cpu"}, {"JAX_PLATFORMS": "cpu,cuda"}, {"CUDA_VISIBLE_DEVICES": ""},
], ids=str)
def test_the_cpu_is_the_default_where_it_is_named_first_or_no_gpu_is_visible(settings):
    assert in_new_process(FOUND, **settings) == "cpu cpu cpu False"


def test_a_gpu_that_settings_exclude_is_refused():
    assert in_new_process(REFUSED, HANDLAX_PLATFORMS="cpu").startswith("PlatformUnavailable the platform must be among")
    assert in_new_process(REFUSED, CUDA_VISIBLE_DEVICES="").startswith("PlatformUnavailable")


def test_both_platforms_are_there_whichever_is_the_default():
    code = "import handlax as hx; print(hx.default_backend(), hx.devices('gpu')[0].platform, hx.device_count('cpu'))"
    both = {"HANDLAX_NUM_CPU_DEVICES": "3"}
    assert in_new_process(code, HANDLAX_PLATFORMS="cpu,gpu", **both) == "cpu gpu 3"
    assert in_new_process(code, **both) == "gpu gpu 3"


def test_the_setting_chooses_before_the_first_use():
    chosen = "import handlax as hx; hx.config.update('jax_platforms', 'cpu')"
    assert in_new_process(chosen + FOUND) == "cpu cpu cpu False"


USE_OURS = "print(float(handlax.numpy.linalg.det(handlax.numpy.eye(3) * 2).sum()), handlax.default_backend())"
USE_JAX = "print(float(jax.numpy.linalg.det(jax.numpy.eye(3) * 2).sum()), jax.default_backend())"


@pytest.mark.parametrize("lines", [
    ("import jax", USE_JAX, "import handlax", USE_OURS), ("import jax, handlax", USE_OURS, USE_JAX),
    ("import handlax", USE_OURS, "import jax", USE_JAX),
], ids=["jax-first", "imported-first", "handlax-first"])
def test_both_libraries_use_the_gpu_in_one_process(lines):
    if find_spec("jax") is None:
        pytest.skip("jax is not installed")
    assert in_new_process("\n".join(lines), XLA_PYTHON_CLIENT_PREALLOCATE="false").split() == ["8.0", "gpu"] * 2


@pytest.mark.parametrize("reserved", [True, False])
def test_memory_is_reserved_at_the_start_or_as_it_is_used(reserved):
    code = """
import handlax as hx
stats = hx.numpy.ones(3).block_until_ready().device.memory_stats()
print(stats["pool_bytes"] > 0.9 * stats["bytes_limit"])
"""
    settings = {"XLA_PYTHON_CLIENT_MEM_FRACTION": "0.1", "XLA_PYTHON_CLIENT_PREALLOCATE": str(reserved).lower()}
    assert in_new_process(code, **settings) == str(reserved)
