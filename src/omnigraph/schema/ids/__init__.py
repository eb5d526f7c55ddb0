"""The ids of rows: made of the key (`identity`), and in the forms in which somebody gives one (`given_ids`)."""

__all__ = ["given_ids", "identity"]
