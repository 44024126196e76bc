"""Other ways to serve a cascade, on the same networks, each as its own documentation advises."""
