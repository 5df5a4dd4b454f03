"""What the containers' programs would do: how long they run, how they end, what they print. Begin at ``courses``.

residents    the programs of one kubelet, and the commands of hooks and probes in them
courses      which course a container takes from its start, with its files
environments the variables of a container
printouts    what its program prints
images       what images run that are known by name, and Kubernetes' test image agnhost
shells       carries out scripts in virtual time; ``syntax`` reads them, ``arithmetic`` is ``$(( ))``
tools        the commands; ``file_tools`` are those for files, ``text_tools`` those for texts, ``conditions`` is
             ``test``, ``archives`` is ``tar``; ``arguments`` is what they have in common
files        the files of a container, and of the volumes that it mounts
"""
