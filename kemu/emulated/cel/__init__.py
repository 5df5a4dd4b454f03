"""CEL, the expressions in Kubernetes' objects, as Kubernetes 1.36 compiles, estimates and evaluates them.

Begin at `environments`: an `Environment` declares variables and compiles text to a `Program`.

    environment = cel.Environment({"self": cel.schemas.declared(schema, root=True), "oldSelf": ...})
    program = environment.compile("self.replicas <= self.maxReplicas", wants=(cel.types.BOOL,))
    program.estimate().high                          # what the most expensive input that the schema admits costs
    value, cost = program.evaluate({"self": document})

`types` are declared types and their sizes, `schemas` makes them of OpenAPI schemas, `errors` are what goes wrong.
Expressions are free of I/O and deterministic. Nothing here is imported before the first expression is compiled, if callers
import it where they need it.
"""

from kemu.emulated.cel import authorizers, environments, errors, schemas, types
from kemu.emulated.cel.environments import PER_CALL_LIMIT, Cost, Environment, Program
from kemu.emulated.cel.errors import BudgetExceeded, CompileError, EvaluationError
from kemu.emulated.cel.values import LazyFields, plain

__all__ = [
    "PER_CALL_LIMIT",
    "BudgetExceeded",
    "CompileError",
    "Cost",
    "Environment",
    "EvaluationError",
    "LazyFields",
    "Program",
    "authorizers",
    "environments",
    "errors",
    "plain",
    "schemas",
    "types",
]
