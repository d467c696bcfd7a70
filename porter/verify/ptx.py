"""The emulator under its first name, which code outside porter may still use."""

from porter.verify.emulator import *  # noqa: F403
from porter.verify.emulator import __all__ as __all__
from porter.verify.emulator.decode import fatbin as fatbin
