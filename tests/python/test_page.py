"""The page of a model allows its own script alone: the hash in its policy is that of the script.

Run with: python3 -m unittest discover -s tests/python
"""

from __future__ import annotations

import base64
import hashlib
import unittest
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "src" / "page"


class Policy(unittest.TestCase):
    def test_the_hash_is_that_of_the_script(self):
        hash = base64.b64encode(hashlib.sha256((PAGE / "page.js").read_bytes()).digest()).decode()
        self.assertIn(f'const SCRIPT_HASH: &str = "{hash}";', (PAGE / "mod.rs").read_text())


if __name__ == "__main__":
    unittest.main()
