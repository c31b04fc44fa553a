"""What a user reads after a run: tables and the page that shows them."""
