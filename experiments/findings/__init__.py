"""What the experiments found: their results, stored small, and the page docs/findings.md that is made from them.

Begin with ``scripts/findings``. ``catalogue`` knows the experiments and where their results are, ``runs`` runs and
stores them, ``pages`` writes the page, ``headlines`` its head: the strongest results at scale with their pictures;
``checks`` notices what does not belong together.
"""
