"""The command `vitrine`, and `python -m transformer_core`: opens the app as `streamlit run app.py` does."""

import os
import sys

from transformer_core.kept import PROJECT


def main() -> None:
    """Become Streamlit, which runs the app; what follows the command are its options, such as --server.port."""
    command = [sys.executable, "-P", "-m", "streamlit", "run", str(PROJECT / "app.py"), *sys.argv[1:]]
    os.execv(sys.executable, command)


if __name__ == "__main__":
    main()
