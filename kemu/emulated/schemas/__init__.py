"""Schemas of custom resources: what a CustomResourceDefinition says of its objects, on plain JSON.

Begin at :mod:`.versions`: a `CustomSchema` is made once of the schema of a version, and then prunes, defaults and
judges any number of objects. :mod:`.definitions` judges schemas themselves, before they are served.

    schema = versions.CustomSchema(version["schema"]["openAPIV3Schema"])
    unknown = schema.coerce(document, tells_unknown=True)   # in place; ["spec.replcias"]
    schema.default(document)                                # in place
    schema.check_new(document, found)                       # appends causes

* :mod:`.structural`: schemas as trees of nodes; what makes them structural;
* :mod:`.definitions`: which schemas, defaults and rules a definition may have;
* :mod:`.pruning`, :mod:`.defaulting`, :mod:`.embedded`: what a request or the store loses and gains by the schema;
* :mod:`.values`, :mod:`.formats`: types, bounds, formats;
* :mod:`.lists`: lists that are sets or maps; :mod:`.correlation`: which old value belongs to which new one;
* :mod:`.rules`: ``x-kubernetes-validations``; :mod:`.paths`: fields that they name;
* :mod:`.merging`: types for managed fields and apply; :mod:`.openapi`: what is published of a definition;
* :mod:`.problems`: causes in Kubernetes' words.

Everything is free of I/O and deterministic. Where Kubernetes goes through a map in random order, the order is that of
the names in a schema, and that of the fields in an object.
"""
