"""The objects of a scenario: what its manifests, the files that it names and recorded traces hold.

manifests        objects as messages, with all that is wrong with them
manifest_files   manifests in files, folders and patterns
imports          objects as a cluster shows them, made fit for another one
openb            the pods and nodes of the openb trace
job_tables       CSV tables of jobs, line by line
job_formats      which columns published tables of jobs have
philly           the jobs of the Philly trace, in JSON
job_traces       jobs as pods: which are played, names, templates
devices          whether objects speak of devices; the classes of drivers
volumes          whether objects speak of volumes
admission_hooks  functions in Python that stand for webhooks, and what is wrong with them
foreign_files    files that are no scenario, and what they are
"""
