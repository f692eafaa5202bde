"""What holds for every test: eight virtual CPU devices, and examples that are the same in every run."""

import os

# The number of devices is fixed when the client is made, so this stands before anything imports handlax.
os.environ["HANDLAX_NUM_CPU_DEVICES"] = "8"

from hypothesis import HealthCheck, settings

# Compilation makes the first example of a test slow, which says nothing about the test.
settings.register_profile("default", derandomize=True, deadline=None, max_examples=25,
                          suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", settings.get_profile("default"), print_blob=True)
settings.register_profile("thorough", settings.get_profile("default"), derandomize=False, max_examples=500)
settings.load_profile(os.environ.get("HANDLAX_HYPOTHESIS", "ci" if os.environ.get("CI") else "default"))
