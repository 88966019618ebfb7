#!/usr/bin/env bash
# Installs heartbeat into ASK_ROOT/bin: a release if a version is named, by ASK_VERSION or by
# the action's own tag; else what is on the PATH already; else a build of this checkout.
#
# ASK_VERSION, ASK_SHA256: inputs; ASK_REF, ASK_REPOSITORY: of the action itself
# HEARTBEAT_DOWNLOADS: where releases are, each below vVERSION
# shellcheck source=scripts/action/common.sh
. "$(dirname "$0")/common.sh"
commands='heartbeat heartbeat-stop heartbeat-launch'
bin=$ASK_ROOT/bin
full='^[0-9]+\.[0-9]+\.[0-9]+([-~+][0-9A-Za-z.~-]+)?$'

on_path() {
	local name
	for name in $commands; do command -v "$name" >/dev/null || return 1; done
}

# release VERSION: an archive counts once its sum is right.
release() {
	needs curl
	local system arch name base work want
	system=$(uname -s | tr '[:upper:]' '[:lower:]')
	case $(uname -m) in
	x86_64 | amd64) arch=amd64 ;;
	aarch64 | arm64) arch=arm64 ;;
	*) fail 78 "there is no release for $(uname -m): leave version out, and heartbeat is built here" ;;
	esac
	name=heartbeat_$1_${system}_$arch.tar.gz
	base=${HEARTBEAT_DOWNLOADS:-${GITHUB_SERVER_URL:-https://github.com}/${ASK_REPOSITORY:-${GITHUB_REPOSITORY:-}}/releases/download}/v$1
	work=$(mktemp -d "$ASK_ROOT/release.XXXXXX")
	fetch "$base/$name" "$work/$name"
	want=${ASK_SHA256:-}
	if [ -z "$want" ]; then
		fetch "$base/SHA256SUMS" "$work/SHA256SUMS"
		want=$(awk -v name="$name" '$2 == name || $2 == "*" name { print $1 }' "$work/SHA256SUMS")
		[ -n "$want" ] || fail 1 "install: $base/SHA256SUMS has no sum of $name: nothing was installed"
	fi
	[ "$(sum <"$work/$name")" = "$want" ] ||
		fail 1 "install: the sum of $base/$name is not $want: nothing was installed; if sha256 is yours, is it that of this system's archive?"
	mkdir -p "$work/unpacked" "$bin"
	tar -xzf "$work/$name" -C "$work/unpacked" --strip-components 1 || fail 1 "install: unpack $name: is the disk full?"
	for name in $commands; do
		mv -f "$work/unpacked/$name" "$bin/$name" || fail 1 "install: $base has no $name: nothing was installed"
	done
	rm -rf "$work"
}

fetch() { # ADDRESS FILE
	curl --fail --silent --show-error --location --proto '=https' --retry 3 --max-time 300 --max-filesize 200000000 --output "$2" "$1" ||
		fail 1 "install: $1 cannot be had (see above): is there such a release? HEARTBEAT_DOWNLOADS names another place; with the action pinned by a commit and no version, heartbeat is built here"
}

build() {
	local home
	home=$(cd "$(dirname "$0")/../.." && pwd -P)
	command -v go >/dev/null || fail 78 'install: go is not on the PATH, and no version is named: set version, or install go in a step before (actions/setup-go)'
	mkdir -p "$bin"
	(cd "$home" && CGO_ENABLED=0 go build -buildvcs=false -o "$bin/" ./cmd/heartbeat ./cmd/heartbeat-stop ./cmd/heartbeat-launch) ||
		fail 1 "install: build heartbeat in $home: see above"
}

version=${ASK_VERSION:-} ref=${ASK_REF:-}
version=${version#v} ref=${ref#v}
if [ -z "$version" ] && [[ $ref =~ $full ]]; then version=$ref; fi
mkdir -p "$ASK_ROOT"
if [ -n "$version" ]; then
	[[ $version =~ $full ]] || fail 1 "version: $version is no version such as 1.2.3"
	release "$version"
elif on_path; then
	bin=$(dirname "$(command -v heartbeat)")
else
	build
fi
echo "heartbeat: $("$bin/heartbeat" version | head -n 1) in $bin"
[ -z "${GITHUB_PATH:-}" ] || printf '%s\n' "$bin" >>"$GITHUB_PATH"
