"""What keeps porter's processes in bounds: limits of CPU time and memory, and a parent that outlives the others."""
