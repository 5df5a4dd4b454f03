"""What is answered: ``responses`` travel over HTTP, ``representations`` are objects and lists in the form asked for."""
