"""The base class of all parts of a resolved case."""

from pydantic import BaseModel, ConfigDict


class Part(BaseModel):
    """An immutable value with a JSON form. Unknown keys in the JSON form are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)
