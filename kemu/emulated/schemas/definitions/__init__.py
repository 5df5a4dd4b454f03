"""Schemas as a definition may have them. Begin at ``checks``.

checks      what is refused (``ValidateCustomResourceDefinitionOpenAPISchema``)
costs       whether rules compile, and what they may cost
defaults    which defaults are refused, and what of them is cut
internals   schemas in the texts of refusals
"""
