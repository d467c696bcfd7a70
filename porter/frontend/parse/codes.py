"""The diagnostic codes of parsing (PRT00x, PRT01x); each has a page in docs/codes."""

MISSING_INCLUDE = "PRT003"
PARSE_ERROR = "PRT004"
UNTYPED = "PRT005"  # an expression that clang could not type
BAD_INSTANCE = "PRT006"  # template arguments that do not fit
BAD_INSTANTIATION_TEXT = "PRT007"
NO_DEFAULT_INSTANCE = "PRT008"  # nobody named template arguments and no guess fits
NO_LIBCLANG = "PRT009"
