"""The binding cycle."""
