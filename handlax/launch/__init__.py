"""``python -m handlax.launch``: a program started as several processes of one machine.

    python -m handlax.launch --processes 4 script.py arguments

In each of them ``hx.distributed.initialize()`` needs no argument.
"""

from ..lowering.clients.clusters import free_port as free_port
from .command_line import MainProgram as MainProgram
from .command_line import main_program as main_program
from .launcher import launch as launch
from .launcher import main as main
from .launcher import start_process as start_process
