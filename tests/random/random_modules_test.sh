#!/bin/sh
# The first seeds; every run of the suite compares the same ones.
exec "$1" 0 150
