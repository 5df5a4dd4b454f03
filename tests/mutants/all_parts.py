"""All mutants: importing this module plants them in :data:`MUTANTS`."""

from __future__ import annotations

from tests.mutants import in_apiservers, in_clients, in_controllers, in_kubelets, in_runtime, in_schedulers, in_store
from tests.mutants.planting import MUTANTS

__all__ = ["MUTANTS"]

PARTS = in_store, in_apiservers, in_clients, in_schedulers, in_kubelets, in_controllers, in_runtime
