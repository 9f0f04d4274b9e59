"""`python -m fairwave`."""

from fairwave.cli.main import main

main()
