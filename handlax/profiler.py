"""``handlax.profiler``: what the host and the devices do, recorded by XLA's profiler; what lies in their memory."""

from .lowering.inspection.scope_times import scope_times as scope_times
from .lowering.xla.profiler import ProfileData as ProfileData
from .lowering.xla.profiler import ProfileEvent as ProfileEvent
from .lowering.xla.profiler import ProfileLine as ProfileLine
from .lowering.xla.profiler import ProfileOptions as ProfileOptions
from .lowering.xla.profiler import ProfilePlane as ProfilePlane
from .lowering.xla.profiler import ProfileSession as ProfileSession
from .lowering.xla.profiler import StepTraceAnnotation as StepTraceAnnotation
from .lowering.xla.profiler import TraceAnnotation as TraceAnnotation
from .lowering.xla.profiler import annotate_function as annotate_function
from .lowering.xla.profiler import device_memory_profile as device_memory_profile
from .lowering.xla.profiler import export_profile_data as export_profile_data
from .lowering.xla.profiler import register_subprocess as register_subprocess
from .lowering.xla.profiler import save_device_memory_profile as save_device_memory_profile
from .lowering.xla.profiler import start_server as start_server
from .lowering.xla.profiler import start_trace as start_trace
from .lowering.xla.profiler import stop_server as stop_server
from .lowering.xla.profiler import stop_trace as stop_trace
from .lowering.xla.profiler import trace as trace
