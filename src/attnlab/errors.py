"""The one exception that reaches a user: a sentence, never a traceback."""


class UserError(Exception):
    """A mistake of the user's. The message is one sentence: the setting, what it got, what is allowed."""
