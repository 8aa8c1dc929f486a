"""What is made of the log."""
