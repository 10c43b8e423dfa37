"""The tensor cores of Blackwell: tensor memory, descriptors, products, copies, commits."""
