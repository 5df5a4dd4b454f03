"""The functions of Kubernetes' environments, a module for each library.

The order in which they are declared is that of the overloads, which decides what messages list and what is tried
first at run time: `standard`, then Kubernetes' lists, regexes and URLs, then what later versions added.

standard        operators, sizes, strings, times
conversions     between types: ``int(x)``, ``string(x)``, ``timestamp(x)`` and the others
strings         cel-go's strings library; `formatting` is ``'…'.format([…])``
lists           Kubernetes' functions over lists, cel-go's lists library, sets
optionals       optional values, and the maps that two-variable comprehensions build
regexes         ``find`` and ``findAll``
urls            URLs as Go's package net/url reads them
addresses       IP addresses and CIDRs
formats         named formats: ``format.dns1123Label().validate(name)``
quantities      resource quantities
semvers         semantic versions
authorization   checks of the variable ``authorizer``, and ``jsonpatch.escapeKey``
"""

from __future__ import annotations

from functools import cache

from kemu.emulated.cel.declarations import Functions
from kemu.emulated.cel.libraries import (
    addresses,
    authorization,
    formats,
    lists,
    optionals,
    quantities,
    regexes,
    semvers,
    standard,
    strings,
    urls,
)


@cache
def functions(patches: bool = False) -> Functions:
    """The functions of all environments; with `patches`, those of mutating admission policies, too."""
    declared = Functions()
    standard.declare(declared)
    urls.declare(declared)
    regexes.declare(declared)
    lists.declare_kubernetes(declared)
    authorization.declare(declared)
    optionals.declare(declared)
    quantities.declare(declared)
    strings.declare(declared)
    lists.declare_sets(declared)
    addresses.declare(declared)
    formats.declare(declared)
    semvers.declare(declared)
    lists.declare(declared)
    if patches:
        authorization.declare_patches(declared)
    return declared
