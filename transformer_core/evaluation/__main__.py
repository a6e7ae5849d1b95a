"""`python -m transformer_core.evaluation`: see evaluate.py."""

import sys

from transformer_core.evaluation.evaluate import main

sys.exit(main())
