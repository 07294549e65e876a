"""The same work on many machines: captures, evaluations, sweeps and ingests in parts on a Dask cluster.

What a part is and how parts become the whole is in jobs.py, what a worker does with one in work.py, the cluster in
cluster.py. Without `--engine` none of this is imported. The workers must see the same workspace folder and the same
version of this program; parts go over the wire as text and vectors as bytes.
"""
