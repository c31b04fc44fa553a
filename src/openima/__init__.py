"""openima: open-world semi-supervised node classification."""
