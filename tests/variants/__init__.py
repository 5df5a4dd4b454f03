"""The registry of variants, and the classes that are entered in it."""
