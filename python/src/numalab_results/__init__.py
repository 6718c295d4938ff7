"""Results of numalab as tables.

>>> import numalab_results as nr
>>> run = nr.read("docs/examples/run.json")
>>> run.kind
'run'
>>> samples = run.table("samples").to_pandas()     # needs pandas
"""

from .document import Document, NotADocument, read
from .table import Table

__all__ = ["Document", "NotADocument", "Table", "read"]
