#!/bin/sh
# Runs a public conformance suite, unmodified, on Linux and on Ceasefire in the same emulator, and prints what Linux passes and Ceasefire does not.
# README.md says what for. Nothing of a suite is kept in this repository: it is fetched, and both suites are under the GPL.
set -eu

here=$(dirname "$(readlink -f "$0")")
root=$(dirname "$here")
place=${CONFORMANCE_FOLDER:-$root/.cache/conformance}
posix_archive=posixtestsuite_1.5.2.orig.tar.gz
posix_address=http://deb.debian.org/debian/pool/main/p/posixtestsuite/$posix_archive
posix_checksum=15a2185672127cba851d35ec9d538ff6148defdbb75f99c7e9c50aeba0f94757

say() { printf 'conformance: %s\n' "$*" >&2; }
fail() { say "$*"; exit "${2-4}"; }
usage() {
	cat >&2 <<-TEXT
	usage: conformance/compare.sh posix|selftests [PATTERN [LINES]]
	PATTERN  an extended regular expression: only the cases of which it matches the name (fork/, ^sched_, futex)
	LINES    so many of the last lines that a case printed which only Linux passes; default 3
	Environment: JOBS cases at once (16), SECONDS_EACH for a case (60), CPUS (4), MEMORY (1G), CONFORMANCE_FOLDER for what is fetched and built
	TEXT
	exit 2
}

fetch_posix() {
	[ -d "$place/posix-source" ] && return
	say "fetching $posix_address"
	curl -fsS -o "$place/$posix_archive" "$posix_address" || fail "could not fetch the Open POSIX Test Suite"
	echo "$posix_checksum  $place/$posix_archive" | sha256sum --check --quiet >&2 || fail "what was fetched is not what was expected" 4
	mkdir "$place/posix-source.new"
	tar xzf "$place/$posix_archive" -C "$place/posix-source.new" --strip-components=1
	mv "$place/posix-source.new" "$place/posix-source"
}

# The selftests of the kernel that Debian ships, and so of the peer.
fetch_selftests() {
	[ -d "$place/linux-source" ] && return
	say "fetching Debian's linux-source-6.1 (140 MB)"
	(cd "$place" && apt-get download linux-source-6.1 >&2) || fail "could not fetch the kernel's source"
	mkdir "$place/linux-source.new"
	dpkg-deb --fsys-tarfile "$place"/linux-source-6.1_*.deb | tar xO --wildcards '*linux-source-6.1.tar.xz' |
		tar xJ -C "$place/linux-source.new" --strip-components=1 --wildcards '*/tools/testing/selftests' '*/tools/include'
	mv "$place/linux-source.new" "$place/linux-source"
}

# compile OUTPUT SOURCE FLAGS...: a case that does not build here is no case, and is named.
compile() {
	output=$1 source=$2
	shift 2
	[ -x "$output" ] && return
	mkdir -p "$(dirname "$output")"
	(cd "$(dirname "$source")" && gcc -w -O1 -D_GNU_SOURCE -pthread -o "$output" "$@" "$(basename "$source")" -lrt -lm -ldl 2>/dev/null) ||
		say "does not build here: $output"
}

build_posix() {
	cd "$place/posix-source"
	for source in conformance/interfaces/*/*.c; do
		case $source in *buildonly* | *testfrmw*) continue ;; esac
		program=${source#conformance/interfaces/}
		compile "$place/programs/posix/${program%.c}" "$source" -I "$place/posix-source/include" -I "$place/posix-source"
	done
}

build_selftests() {
	tests=$place/linux-source/tools/testing/selftests
	grep -v '^#' "$here/selftests.txt" | while read -r folder program flags; do
		# shellcheck disable=SC2086 # several words
		compile "$place/programs/selftests/$folder/$program" "$tests/$folder/$program.c" -no-pie \
			-I "$tests" -I "$place/linux-source/tools/include" -I "$place/linux-source" -I "$tests/$folder" $flags
	done
}

# run SYSTEM: `linux` or `run`. What a program loads by name when a thread is cancelled is packed too.
run() {
	say "running on $1"
	library=$(gcc -print-file-name=libgcc_s.so.1)
	"$root/ceasefire" "$1" --quiet --mode single --cpus "${CPUS-4}" --memory "${MEMORY-1G}" --timeout none \
		--file "$place/programs/$suite:/suite" --file "$place/list:/list" --file "$library:/lib/x86_64-linux-gnu/libgcc_s.so.1" -- \
		"$place/supervise" --jobs "${JOBS-16}" --seconds "${SECONDS_EACH-60}" /list >"$place/$suite.$1"
}

[ $# -ge 1 ] && [ $# -le 3 ] || usage
suite=$1 pattern=${2-.} lines=${3-3}
case $suite in posix | selftests) ;; *) usage ;; esac
mkdir -p "$place"
"fetch_$suite"
"build_$suite"
gcc -O2 -static -o "$place/supervise" "$here/supervise.c"
(cd "$place/programs/$suite" && find . -type f -perm -u+x) | sed 's,^\./,,' | sort | grep -E "$pattern" >"$place/names" || fail "no case has such a name" 2
awk '{ print $1, "/suite/" $1 }' "$place/names" >"$place/list"
run linux
run run
awk -v lines="$lines" -f "$here/table.awk" "$place/$suite.linux" "$place/$suite.run"
