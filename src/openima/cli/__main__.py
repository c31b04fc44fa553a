"""`python -m openima.cli`: the command line where its script is not on the path."""

from openima.cli.app import app

if __name__ == "__main__":
    app(prog_name="openima")
