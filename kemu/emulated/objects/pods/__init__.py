"""bind_generations, gpu_cards, host_ports, planned_fields, pod_phases."""
