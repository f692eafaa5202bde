"""Ready-made effects and handlers; may import inspection and what comes before it."""
