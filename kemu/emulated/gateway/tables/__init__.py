"""Tables: what ``kubectl get`` prints. Begin with :mod:`kemu.emulated.gateway.tables.tables`.

One module for each API group, or for several small ones, holds printers: columns, and a function from an object to its
cells. ``texts`` says how ages, labels, selectors and quantities look; ``printers`` what a printer is.
"""
