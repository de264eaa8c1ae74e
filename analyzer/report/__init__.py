"""From a verdict to a report: the page and its PDF, JSON for programs, text for a terminal."""
