"""The rules of judging: each a function from a case to the findings it sees."""
