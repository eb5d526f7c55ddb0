"""The client of a server: a graph behind a URL, with the methods of one that is opened here."""
