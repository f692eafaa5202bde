"""Python executes this at its start, where the folder is in ``PYTHONPATH``: the process notes the branches it takes."""

from taken_branches import taken_branches

taken_branches()
