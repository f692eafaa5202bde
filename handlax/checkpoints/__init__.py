"""``handlax.checkpoints``: trees of arrays saved to files and restored, on any number of devices and processes.

    restore(path, like) == tree        after save(path, tree), where ``like`` has tree's structure, shapes and dtypes

(``handlax.checkpoint`` is rematerialisation.) A folder needs the extra ``save``, a file ``.safetensors`` does not.
"""

from .checkpoint_manager import CheckpointManager as CheckpointManager
from .restoring import restore as restore
from .saving import save as save
from .saving import save_async as save_async
