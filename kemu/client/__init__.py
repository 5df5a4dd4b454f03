"""How actors talk to the API server: requests (``clients``), live views of it (``informers``), what to do next
(``workqueues``).

Below them ``sessions`` batches requests and ``watches`` multiplexes watches, each on one of the ``streams``;
``retries`` repeats what is worth it, ``recorders`` writes Event objects.
"""
