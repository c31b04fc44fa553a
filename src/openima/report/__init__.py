"""What a user reads after a run: tables, the folder of outputs, the page that shows them."""
