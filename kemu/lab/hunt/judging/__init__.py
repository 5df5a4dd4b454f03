"""Whether a trial went wrong, without a property.

oracles   compares a trial with the reference: symptoms, bugs and costs
states    how the end differs, and what is no difference
safety    what must not happen at any moment
"""
