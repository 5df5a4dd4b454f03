"""Objects as bytes, in the store and in messages.

envelopes        the prefix of a stored object
fingerprints     short hashes of contents
key_ranges       prefixes and ranges of keys in the store
shared_objects   objects that several readers hold, and none changes
wires            reading single fields of a message without parsing the rest
"""
