"""Reports for people, made from histories and verdicts. Begin at ``terminal``.

terminal       the output of ``kemu run``, from the story to the verdict; ``matrices``, of several runs side by side
stories        what happened in a run, in as few lines as there is room for; ``story_tables``, those in a terminal
happenings     what stories tell of; ``selections``, what of it
devices        what a pod that waits for a device asks for, and who holds it
tables         figures by priority, workload and scheduler
telling_pods   the pod that failed or starved, which is worth a trace
layouts        text that fits a terminal of any width
limits         the tables of docs/limits.md

causes         why a run went wrong: roots and chains
explaining     why a run fails
page           the report: one HTML file
live           the same page while a run goes on
figures        figures of a run as CSV
"""
