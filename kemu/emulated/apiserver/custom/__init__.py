"""Custom kinds in the API server. Begin with :mod:`kemu.emulated.apiserver.custom.kinds`.

kinds         the custom kinds of one API server, as its watch cache has their definitions
served        one version of a kind: its schema, and its objects in it
strategies    what is particular to a custom kind, for the registry
scales        the Scale of its objects
definitions   what the API server itself does with definitions: names, conditions, the end of all objects
"""
