"""The rule language: text to checked expressions (`grammar`, `checks`), and what they ask of tables (`measure`)."""
