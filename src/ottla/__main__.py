"""`python -m ottla` is the same as `ottla`."""

import sys

from ottla.cli import main

sys.exit(main())
