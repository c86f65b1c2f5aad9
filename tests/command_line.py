"""The command line as a user meets it, in this process."""

from typer.testing import CliRunner

from meterveil.cli import app


def run(*arguments):
    """Give a command; the machine knows of no data sets."""
    return CliRunner().invoke(app, [str(part) for part in arguments], env={"METERVEIL_DATA": ""})


def printed(result):
    """Return the printed text with its lines joined."""
    return " ".join(result.output.split())


def refused(*arguments):
    """Give a command that cannot be meant; return the one line that it is refused with."""
    result = run(*arguments)
    assert result.exit_code == 2, result.output
    assert len(result.output.strip().splitlines()) == 1
    return printed(result)
