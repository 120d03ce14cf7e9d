"""What a process was told, and by whom, the later winning.

environment  <  property files and -D options, in the order in which they were given
"""

from dataclasses import dataclass, field

from windtunnel.driver.settings import properties

ENVIRONMENT = "environment"


@dataclass(slots=True)
class GivenSettings:
    """Texts by the name of their variable; only what begins like a setting matters to anybody."""

    texts: dict[str, str]
    origins: dict[str, str] = field(default_factory=dict)
    """Who gave a variable last; what is not here came from the environment."""

    def give(self, variable: str, text: str, origin: str) -> None:
        """Set a variable, or take it back where the text is empty."""
        if text:
            self.texts[variable] = text
            self.origins[variable] = origin
        else:
            self.texts.pop(variable, None)
            self.origins.pop(variable, None)

    def give_line(self, origin: str, line: str) -> None:
        """Set what `name=value` says. Raises ConfigurationError."""
        self.give(*properties.read_line(origin, line), origin)

    def give_file(self, path_or_url: str) -> None:
        """Set what a property file says. Raises ConfigurationError."""
        for variable, text in properties.read_file(path_or_url):
            self.give(variable, text, path_or_url)

    def shared(self) -> set[str]:
        """The variables that the environment gave, which other programs read as well."""
        return set(self.texts) - set(self.origins)

    def origin_of(self, variable: str) -> str:
        """Who gave the variable; "default" where nobody did."""
        if not self.texts.get(variable):
            return "default"
        return self.origins.get(variable, ENVIRONMENT)
