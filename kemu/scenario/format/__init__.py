"""The format that users write: documents with places, shapes of values, the table of keys."""
