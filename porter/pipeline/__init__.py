"""parse -> plan -> emit -> verify -> write, what a run works on, and where its results go."""
