"""What goes wrong, as exceptions."""


class KilnError(Exception):
    """Anything that kiln refuses or fails at."""


class CompileError(KilnError):
    """The compiler refused a program; the text is its own."""


class RunError(KilnError):
    """A run ended with a status that is not ok.

    Attributes:
      status: the number, a ``kiln_status`` of types.h.
    """

    def __init__(self, status: int, text: str):
        super().__init__(text)
        self.status = status
