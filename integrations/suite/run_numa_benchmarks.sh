#!/bin/bash
#SBATCH --nodes=1 --exclusive
exec numalab scale "$@"
