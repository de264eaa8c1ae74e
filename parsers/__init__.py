"""One module per capture format: from the text of a capture to rows and gaps. See `parsers.shapes` for the contract."""
