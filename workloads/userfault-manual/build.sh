#!/bin/sh
# Builds the example program of the manual page userfaultfd(2), which nobody here wrote and which is not kept here: it is taken out of the page as
# it is installed, or as Debian's package manpages-dev has it.
set -eu
page=/usr/share/man/man2/userfaultfd.2.gz
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
if [ ! -f "$page" ]; then
    (cd "$folder" && apt-get -q download manpages-dev && dpkg-deb -x manpages-dev_*.deb .)
    page=$folder$page
fi
# Between the two marks, without the page's own commands, and with its escapes as the characters that they stand for.
zcat "$page" | sed -n '/SRC BEGIN/,/SRC END/p' | sed '/^\./d' |
    sed "s/\\\\e/\\\\/g; s/\\\\-/-/g; s/\\\\\\[aq\\]/'/g; s/\\\\(aq/'/g; s/\\\\\\[ti\\]/~/g; s/\\\\(ti/~/g; s/\\\\&//g" > "$folder/demo.c"
# The page calls a function that only the BSDs' libraries have.
gcc -O2 -static -pthread '-Derrc(status, code, ...)=errx(status, __VA_ARGS__)' -o "$1" "$folder/demo.c"
