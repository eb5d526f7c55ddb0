"""One meaning, two engines: every case runs in process and on Spark, and the outcomes are compared."""
