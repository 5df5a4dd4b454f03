"""What the API server tells whoever writes a valid object: what is deprecated, has no effect or is likely a mistake.

kinds      the entry: the warnings of each kind
pod_specs  those of pods and pod templates
overlaps   files of one volume whose paths are in each other's way
addresses  IP addresses and ranges that are not written as they should be
labels     deprecated labels of nodes
"""
