"""The unparsed settings of a process, from its environment, property files and options.

environment  <  property files and -D options, in the order of the command line
"""

from dataclasses import dataclass, field

from windtunnel.driver.settings import properties

ENVIRONMENT = "environment"


@dataclass(slots=True)
class RawSettings:
    """The unparsed values of settings, by environment variable. Variables of other programs may be
    among them, and are ignored later.
    """

    texts: dict[str, str]
    origins: dict[str, str] = field(default_factory=dict)
    """The source that last set each variable. Variables from the environment are not included."""

    def set_variable(self, variable: str, text: str, origin: str) -> None:
        """Set a variable, or remove it if the text is empty."""
        if text:
            self.texts[variable] = text
            self.origins[variable] = origin
        else:
            self.texts.pop(variable, None)
            self.origins.pop(variable, None)

    def set_line(self, origin: str, line: str) -> None:
        """Set a variable from `name=value`. Raises ConfigurationError if the line is invalid."""
        self.set_variable(*properties.read_line(origin, line), origin)

    def load_file(self, path_or_url: str) -> None:
        """Set the variables of all properties in a file. Raises ConfigurationError if the file
        cannot be read or is invalid.
        """
        for variable, text in properties.read_file(path_or_url):
            self.set_variable(variable, text, path_or_url)

    def environment_variables(self) -> set[str]:
        """Return the names of the variables that come only from the environment, which may also
        contain other programs' variables.
        """
        return set(self.texts) - set(self.origins)

    def origin_of(self, variable: str) -> str:
        """Return the source that set a variable, or "default" if the variable is not set."""
        if not self.texts.get(variable):
            return "default"
        return self.origins.get(variable, ENVIRONMENT)
