"""What every surface owes its user, whichever way he comes in."""
