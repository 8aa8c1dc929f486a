"""A run on its way to viewers and log: its entries, text that is heard before it is logged, model calls."""
