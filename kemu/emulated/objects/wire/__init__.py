"""Objects as bytes, in the store and in messages.

envelopes        the prefix of a stored object
fingerprints     short hashes of contents
key_ranges       prefixes and ranges of keys in the store
shared_objects   objects that several readers hold, and none changes
swaps            compare-and-swaps between an API server and a store in one process
wires            reading single fields of a message without parsing the rest
"""
