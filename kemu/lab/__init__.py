"""What one does with an emulated cluster: scenarios, checks, searches, sweeps, telling."""
