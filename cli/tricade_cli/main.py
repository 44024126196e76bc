"""The command `tricade`: one file for each command; exit 0 done, 1 the work failed, 2 bad usage."""

from __future__ import annotations

import sys
from importlib import import_module

import typer

# A command is a module here with a function `register(app)`.
COMMANDS = ("build", "check", "detect", "models", "serve", "tune")
OURS = ("tricade", "tricade_build", "tricade_client", "tricade_server", "tricade_tune")


def app_of() -> typer.Typer:
    """The application with all its commands."""
    app = typer.Typer(
        help="A whole vision cascade from one Triton server.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
    )
    for command in COMMANDS:
        import_module(f"tricade_cli.{command}").register(app)
    return app


def main() -> None:
    """Run it; an error of ours is a message, any other a traceback."""
    try:
        app_of()()
    except Exception as error:
        if type(error).__module__.split(".")[0] not in OURS:
            raise
        print(f"tricade: {error}", file=sys.stderr)  # noqa: T201
        sys.exit(1)


if __name__ == "__main__":
    main()
