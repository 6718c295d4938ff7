#!/bin/sh
exec numalab bind "$@"
