"""Studies: many trials, their rows on disk, and the paper's tables and figures read from rows."""
