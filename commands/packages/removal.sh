#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# Removes what by-hand.sh has installed, by the commands of docs/packages.md, word for word.
# shellcheck disable=SC2046 # as the page writes them
set -eux

make install-tools install-lib install-man DESTDIR="$PWD/build/installed"
(cd build/installed && find . ! -type d) | (cd / && sudo xargs rm -f)
sudo rm -f $(sudo modinfo -n hwt) /etc/modules-load.d/hwt.conf /etc/modprobe.d/hwt.conf
sudo depmod -a $(uname -r)
sudo ldconfig
sudo groupdel hwt
[ -z "$(find /etc /lib/modules /usr/local -iname '*hwt*')" ]
