"""What lies on disk: the grammar and the library, users' texts, what is written, caches."""
