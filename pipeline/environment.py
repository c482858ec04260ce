"""The process environment: the one place that sets or reads its variables.

(`TF_USE_LEGACY_KERAS` is the exception: it belongs to `pipeline.compat`.)
"""

from __future__ import annotations

import logging
import os
import warnings


def set_verbosity(verbosity: int) -> None:
    """Chooses how much libraries may say; call it before they are imported.

    Args:
      verbosity: -1 errors only, 0 our own progress as well, 1 everything that
        TensorFlow and Beam have to say.
    """
    noisy = verbosity >= 1
    if not noisy:
        os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
        warnings.filterwarnings("ignore")
    logging.basicConfig(format="%(levelname)s %(name)s: %(message)s")
    logging.getLogger().setLevel(logging.INFO if noisy else logging.ERROR)
    for name in ("apache_beam", "tensorflow", "absl"):
        logging.getLogger(name).setLevel(logging.INFO if noisy else logging.ERROR)
