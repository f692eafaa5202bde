"""Programs executed in a new Python process."""

import os
import subprocess
import sys


def inherited():
    """The environment without settings: but for that of quick compilation they are not the program's under test."""
    kept = "HANDLAX_DISABLE_MOST_OPTIMIZATIONS"
    return {k: v for k, v in os.environ.items() if k == kept or not k.startswith(("HANDLAX_", "JAX_"))}


def in_new_process(code, **environment):
    """The output of ``code`` in a new process."""
    done = subprocess.run(
        [sys.executable, "-c", code], env=inherited() | environment, capture_output=True, text=True, check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()
