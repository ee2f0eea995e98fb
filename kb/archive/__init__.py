"""Knowledge as files: archives that can be restored, and tables for spreadsheets."""
