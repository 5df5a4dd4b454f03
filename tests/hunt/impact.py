"""How much the choice of plans saves, and whether it loses anything: ``python -m tests.hunt.impact HUNT.yaml …``.

Each plan that a hunt would try is tried, and so many of those that it would not (``--sample``, all by default): the
first symptom of each that goes wrong twice is a bug. One line of JSON for each hunt.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from pathlib import Path

from kemu.lab.hunt import perturbations, planning, projects
from kemu.lab.hunt.judging import oracles
from kemu.lab.hunt.judging.oracles import Reference
from kemu.lab.hunt.perturbations import Plan
from kemu.lab.hunt.searches import Hunt


def symptom(hunt: Hunt, reference: Reference, project: projects.Project, plan: Plan) -> tuple[str, str] | None:
    """Of a plan after which something goes wrong, and goes wrong again."""
    found: tuple[str, str] | None = None
    for _ in range(2):
        outcome = hunt.trial(project.steps, plan)
        symptoms = oracles.bugs(reference.symptoms(outcome)) if outcome.struck else []
        if not symptoms or (found is not None and found not in {each.signature for each in symptoms}):
            return None
        found = found or symptoms[0].signature
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("hunts", nargs="+", type=Path)
    parser.add_argument("--sample", type=int, default=sys.maxsize, help="of the plans that are not chosen")
    parser.add_argument("--out", type=Path, default=Path("runs/impact"))
    parser.add_argument("--list", action="store_true", help="only say which plans there are")
    options = parser.parse_args()
    for file in options.hunts:
        project = projects.load(file)
        hunt = Hunt(project, options.out / project.name)
        if options.list:
            outcome = hunt.trial(project.steps, ())
            chosen, everything = planning.plans(outcome, pairs=True), list(planning.every(outcome))
            for plan in chosen:
                print(perturbations.shown(plan))
            print(len(planning.plans(outcome)), len(chosen), len(everything))
            continue
        reference = hunt.reference()
        outcome = reference.outcomes[0]
        chosen = planning.plans(outcome)
        others = [plan for plan in dict.fromkeys(planning.every(outcome)) if plan not in set(chosen)]
        tried = random.Random(1).sample(others, min(options.sample, len(others)))
        found: dict[tuple[str, str], tuple[int, str]] = {}
        missed: dict[tuple[str, str], str] = {}
        for number, plan in enumerate(chosen, 1):
            bug = symptom(hunt, reference, project, plan)
            if bug is not None:
                found.setdefault(bug, (number, perturbations.shown(plan)))
        for plan in tried:
            bug = symptom(hunt, reference, project, plan)
            if bug is not None and bug not in found:
                missed.setdefault(bug, perturbations.shown(plan))
        print(
            json.dumps(
                {
                    "hunt": project.name,
                    "brute_force": len(others) + len(chosen),
                    "plans": len(chosen),
                    "sampled_of_others": len(tried),
                    "found": {" ".join(bug): {"plan": number, "first": text} for bug, (number, text) in found.items()},
                    "missed": {" ".join(bug): text for bug, text in missed.items()},
                }
            ),
            flush=True,
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
