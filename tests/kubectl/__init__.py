"""kubectl v1.36.3 against kemu: the same commands give the same text as against a real kube-apiserver.

``scripts`` is the list of commands, and of the writes between them that scheduler, kubelets and controllers would do,
so that both servers have the same objects. ``sessions`` runs it; ``normalisers`` takes out of the texts what two
clusters cannot share; ``comparisons`` says which differences are left, each with its reason. ``recorded/`` holds what
the real server made kubectl print, and every HTTP exchange with it, as a ``proxies.Recorder`` in between saw it.

    python -m tests.kubectl record                  # the real server's side, anew
    python -m tests.kubectl compare --kubeconfig F  # kemu's side, against any `kemu up`
"""
