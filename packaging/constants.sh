# What all packages agree on.

# The time of every file in a package: a constant, so that the same tree gives the same bytes.
PACKAGE_TIME=1767225600
PACKAGE_MAINTAINER='kiln maintainers <maintainers@kiln.example>'
