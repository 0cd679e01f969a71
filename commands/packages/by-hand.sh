#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# Installs hwt without packages, by the commands of docs/packages.md, word for word. packages.py
# runs this in the sources, in a Debian.
# shellcheck disable=SC2046 # as the pages write them
set -eux

# Here, modprobe only finds the module. use.sh loads it in a guest.
make all tools lib man
sudo make install
sudo groupadd --system hwt
sudo make install-tools install-lib install-man
sudo ldconfig
sudo usermod --append --groups hwt "$USER"
sudo modprobe hwt

# The commands of docs/programs.md for libhwt.
cp samples/libhwt_first.c program.c
cc -o program program.c $(pkg-config --cflags --libs hwt)
sudo install program /usr/local/bin/program

PYTHONPATH=$PWD/python python3 -c 'import hwt'

# The commands of docs/kernel.md for a client.
cp -r samples/client client
cp samples/hwt_first.c client
make -C client HWT="$PWD"
[ -s client/hwt_first.ko ]
rm -r client

sudo install -m 644 tools/modules-load.conf /etc/modules-load.d/hwt.conf
echo 'options hwt tick_us=4000' | sudo tee /etc/modprobe.d/hwt.conf
openssl req -new -x509 -newkey rsa:2048 -nodes -subj '/CN=somebody/' -outform DER -keyout key.pem -out key.der
sudo /lib/modules/$(uname -r)/build/scripts/sign-file sha256 key.pem key.der $(sudo modinfo -n hwt)
[ "$(sudo modinfo -F signer hwt)" = somebody ]

# Again, as for a new kernel. Files that were built belong to the user.
make
sudo make install
[ -z "$(find . -user root)" ]
make clean

for page in 1,hwtctl 3,libhwt 4,hwt 9,hwt_schedule; do
	test -s "/usr/local/share/man/man${page%,*}/${page#*,}.${page%,*}"
done
