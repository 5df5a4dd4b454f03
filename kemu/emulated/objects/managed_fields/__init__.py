"""Who manages which fields of an object: server-side apply and ``metadata.managedFields``, as Kubernetes has them.

* :mod:`.schemas`: how the fields of each kind merge (from :mod:`kemu.emulated.objects.facts`);
* :mod:`.fieldsets`: sets of fields (``structured-merge-diff/fieldpath``);
* :mod:`.values`: comparing, merging and cutting objects by these (``structured-merge-diff/typed``);
* :mod:`.updaters`: whose the fields are after an update or an apply (``structured-merge-diff/merge``);
* :mod:`.entries`: what of that stands in an object;
* :mod:`.managers`: all of it together, for the API server (``apimachinery/pkg/util/managedfields``).

Everything works on plain JSON values, but for what spares most updates the way through them:

* :mod:`.outlines`: what of two messages decides whose fields are whose;
* :mod:`.known_updates`: what updates do to the entries, kept by outlines.

go_decoding   what Go says of JSON that is not of the types of a kind: the first mistake, in the words of its decoders
go_texts      JSON values as Go prints them, for the texts of errors
resets        fields that a write of a kind resets, by the way it takes
scales        the entries of an object whose replicas are changed through its Scale (``managedfields.ScaleHandler``)
shapes        objects in one shape, from any writer
"""
