"""Reading graphs: one file for each format."""
