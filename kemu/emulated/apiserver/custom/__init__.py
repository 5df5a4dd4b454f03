"""Custom kinds in the API server, for the registry, whose module ``kinds`` knows which there are.

served       one version of a kind: its schema, and its objects in it
conversions  webhooks that convert objects from version to version
collections  what the watch cache has of a kind, in one of the versions that a webhook converts
checks       the checks of definitions that need their schemas
scales       the Scale of objects of custom kinds
"""
