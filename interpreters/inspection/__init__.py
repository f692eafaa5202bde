"""Inspection of programs: stepper, drawings, outlines, comparisons; may import handlers and what comes before it."""
