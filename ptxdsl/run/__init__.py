"""``ptxdsl run``: arguments from a command line, a launch on the card or in the simulator, and what came out.

The way of the data: specification (text) -> generate (arrays and numbers) -> target (card or simulator) -> expectation.
"""
