"""Numbers of components, as the parameter ``n_components`` gives them."""

from numbers import Integral

MAX_LEARNED = 50
"""The largest number of components that ``n_components='auto'`` finds."""
MAX_K = 10_000
"""The largest number of components, as in the command."""


def bounds(n_components) -> tuple[int, int, bool]:
    """The least and the largest number of components, and whether the number is learned within them."""
    if isinstance(n_components, str) and n_components == "auto":
        return 1, MAX_LEARNED, True
    learned = isinstance(n_components, str) and n_components.startswith("auto:")
    try:
        if isinstance(n_components, Integral):
            ends = (n_components, n_components)
        elif isinstance(n_components, str):
            ends = n_components.removeprefix("auto:").split("..") if learned else ()
        else:
            ends = n_components
        low, high = (int(end) for end in ends)
    except (TypeError, ValueError):
        raise ValueError(
            "n_components must be 'auto', a text such as 'auto:2..10', a number, or a pair (low, high), "
            f"not {n_components!r}"
        ) from None
    if not 1 <= low <= high <= MAX_K:
        raise ValueError(f"n_components from {low} to {high}: 1 <= low <= high <= {MAX_K} must hold")
    return low, high, learned
