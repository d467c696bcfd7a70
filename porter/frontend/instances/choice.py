"""Template instances of kernels: read from text, reached by launches, guessed, instantiated by clang."""

from __future__ import annotations

from porter.frontend.instances.argument_names import resolved
from porter.frontend.instances.argument_text import parse_instantiation, split_arguments
from porter.frontend.instances.guess import default_instances, no_default_instance, obstacles
from porter.frontend.instances.reached import choose_few, instances_from_launches
from porter.frontend.instances.specialise import bad_instance, signature, specialise, try_specialise

__all__ = [
    "bad_instance",
    "choose_few",
    "default_instances",
    "instances_from_launches",
    "no_default_instance",
    "obstacles",
    "parse_instantiation",
    "resolved",
    "signature",
    "specialise",
    "split_arguments",
    "try_specialise",
]
