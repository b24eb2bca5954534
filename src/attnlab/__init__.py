"""attnlab measures what each piece of attention buys: train, look inside the softmax, score, compare."""

__version__ = "0.1.0"
