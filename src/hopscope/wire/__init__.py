"""Bytes ⇄ values. Pure, bounded, and total: hostile input gives `None` or a value, never an exception."""
