"""Steering: choosing when messages arrive. Begin at ``steering``.

``messages``: messages in flight (``kemu.emulated.client.message_labels`` says what they are about); ``choosers``: who
chooses, where not the scenario alone does; :mod:`kemu.runtime.holds` says what a hold is.
"""
