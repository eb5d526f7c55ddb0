"""Random schemas, graphs and queries, answered by the product and by DuckDB, which must agree.

Nothing here imports the product's languages or engines: queries are trees of this package, printed as `.gq` for the
product (which is used through its public API alone) and translated to SQL for DuckDB.

    world.py       a random schema, random rows, and the steps that bring a graph into a physical state
    tree.py        queries as plain values; constructs/ holds one file for each idea of the language
    printing.py    a tree as `.gq`
    sql.py         a tree as SQL over tables that oracle.py fills
    making.py      random trees; constructs/ adds to it
    product.py     the graph itself, through `import omnigraph as og`
    compare.py     whether two answers are the same
    hunt.py        the loop; shrink.py and script.py make a difference small and print it as a program
"""
