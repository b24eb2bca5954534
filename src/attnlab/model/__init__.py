"""The Transformer under study: attention with every factor, masks, initial weights, encoder and decoder."""
