"""Reports for people: the story in the terminal, tables of variants. Reads run folders and histories."""
