"""The log as frames: one tail for all viewers of a tenant, and a cursor for each."""
