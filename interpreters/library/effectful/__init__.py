"""Ready-made effects with their handlers: state, reader, writer, failures, harvest, progress, random streams; may
import inspection and what comes before it.
"""
