#!/bin/sh
# Before the package goes away: stops and disables its units, of which a person may have
# enabled some. An upgrade keeps them. dpkg says "remove", rpm the number of versions left.
# packaging/stage writes the names of the package's units in here. Where /lib is a link, systemd
# may name /lib/systemd/system in what it enables.
set -e
case ${1:-} in
remove | 0) ;;
*) exit 0 ;;
esac
units='UNITS_OF_THE_PACKAGE'
wanted=$(
	for unit in $units; do
		find /etc/systemd/system -type l -lname "*/lib/systemd/system/$unit" 2>/dev/null || true
	done
)
for link in $wanted; do
	if [ -d /run/systemd/system ]; then
		systemctl disable --now "$(basename "$link")" || true
	fi
	rm -f "$link"
	rmdir "$(dirname "$link")" 2>/dev/null || true # made by enabling the first
done
if [ -d /run/systemd/system ]; then
	# What was started and never enabled; timers first, which start the others.
	for kind in timer service; do
		for unit in $units; do
			case $unit in
			*@.$kind) systemctl stop "${unit%."$kind"}*.$kind" || true ;;
			*.$kind) systemctl stop "$unit" || true ;;
			esac
		done
	done
fi
