"""The synchronous grammar behind `attnlab.data.grammar`."""
