"""What is known as files: whole archives that are restored, tables for spreadsheets."""
