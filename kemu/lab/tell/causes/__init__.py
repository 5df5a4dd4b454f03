"""Why a run went wrong: roots, chains, and runs without the roots. Begin at ``roots``, the data.

    causes = finding.causes_of(folder)      # from the log of a run; no run is made, it takes seconds
    for root in causes.roots:
        print(root.what, root.at_ns, [link.what for link in root.chain])
    causes.to_json()

A page or a program shows ``roots`` in their order (at most five), each with ``chain``, the links from what followed at
once to the symptoms; where ``roots`` is empty nothing went wrong, or (``symptoms`` is not empty) nothing explains it.

finding      from a log to causes
evidence     what of the log bears on causes; ``acts``, what clients did; ``owners``, whose pods are whose
symptoms     what went wrong; ``blame``, why, thing by thing
checking     runs without a root; ``gentler``, other forms of what stands since the start
wording      roots and links in words; ``tellings``, lines for a terminal
"""
