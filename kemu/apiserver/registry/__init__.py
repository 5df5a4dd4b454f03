"""What a request does to objects: create, update, patch, delete, bind, evict, get, list."""
