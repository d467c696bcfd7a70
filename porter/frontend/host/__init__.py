"""Host code, evaluated symbolically: what each kernel is launched with, in terms of named sizes."""
