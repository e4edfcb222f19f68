"""Files to examples, examples to ids, ids to batches."""
