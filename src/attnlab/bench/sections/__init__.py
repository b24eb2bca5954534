"""What is asked: each section starts children and makes a table of their numbers. No torch in here."""
