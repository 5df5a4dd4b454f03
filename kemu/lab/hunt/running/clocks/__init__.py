"""Code for the processes of controllers: Python imports ``sitecustomize`` when it starts, where this folder is on its
path. Nothing of kemu imports it.
"""
