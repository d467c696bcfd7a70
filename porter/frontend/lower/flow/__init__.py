"""Control flow that IR has no node for: goto, switch, recursion, pointers to functions."""
