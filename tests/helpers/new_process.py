"""Programs executed in a new Python process."""

import os
import subprocess
import sys


def in_new_process(code, **environment):
    """The output of ``code`` in a new process."""
    # Settings of the test process must not reach the program under test.
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(("HANDLAX_", "JAX_"))}
    done = subprocess.run(
        [sys.executable, "-c", code], env=inherited | environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()
