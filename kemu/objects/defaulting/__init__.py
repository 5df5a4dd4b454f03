"""The defaults of objects: :mod:`kemu.objects.defaulting.defaults` is the entry, the others hold the kinds."""
