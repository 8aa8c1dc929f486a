"""The command line. ``app.py`` has every verb; what is heavy is imported by the verb that needs it."""
