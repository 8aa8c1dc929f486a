"""``organism`` and ``python -m organism``."""

from organism.cli.app import main

if __name__ == "__main__":
    main()
