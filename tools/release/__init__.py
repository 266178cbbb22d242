"""The files of a release: `make release` writes them into dist/."""
