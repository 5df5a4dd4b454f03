"""Scenarios: the YAML format that users write, from the file to the actor that plays its user."""
