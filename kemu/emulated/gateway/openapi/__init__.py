"""OpenAPI v3: the schemas of the kinds that the gateway serves, and the operations on them.

``documents`` makes one document for each group version, when it is asked for; ``schemas`` makes schemas of the
messages in ``proto/kemu/k8s`` and of what :mod:`kemu.emulated.objects.managed_fields.schemas` knows about their fields;
``operations`` makes the paths of what discovery lists; ``descriptions`` are the sentences that ``kubectl explain``
shows, from the texts in the folder ``texts``; ``custom`` makes the documents of custom kinds;
``swaggers`` says schemas in version 2, and ``gnostics`` packs that as protobuf.
"""
