"""From text to batches: corpus (grammar, files, hub), tokenizer, batching."""
