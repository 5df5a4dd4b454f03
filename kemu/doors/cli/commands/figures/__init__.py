"""Commands that show what runs came to: tables, queries, pictures, the page in the browser."""
