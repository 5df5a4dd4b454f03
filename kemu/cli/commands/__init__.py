"""The commands of kemu, a module each: ``add_to`` declares it, ``command`` carries it out."""
