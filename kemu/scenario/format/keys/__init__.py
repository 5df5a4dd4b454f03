"""The parts of the table of keys: what may stand where in a scenario. :mod:`kemu.scenario.format.schema` joins them."""
