"""What is emulated: the objects of a cluster, and the components that work on them."""
