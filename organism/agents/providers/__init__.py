"""The providers: each makes the parts of an answer, from a server, a script, a record, or by itself."""
