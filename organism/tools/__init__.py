"""The shipped tools: listeners that come with the organism. ``toolbox`` lists them."""
