"""Tables of keys, by subject: which keys there are, and the shape of what each holds. ``format.schema`` joins them.

    controller_keys    the controllers, by name
    timing_keys        times, and their presets
    runtime_keys       where a scenario runs
    fault_keys         faults
    matrix_keys        what varies
    expectation_keys   what a run must show

Settings that one component acts on are declared beside it (:mod:`kemu.emulated.settings.declared`).
"""
