"""What runs: handlings and their handlers, gates, mailboxes, the slots that tenants share, the writer of decisions."""
