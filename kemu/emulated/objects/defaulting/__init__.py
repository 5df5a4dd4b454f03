"""The defaults of objects: :mod:`kemu.emulated.objects.defaulting.defaults` is the entry, the others hold the kinds."""
