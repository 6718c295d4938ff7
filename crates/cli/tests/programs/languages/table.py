"""Two children read a table in shared memory that their parent filled, and a mapped file."""

import os
import sys

import numpy

COUNT = 1 << 17


def main():
    import mmap

    shared = mmap.mmap(-1, 8 * COUNT)
    table = numpy.frombuffer(shared, dtype=numpy.int64)
    table[:] = 1
    children = []
    for part in range(2):
        child = os.fork()
        if child == 0:
            data = numpy.memmap(sys.argv[1], dtype=numpy.uint8, mode="r")
            os._exit(0 if table[part::8].sum() > 0 and data.sum() > 0 else 1)
        children.append(child)
    print(sum(os.waitpid(child, 0)[1] for child in children))


main()
