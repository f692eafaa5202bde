"""What notebooks and treescope show of values: pages of HTML; may import inspection and what comes before it."""
