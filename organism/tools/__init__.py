"""The shipped tools: listeners that come with the organism. ``shelf`` lists them; each has a file of its own."""
