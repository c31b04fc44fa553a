"""What a user gets to see: the table of classes, the folder of outputs, annotated cells."""
