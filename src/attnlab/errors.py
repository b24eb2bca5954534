"""The exceptions that reach a user: a sentence, never a traceback."""


class UserError(Exception):
    """A mistake of the user's. The message is one sentence: the setting, what it got, what is allowed."""


class BrokenRule(UserError):
    """Settings that exist and have their types, but not these values, or not together."""
