"""Make the reference values that the Rust tests compare against.

Run from the repository root:

    pip install numpy scipy scikit-learn mpmath && python tests/reference/make_reference.py

It writes densities.json, log_gamma_ratio.json, em.json, wilcoxon.json,
matching.json and levels.json next to this script. All seeds are fixed, so a second run with
the same library versions writes the same bytes.

Where a double precision evaluation would lose digits the value comes from
mpmath with 50 digits (or exact fractions), starting from the very doubles that
are stored, and SciPy is asserted to agree as far as its own rounding allows.
Only em.json and levels.json hold plain double results of a library
(scikit-learn); an independent EM in extended precision checks the former.
"""

from makers.densities import make_densities
from makers.em import make_em
from makers.levels import make_levels
from makers.log_gamma_ratio import make_log_gamma_ratio
from makers.matching import make_matching
from makers.wilcoxon import make_wilcoxon

if __name__ == "__main__":
    make_densities()
    make_log_gamma_ratio()
    make_em()
    make_wilcoxon()
    make_matching()
    make_levels()
