"""A bridge whose runs are those of tiny_runs."""

from tests.helpers.ray_parts import main

if __name__ == "__main__":
    main()
