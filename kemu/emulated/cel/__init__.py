"""CEL, the expressions in Kubernetes' objects, as Kubernetes 1.36 compiles, estimates and evaluates them.

Begin at `environments`: an `Environment` declares variables and compiles text to a `Program`.

    environment = cel.Environment({"self": cel.schemas.declared(schema, root=True), "oldSelf": ...})
    program = environment.compile("self.replicas <= self.maxReplicas", wants=(cel.types.BOOL,))
    program.estimate().high                          # what the most expensive input that the schema admits costs
    value, cost = program.evaluate({"self": document})

types          declared types and their sizes
schemas        makes types of OpenAPI schemas, `names` identifiers of their properties' names
errors         what goes wrong; `bounds` ends an evaluation at once
values         values in Python: equality, order, texts; `numbers` and `times` are as in Go
devices        the variable ``device`` of selectors of devices
documents      JSON of objects as values, read through a schema
authorizers    the variable ``authorizer``, whose checks the caller decides
providers      what names mean before any scope: variables, types, fields
declarations   functions: their overloads and what computes them
libraries      the functions of Kubernetes' environments
parsing        from text to a tree
checking       types of a tree's nodes, mistakes in constants
costs          estimates, and what calls cost
evaluation     closures that evaluate a tree

Expressions are free of I/O and deterministic. Nothing here is imported before the first expression is compiled, if
callers import it where they need it.
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
