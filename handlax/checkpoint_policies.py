"""``handlax.checkpoint_policies``: predicates that decide, per operation, which residuals ``checkpoint`` saves."""

from .effects.control.checkpoint_policies import checkpoint_dots as checkpoint_dots
from .effects.control.checkpoint_policies import (
    checkpoint_dots_with_no_batch_dims as checkpoint_dots_with_no_batch_dims,
)
from .effects.control.checkpoint_policies import dots_saveable as dots_saveable
from .effects.control.checkpoint_policies import dots_with_no_batch_dims_saveable as dots_with_no_batch_dims_saveable
from .effects.control.checkpoint_policies import everything_saveable as everything_saveable
from .effects.control.checkpoint_policies import nothing_saveable as nothing_saveable
from .effects.control.checkpoint_policies import offload_dot_with_no_batch_dims as offload_dot_with_no_batch_dims
from .effects.control.checkpoint_policies import save_and_offload_only_these_names as save_and_offload_only_these_names
from .effects.control.checkpoint_policies import save_any_names_but_these as save_any_names_but_these
from .effects.control.checkpoint_policies import save_anything_except_these_names as save_anything_except_these_names
from .effects.control.checkpoint_policies import save_from_both_policies as save_from_both_policies
from .effects.control.checkpoint_policies import save_only_these_names as save_only_these_names
